"""Ctrl-C, TERM and kill -9 at any moment: nothing runs on, nothing is corrupt."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.fileserver import Fault, serving
from tests.processes import DEADLINE, marked, running, until
from tests.tiny import STEPS, Result, Tiny, rehash

pytestmark = pytest.mark.needs("docker", "busybox")
ENGINES = [
    pytest.param("docker"),
    pytest.param("podman", marks=pytest.mark.needs("podman")),
]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
OWNER = "io.vega-image.owner"
INTERRUPTED = 130
Event = dict[str, Any]


@dataclass
class Killed:
    """A run that was ended: its exit, and the steps it said were finished."""

    code: int
    finished: list[str]
    pid: int


@pytest.fixture
def user(tiny: Tiny) -> Iterator[Tiny]:
    """A user whose processes carry a mark and whose TMPDIR is watched."""
    with tempfile.TemporaryDirectory(prefix="vk-") as name:
        yield tiny.having(TMPDIR=name, VEGA_TEST_MARK=str(uuid.uuid4()))


def killed(user: Tiny, number: signal.Signals, *, when: Callable[[Event], bool]) -> Killed:
    """Start a build and send it a signal at the first event that `when` accepts."""
    finished: list[str] = []
    with user.start("build", "tiny", "--progress", "json") as child:
        assert child.stderr is not None
        for line in child.stderr:
            event = json.loads(line)
            if event.get("state") in {"built", "cached"}:
                finished.append(event["name"])
            if when(event):
                child.send_signal(number)
                break
        child.communicate(timeout=DEADLINE)
    return Killed(child.returncode, finished, child.pid)


def step(name: str, state: str) -> Callable[[Event], bool]:
    return lambda event: (event.get("name"), event.get("state")) == (name, state)


def nothing_runs(user: Tiny) -> None:
    mark = user.environ["VEGA_TEST_MARK"]
    until(lambda: not marked(mark), lambda: f"still running: {marked(mark)}")


def in_docker(pid: int) -> list[str]:
    """Containers and images of one vega-image process."""
    rows: list[str] = []
    for kind in (("ps", "--all"), ("images", "--all")):
        argv = ["docker", *kind, "--quiet", "--filter", f"label={OWNER}"]
        ids = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
        for one in ids:
            form = f'{{{{index .Config.Labels "{OWNER}"}}}}'
            argv = ["docker", "inspect", "--format", form, one]
            # Another test may take its own away meanwhile.
            said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
            if f"/{pid}/" in said:
                rows.append(one)
    return rows


def check_after(user: Tiny, run: Killed, number: signal.Signals) -> None:
    """What must hold right after the end of a killed run."""
    assert run.code == (-number if number is signal.SIGKILL else INTERRUPTED)
    nothing_runs(user)
    rehash(user.store)
    if number is not signal.SIGKILL:
        assert in_docker(run.pid) == []
        assert list((user.store / "tmp").iterdir()) == []
        assert list(Path(user.environ["TMPDIR"]).iterdir()) == []


def check_next(user: Tiny, run: Killed, *words: str) -> str:
    """The next run goes on where the killed one was, and leaves nothing of it."""
    value = user.build(*words)
    states = {row["name"]: row["state"] for row in value["steps"]}
    assert [states[name] for name in run.finished] == ["cached"] * len(run.finished)
    assert in_docker(run.pid) == []
    assert list((user.store / "tmp").iterdir()) == []
    assert list(Path(user.environ["TMPDIR"]).iterdir()) == []
    rehash(user.store)
    return str(value["digest"])


def test_kill_9_at_every_step_boundary(user: Tiny, reference: Result) -> None:
    """One store, killed eight times, each time a little further."""
    run = Killed(0, [], 0)
    for name in STEPS:
        for state in ("building", "built"):
            run = killed(user, signal.SIGKILL, when=step(name, state))
            check_after(user, run, signal.SIGKILL)
            done = STEPS[: STEPS.index(name) + (state == "built")]
            assert run.finished == done
    assert check_next(user, run) == reference[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", SIGNALS)
def test_in_the_middle_of_a_stage(user: Tiny, engine: str, number: signal.Signals) -> None:
    user = replace(user, engine=engine)
    seconds = f"0.9{random.randrange(10**6):06}1"
    user.edit('seconds: "0"', f'seconds: "{seconds}"')

    def runs() -> bool:
        return running("sleep", seconds)

    def in_stage(event: Event) -> bool:
        if step("greet", "building")(event):
            until(runs, lambda: "the stage never ran")
            return True
        return False

    run = killed(user, number, when=in_stage)
    check_after(user, run, number)
    until(lambda: not runs(), lambda: "the stage runs on")
    assert run.finished == ["root"]
    check_next(user, run)


@pytest.mark.parametrize("number", SIGNALS)
def test_in_the_middle_of_a_download(user: Tiny, number: signal.Signals) -> None:
    deb = next(user.archive.root.glob("pool/main/t/tiny-data/*.deb"))
    path = f"/{deb.relative_to(user.archive.root)}"
    cut = 200_000
    with serving(user.archive.root) as server:
        user = user.having(VEGA_IMAGE_DEBIAN_MIRROR=server.url)
        held = threading.Event()
        server.faults[path] = Fault(cut=cut, hold=held)

        def held_up(event: Event) -> bool:
            if "fetching" in event.get("text", ""):
                held.wait(DEADLINE)
                # The other files have time to arrive.
                until(lambda: len(list(user.store.rglob("objects/*/*/*"))) >= 8, str)
                return True
            return False

        run = killed(user, number, when=held_up)
        assert run.code == (-number if number is signal.SIGKILL else INTERRUPTED)
        rehash(user.store)
        server.faults.clear()
        server.requests.clear()
        check_next(user, run)
        assert [request[0] for request in server.requests] == [path], "only this one was left"
        (resumed,) = server.asked(path)
        assert 0 < int(resumed.removeprefix("bytes=").rstrip("-")) <= cut


def test_kill_9_at_random_moments(user: Tiny, reference: Result) -> None:
    seed = random.randrange(2**32)
    print(f"{seed=}")  # noqa: T201 - shown when it fails
    moments = random.Random(seed)
    run = Killed(0, [], 0)
    for _attempt in range(4):
        with user.start("build", "tiny") as child:
            threading.Event().wait(moments.uniform(0.2, 1.5))
            child.kill()
            child.communicate(timeout=DEADLINE)
        nothing_runs(user)
        rehash(user.store)
        run = Killed(0, [], child.pid)
    assert check_next(user, run) == reference[0]


def test_ctrl_c_twice_in_a_hurry(user: Tiny, reference: Result) -> None:
    with user.start("build", "tiny", "--progress", "json") as child:
        assert child.stderr is not None
        for line in child.stderr:
            if step("greet", "building")(json.loads(line)):
                break
        child.send_signal(signal.SIGINT)
        threading.Event().wait(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=DEADLINE)
    assert child.returncode == INTERRUPTED
    assert "Traceback" not in out + err
    nothing_runs(user)
    assert check_next(user, Killed(INTERRUPTED, ["root"], child.pid)) == reference[0]
