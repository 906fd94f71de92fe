"""Children that crash, hang, lie or vanish: every trial gets its word, nothing stays behind."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import selftestfakes as fakes
from vega_image.selftest.case import Case, Trial
from vega_image.selftest.isolate import Isolation, Limits
from vega_image.selftest.result import Result
from vega_image.selftest.runner import Part, Runner, Settings
from vega_image.selftest.spawn import Child, fork, spawn
from vega_image.selftest.suite import Work
from vega_image.selftest.verdict import Verdict
from vega_image.selftest.worker import encode_work, work_forked

ROOT = Path(__file__).resolve().parents[2]
LIMITS = Limits(trial=1.0, silence=3.0, start=30.0, grace=0.3)
CRASHED, TIMED_OUT = Verdict.CRASHED, Verdict.TIMED_OUT
Start = Callable[[Work], Child]


def forked(work: Work) -> Child:
    return fork(lambda pipe: work_forked(work, fakes.make_card, pipe))


def spawned(work: Work) -> Child:
    argv = [sys.executable, "-m", "vega_image.selftest", "worker"]
    return spawn(argv, encode_work(work), environ={**os.environ, "PYTHONPATH": str(ROOT)})


STARTS = {"fork": forked, "spawn": spawned}


def run(
    *names: str, start: Start = forked, runs: int = 1, limits: Limits = LIMITS, **rest: object
) -> dict[str, Result]:
    family = str(rest.pop("family", "fake"))
    items = tuple(fakes.item(name, family) for name in names)
    return run_items(items, start=start, runs=runs, limits=limits, **rest)


def run_items(
    items: tuple[tuple[Case, Trial], ...],
    *,
    start: Start = forked,
    limits: Limits = LIMITS,
    **rest: object,
) -> dict[str, Result]:
    settings = Settings(device=f"python:{fakes.NAME}:make_card", **rest)  # type: ignore[arg-type]
    isolation = Isolation(start, limits, time.monotonic)
    runner = Runner(isolation, settings, time.monotonic, lambda _: None, lambda _: None)
    found = runner.run([Part(fakes.NAME, items)])
    assert len(found) == len(items)
    return {item.case.id: item for item in found}


@pytest.mark.parametrize("start", list(STARTS))
@pytest.mark.parametrize(
    ("act", "verdict", "words"),
    [
        ("segv", CRASHED, "SIGSEGV"),
        ("abort", CRASHED, "SIGABRT"),
        ("kill", CRASHED, "SIGKILL"),
        ("quit", CRASHED, "without finishing"),
        ("exit3", CRASHED, "exit code 3: the driver gave up"),
        ("hang", TIMED_OUT, "no result after 1 s"),
        ("deaf", TIMED_OUT, "no result after 1 s"),
        ("raises", CRASHED, "illegal memory access"),
        ("memory", CRASHED, "memory limit"),
        ("cut", CRASHED, "cut short"),
        ("garbage", CRASHED, "no report line"),
    ],
)
def test_each_way_to_die_is_named_and_the_rest_goes_on(
    start: str, act: str, verdict: Verdict, words: str
) -> None:
    found = run("before", act, "after", start=STARTS[start])
    assert found[act].verdict == verdict
    assert words in found[act].record.detail
    assert found["before"].verdict == found["after"].verdict == Verdict.MATCH


@pytest.mark.parametrize("start", list(STARTS))
def test_a_stopped_process_is_silent_and_named(start: str) -> None:
    limits = Limits(60.0, 2.0, 30.0, 0.3)
    found = run("before", "frozen", "after", start=STARTS[start], limits=limits)
    assert found["frozen"].verdict == TIMED_OUT
    assert "no heartbeat" in found["frozen"].record.detail
    assert found["after"].verdict == Verdict.MATCH


@pytest.mark.parametrize("start", list(STARTS))
def test_a_grandchild_that_holds_the_pipe_does_not_hold_us_and_dies(start: str) -> None:
    found = run("orphan", "after", start=STARTS[start], limits=Limits(50.0, 50.0, 30.0, 0.3))
    assert found["orphan"].verdict == CRASHED
    assert found["after"].verdict == Verdict.MATCH
    assert not processes_of(os.getpid())


@pytest.mark.parametrize("start", list(STARTS))
def test_a_clean_run_matches_and_leaves_nothing(start: str) -> None:
    found = run("a", "b", "c", start=STARTS[start], runs=3, nth=1)
    assert {item.verdict for item in found.values()} == {Verdict.MATCH}
    assert all(item.record.repeatable for item in found.values())
    assert not processes_of(os.getpid())


def test_dirt_in_the_workspace_and_rare_errors_show() -> None:
    found = run("a", "dirty", "rare", runs=4)
    assert found["a"].verdict == Verdict.MATCH
    for name, run_number in (("dirty", "run 2"), ("rare", "run 3")):
        assert found[name].verdict == Verdict.MISMATCH
        assert found[name].record.repeatable is False
        assert run_number in found[name].record.detail


def test_other_bits_in_a_second_process_show(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Work] = []

    def start(work: Work) -> Child:
        monkeypatch.setenv("FIRST_PROCESS", "" if work.known else "1")
        calls.append(work)
        return forked(work)

    found = run("a", "per-process", "real-per-process", start=start, nth=1)
    assert [sorted(work.known) for work in calls] == [
        [],
        sorted(item.trial.key for item in found.values()),
    ]
    assert found["a"].verdict == Verdict.MATCH
    for name in ("per-process", "real-per-process"):
        assert found[name].verdict == Verdict.MISMATCH
        assert "second process" in found[name].record.detail


def test_a_group_whose_checker_is_blind_is_invalid() -> None:
    items = (fakes.item("a"), fakes.item("b", "blind"), fakes.item("c", "blind"))
    found = run_items(items)
    assert [found[name].verdict for name in "abc"] == ["MATCH", "INVALID", "INVALID"]


def test_a_checker_that_crashes_makes_its_group_invalid() -> None:
    items = (fakes.item("a", "deadly"), fakes.item("b", "deadly"), fakes.item("c"))
    found = run_items(items)
    assert [found[name].verdict for name in "abc"] == ["INVALID", "INVALID", "MATCH"]


def test_a_dead_device_is_given_up_and_the_rest_is_unproven() -> None:
    items = tuple(fakes.item("segv", rep=number) for number in range(9))
    runner_results = run_many(items)
    verdicts = [item.verdict for item in runner_results]
    assert verdicts == [CRASHED] * 5 + [Verdict.UNPROVEN] * 4
    assert "given up" in runner_results[-1].record.detail


def run_many(items: tuple[tuple[Case, Trial], ...]) -> list[Result]:
    settings = Settings(device="fake")
    isolation = Isolation(forked, LIMITS, time.monotonic)
    runner = Runner(isolation, settings, time.monotonic, lambda _: None, lambda _: None)
    return list(runner.run([Part(fakes.NAME, items)]))


def test_a_budget_that_ended_leaves_trials_unproven() -> None:
    found = run("a", "hang", "b", until=time.monotonic() + 0.5)
    assert found["a"].verdict == Verdict.MATCH
    assert found["b"].verdict == Verdict.UNPROVEN
    assert "budget" in found["b"].record.detail


def test_a_worker_that_cannot_start_proves_nothing() -> None:
    def start(work: Work) -> Child:
        return spawn([sys.executable, "-c", "raise SystemExit(1)"], encode_work(work))

    found = run("a", "b", start=start)
    assert {item.verdict for item in found.values()} == {Verdict.UNPROVEN}


def stoppable(folder: Path, isolation: str, **options: object) -> subprocess.Popen[bytes]:
    """Start a run whose child hangs and ignores SIGTERM; wait until the child does."""
    code = (
        "import sys; from tests.stoppable import main; "
        f"sys.exit(main({str(folder)!r}, {isolation!r}))"
    )
    options.setdefault("start_new_session", True)
    argv = [sys.executable, "-c", code]
    process = subprocess.Popen(argv, cwd=ROOT, **options)  # type: ignore[call-overload]
    wait_for((folder / "pid").exists)
    return process  # type: ignore[no-any-return]


@pytest.mark.parametrize("whole_group", [False, True], ids=["parent", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("isolation", list(STARTS))
def test_nothing_is_left_running_after_a_stop(
    number: signal.Signals,
    isolation: str,
    tmp_path: Path,
    whole_group: bool,  # noqa: FBT001
) -> None:
    process = stoppable(tmp_path, isolation)
    child = int((tmp_path / "pid").read_text())
    (os.killpg if whole_group else os.kill)(process.pid, number)
    assert process.wait(20) == 130
    wait_for(lambda: not alive(child))


@pytest.mark.parametrize("isolation", list(STARTS))
def test_children_die_when_their_parent_is_killed(isolation: str, tmp_path: Path) -> None:
    process = stoppable(tmp_path, isolation)
    child = int((tmp_path / "pid").read_text())
    process.kill()
    assert process.wait(20) == -signal.SIGKILL
    wait_for(lambda: not alive(child))


@pytest.mark.parametrize("isolation", list(STARTS))
def test_nothing_is_left_running_when_the_terminal_closes(
    isolation: str, tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    rest = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = stoppable(tmp_path, isolation, preexec_fn=take_terminal, **rest)
    child = int((tmp_path / "pid").read_text())
    os.close(theirs)
    os.close(ours)
    assert process.wait(20) == 130
    wait_for(lambda: not alive(child))


@pytest.mark.parametrize("start", list(STARTS))
def test_a_child_that_takes_more_memory_than_allowed_is_named(start: str) -> None:
    names = ("before", "greedy", "after")
    found = run_items(
        tuple(fakes.item(name) for name in names), start=STARTS[start], memory=1 << 30
    )
    assert found["greedy"].verdict == CRASHED
    assert "memory limit" in found["greedy"].record.detail
    assert found["before"].verdict == found["after"].verdict == Verdict.MATCH
    # The same device is right where nothing limits it.
    assert run("greedy", start=STARTS[start])["greedy"].verdict == Verdict.MATCH


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def processes_of(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append(int(entry.name))
    return found
