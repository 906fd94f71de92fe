"""A stranger's libMIOpen in the jail: what it tries fails, and is told in words."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakemiopen import LIMITS, fake_cell
from vega_image.errors import EngineError, UnprovenError, VegaError
from vega_image.finddb.probe.build import PROGRAMS, SOURCES, tools
from vega_image.finddb.probe.cell import Cell
from vega_image.finddb.probe.question import read_solved, solve_question
from vega_image.finddb.probe.session import Outcome, Session
from vega_image.finddb.problem import parse_key
from vega_image.process import run
from vega_image.store import Store

pytestmark = pytest.mark.needs("gcc")
ENDLESS, HANGS = 3, 14
KINDS = ("net", "ipc", "uts", "mnt", "user", "cgroup")
Made = Callable[..., Cell]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def made(tmp_path: Path, store: Path) -> Made:
    return lambda *defines, **more: fake_cell(tmp_path, store, *defines, **more)


def question(number: int, channels: int) -> str:
    key = f"{channels}-8-8-3x3-4-8-8-1-1x1-1x1-1x1-0-NCHW-FP32-F"
    return solve_question(number, parse_key(key))


def refusal(cell: Cell) -> VegaError:
    with pytest.raises(VegaError) as caught:
        list(Session(cell=cell).ask([question(0, 3)]))
    return caught.value


@pytest.mark.parametrize(
    "compiler", ["gcc", pytest.param("clang", marks=pytest.mark.needs("clang"))]
)
def test_the_c_sources_compile_without_a_warning(compiler: str, tmp_path: Path) -> None:
    for name, flags in PROGRAMS.items():
        assert {"-Wall", "-Wextra", "-Werror", "-std=c11"} <= set(flags)
        argv = [compiler, *flags, str(SOURCES / f"{name}.c"), "-o", str(tmp_path / name)]
        assert run(argv).output == ""


def test_the_compiled_programs_are_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tools(Store(store), compiler="gcc")
    assert tools(Store(store), compiler="gcc") == first
    first.jail.write_bytes(b"damaged")
    assert tools(Store(store), compiler="gcc").jail.stat().st_size > 1000
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EngineError) as caught:
        tools(Store(store))
    assert caught.value.code == "COMPILER_ABSENT"
    assert caught.value.hint is not None


def test_an_honest_library_answers(made: Made) -> None:
    session = Session(cell=made("-DCTOR=0"))
    assert [name.solver for name in session.names()] == [
        "ConvDirectNaiveConvFwd",
        "GemmFwdRest",
    ]
    replies = list(session.ask([question(n, 3) for n in range(3)]))
    assert [read_solved(reply.lines[0]).index for reply in replies] == [0, 1, 2]
    assert read_solved(replies[0].lines[0]).solutions[0].id == 1


@pytest.mark.parametrize(
    ("channels", "outcome", "words"),
    [
        (13, Outcome.CRASHED, "SIGABRT"),
        (14, Outcome.TIMED_OUT, "no answer in 1 s"),
        (15, Outcome.FORBIDDEN, "system call 41"),
    ],
)
def test_a_question_that_ends_the_library_is_passed_over(
    made: Made, channels: int, outcome: Outcome, words: str
) -> None:
    limits = replace(LIMITS, answer_seconds=1.0) if channels == HANGS else LIMITS
    cell = made("-DCTOR=0", limits=limits)
    questions = [question(n, c) for n, c in enumerate((3, channels, 3, 3))]
    replies = list(Session(cell=cell).ask(questions))
    assert [reply.number for reply in replies] == [0, 1, 2, 3]
    outcomes = [reply.outcome for reply in replies]
    assert outcomes == [Outcome.ANSWERED, outcome, *[Outcome.ANSWERED] * 2]
    assert words in replies[1].detail


def test_a_library_that_always_fails_is_given_up(made: Made) -> None:
    cell = made("-DCTOR=0")
    with pytest.raises(UnprovenError) as caught:
        list(Session(cell=cell).ask([question(n, 13) for n in range(40)]))
    assert caught.value.code == "TOO_MANY_FAILURES"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (1, "forbidden system call 41"),
        (2, "forbidden system call"),
        (3, "not ready after 1 s"),
        (5, "SIGSEGV|SIGKILL|SIGABRT"),
        (6, "SIGXFSZ"),
    ],
    ids=["socket", "fork bomb", "sleep", "memory", "endless log"],
)
def test_a_hostile_constructor_is_contained_and_reported(
    made: Made, what: int, words: str
) -> None:
    limits = replace(LIMITS, start_seconds=1.0) if what == ENDLESS else LIMITS
    error = refusal(made(f"-DCTOR={what}", limits=limits))
    assert (error.code, error.exit_code) == ("LIBRARY_UNUSABLE", 9)
    assert re.search(words, error.message), error.message


def test_no_file_of_the_host_is_in_reach(made: Made, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host")
    cell = made("-DCTOR=4", f'-DSECRET="{secret}"')
    session = Session(cell=cell)
    list(session.ask([question(0, 3)]))
    said = dict(
        line.removeprefix("Error ").rsplit(" ", 1) for line in session.log if "Error" in line
    )
    read_only, absent = str(errno.EROFS), str(errno.ENOENT)
    assert said.pop("write /tmp/x") == "0"
    assert said.pop("uid 1000 kill") == "-1"
    places = ("/x", "/usr/x", "/probe/x", "/dev/x")
    assert {said.pop(f"write {place}") for place in places} == {read_only}
    assert set(said) == {
        f"read {p}" for p in ("/etc/passwd", "/proc/self/status", "/root", secret)
    }
    assert set(said.values()) == {absent}
    assert not (cell.library.root / "x").exists()


def test_a_symbol_that_nobody_has_is_named(made: Made) -> None:
    error = refusal(made("-DCTOR=0", "-DNEEDS=hipOfTheFuture"))
    assert (error.code, error.at) == ("SYMBOL_LACKING", "hipOfTheFuture")
    assert "hipOfTheFuture" in error.message


def test_a_root_without_its_c_library_is_an_error(made: Made) -> None:
    cell = made("-DCTOR=0")
    (cell.library.root / "usr/lib/x86_64-linux-gnu/libc.so.6").unlink()
    error = refusal(cell)
    assert error.code == "LIBRARY_UNUSABLE"
    assert "libc.so.6" in error.message


def test_it_has_namespaces_and_leaves_nothing_when_its_caller_is_killed(made: Made) -> None:
    cell = made("-DCTOR=3")
    command = cell.command(env={})
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *command], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        greeting = child.stdout.readline()
        theirs = {kind: Path(f"/proc/{child.pid}/ns/{kind}").readlink() for kind in KINDS}
        child.kill()
        child.wait()
        # The pipe ends when the last process that holds it is gone.
        rest = child.stdout.read()
    assert (greeting, rest) == (b"jailed\n", b"")
    ours = {kind: Path(f"/proc/self/ns/{kind}").readlink() for kind in KINDS}
    assert not [kind for kind in KINDS if theirs[kind] == ours[kind]]


@pytest.mark.needs("root")
def test_it_works_for_a_user_who_is_not_root(made: Made, tmp_path: Path) -> None:
    cell = made("-DCTOR=0")
    open_place = Path("/tmp") / f"vega-jail-{os.getpid()}"
    shutil.copytree(tmp_path, open_place, symlinks=True)
    try:
        moved = [word.replace(str(tmp_path), str(open_place)) for word in cell.command(env={})]
        run(["chmod", "-R", "a+rX", str(open_place)])
        argv = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *moved]
        done = subprocess.run(
            argv, input=f"{question(0, 3)}\n".encode(), stdout=subprocess.PIPE, check=False
        )
        assert done.stdout.decode().splitlines()[:2] == ["jailed", "ready"]
        assert read_solved(done.stdout.decode().splitlines()[2]).status == 0
    finally:
        shutil.rmtree(open_place)


def test_without_namespaces_nothing_is_loaded(made: Made, tmp_path: Path) -> None:
    cell = made("-DCTOR=0")
    program = tmp_path / "never.py"
    program.write_text("import sys; print('cannot make namespaces'); sys.exit(71)")
    (cell.folder / "jail").write_text(f"#!/bin/sh\nexec {sys.executable} {program}\n")
    error = refusal(cell)
    assert (error.code, error.exit_code) == ("ISOLATION_REFUSED", 5)
