"""The factory's only subprocess: argv lists in, lines and exit status out.

Every child runs in its own process group and dies with us, also when we are killed: on
Linux through setpriv(1)'s parent-death signal, on Ctrl-C through the group.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess  # noqa: TID251 - this is the one place
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from vega_image.errors import EngineError

GRACE_SECONDS = 5.0

Child: TypeAlias = "subprocess.Popen[bytes]"


@dataclass(frozen=True, slots=True)
class Completed:
    """What a finished program said; a non-zero status is data, not an exception."""

    argv: tuple[str, ...]
    returncode: int
    output: str

    @property
    def command(self) -> str:
        """The command as a person would type it."""
        return shlex.join(self.argv)


def which(program: str) -> str | None:
    """Return the path of a program on PATH, or None."""
    return shutil.which(program)


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: IO[bytes] | None = None,
    on_line: Callable[[str], None] = lambda _line: None,
) -> Completed:
    """Run argv to its end, passing each line of stdout and stderr on as it appears.

    Raises EngineError TOOL_ABSENT when the program is not installed.
    """
    lines: list[str] = []
    with _started(argv, env=env, cwd=cwd, stdin=stdin, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        for raw in child.stdout:
            line = raw.decode(errors="replace")
            lines.append(line)
            on_line(line.rstrip("\r\n"))
        returncode = child.wait()
    return Completed(tuple(argv), returncode, "".join(lines))


@contextmanager
def output_of(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdin: IO[bytes] | None = None,
    stderr: IO[bytes],
) -> Iterator[Child]:
    """Run argv and hand its stdout over as a binary stream (`.stdout`, `.wait()`).

    The caller reads to the end and then calls `.wait()`; leaving early kills the child.
    """
    with _started(argv, env=env, cwd=None, stdin=stdin, stderr=stderr) as child:
        yield child


@contextmanager
def tended(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path,
    stdout: IO[bytes],
    stderr: IO[bytes],
) -> Iterator[Child]:
    """Run a program that cleans up after itself, its output going to files of the caller.

    Ask it to end with `ask_to_end`; when we die, even by KILL, it gets the same TERM. Leaving
    kills what is still alive of its process group, so wait for its end before.
    """
    child = _spawn(
        argv, env=env, cwd=cwd, stdin=None, stdout=stdout, stderr=stderr, death="TERM"
    )
    try:
        yield child
    finally:
        _signal_group(child, signal.SIGKILL)
        child.wait()


def ask_to_end(child: Child) -> None:
    """Send TERM to the program itself; what it started is its own to end."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)


@contextmanager
def _started(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | None,
    stdin: IO[bytes] | None,
    stderr: int | IO[bytes],
) -> Iterator[Child]:
    child = _spawn(
        argv,
        env=env,
        cwd=cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        death="KILL",
    )
    try:
        yield child
    finally:
        stop(child)


def _spawn(  # noqa: PLR0913 - Popen's own, and the signal for our death
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | None,
    stdin: IO[bytes] | None,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    death: str,
) -> Child:
    program = shutil.which(argv[0], path=None if env is None else env.get("PATH"))
    if program is None:
        msg = f"{argv[0]} is not installed"
        raise EngineError("TOOL_ABSENT", msg, hint="vega-image doctor")
    guard = shutil.which("setpriv")
    prefix = [guard, "--pdeathsig", death, "--"] if guard else []
    return subprocess.Popen(
        [*prefix, program, *argv[1:]],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdin=stdin if stdin is not None else subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def ended_within(child: Child, seconds: float) -> int | None:
    """Wait at most so long for a child's end; return its status, None while it runs."""
    try:
        return child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def stop(child: Child) -> None:
    """End a child and its whole process group: TERM, a grace period, then KILL."""
    if child.poll() is None:
        _signal_group(child, signal.SIGTERM)
        try:
            child.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _signal_group(child, signal.SIGKILL)
            child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _signal_group(child: Child, number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return
