"""Attend a long program: each line as it appears, a wall clock, an end that leaves nothing.

Its output goes through named pipes that stay open on both ends here. So a program outlives us
long enough to clean up (a plain pipe would end it by SIGPIPE), and something that the program
starts, such as a VM's serial port, can be read through the same loop.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from vega_image.process import Child, ask_to_end, tended

OUT, LOG = "out", "log"
_TICK = 0.1
_CHUNK = 1 << 16
# A serial port may never send a newline.
_LONGEST = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What to start: argv, its whole environment, its working folder."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How long to wait, in seconds, and who hears the lines: (name of the pipe, line)."""

    timeout: float
    grace: float
    on_line: Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it ended: the exit status (a signal is negative), and whether the clock did it."""

    returncode: int
    timed_out: bool


def attend(call: Call, folder: Path, watch: Watch, *, extra: Sequence[str] = ()) -> Ended:
    """Run to the end, or to the timeout; pipes `OUT`, `LOG` and `extra` lie in `folder`.

    On the timeout, and on whatever is raised meanwhile (Ctrl-C), the program is asked to end,
    is given the grace, and then its process group is killed. Raises EngineError TOOL_ABSENT.
    """
    with _pipes([folder / name for name in (OUT, LOG, *extra)]) as pipes:
        with (
            (folder / OUT).open("r+b", buffering=0) as out,
            (folder / LOG).open("r+b", buffering=0) as log,
            tended(call.argv, env=call.env, cwd=call.cwd, stdout=out, stderr=log) as child,
        ):
            timed_out = _until_end(child, pipes, watch)
        for pipe in pipes:
            while pipe.read(watch.on_line):
                continue
            pipe.flush(watch.on_line)
    return Ended(returncode=child.wait(), timed_out=timed_out)


def _until_end(child: Child, pipes: Sequence[_Pipe], watch: Watch) -> bool:
    try:
        if _pump(child, pipes, watch.timeout, watch.on_line):
            return False
    except BaseException:
        # Nobody listens any more, but a full pipe must not keep it from cleaning up.
        ask_to_end(child)
        _pump(child, pipes, watch.grace, lambda _name, _line: None)
        raise
    ask_to_end(child)
    _pump(child, pipes, watch.grace, watch.on_line)
    return True


def _pump(
    child: Child, pipes: Sequence[_Pipe], seconds: float, on_line: Callable[[str, str], None]
) -> bool:
    """Pass lines on until the child ends (True) or the time is over (False)."""
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as ready, _end_of(child) as end:
        for pipe in pipes:
            ready.register(pipe.handle, selectors.EVENT_READ, pipe)
        if end is not None:
            ready.register(end, selectors.EVENT_READ)
        while child.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for key, _events in ready.select(min(left, _TICK)):
                if key.data is not None:
                    key.data.read(on_line)
    return True


@contextmanager
def _end_of(child: Child) -> Iterator[int | None]:
    """Yield a handle that can be read once the child has ended; None where there is none."""
    try:
        handle = os.pidfd_open(child.pid)
    except OSError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


@dataclass(slots=True)
class _Pipe:
    name: str
    handle: int
    held: bytes = b""

    def read(self, on_line: Callable[[str, str], None]) -> bool:
        """Take one piece of what is there, and pass whole lines on; False: nothing there."""
        try:
            chunk = os.read(self.handle, _CHUNK)
        except BlockingIOError:
            return False
        *whole, self.held = (self.held + chunk).split(b"\n")
        for line in whole:
            self._tell(line, on_line)
        if len(self.held) > _LONGEST:
            self.flush(on_line)
        return True

    def flush(self, on_line: Callable[[str, str], None]) -> None:
        """Pass on what has no end of line yet."""
        if self.held:
            held, self.held = self.held, b""
            self._tell(held, on_line)

    def _tell(self, line: bytes, on_line: Callable[[str, str], None]) -> None:
        on_line(self.name, line.rstrip(b"\r").decode(errors="replace"))


@contextmanager
def _pipes(paths: Sequence[Path]) -> Iterator[list[_Pipe]]:
    with ExitStack() as stack:
        pipes = []
        for path in paths:
            os.mkfifo(path, 0o600)
            stack.callback(path.unlink, missing_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, handle)
            pipes.append(_Pipe(path.name, handle))
        yield pipes
