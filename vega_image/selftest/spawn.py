"""The only place of selftest that starts processes, and that ends them.

A child owns a session, so that it and whatever it started die together. What it says comes
through a pipe of its own; what libraries print goes to a file whose end is kept for messages.
"""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess  # noqa: TID251 - this module is selftest's only spawner
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, NoReturn, Protocol

CHUNK = 1 << 16
NOISE = 1 << 16
POLL_SECONDS = 0.02


class Child(Protocol):
    """A process that computes for us and may do anything wrong."""

    @property
    def pid(self) -> int:
        """Its process id, which on POSIX is also its group's."""
        ...

    def read(self, timeout: float) -> bytes | None:
        """Return bytes, b"" at the end of the pipe, None if nothing came in `timeout` s."""
        ...

    def finished(self) -> int | None:
        """Return the exit code, minus the signal's number, or None while it runs."""
        ...

    def stop(self, grace: float) -> None:
        """End it and all it started: ask, wait `grace` seconds, then kill."""
        ...

    def noise(self) -> str:
        """Return the end of what it printed."""
        ...


class Noise:
    """What a child prints: a file while it lives, then the end of it."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = tempfile.TemporaryFile()  # noqa: SIM115 - see stop
        self._said = ""

    def fileno(self) -> int:
        """Return the file to print to."""
        assert self._file is not None
        return self._file.fileno()

    def tail(self) -> str:
        """Return the end of what was printed so far."""
        if self._file is not None:
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(0, size - NOISE))
            self._said = self._file.read(NOISE).decode("utf-8", "replace").strip()
        return self._said

    def stop(self) -> None:
        """Keep the end and let the file go."""
        self.tail()
        if self._file is not None:
            self._file.close()
            self._file = None


class ForkedChild:
    """A copy of this process that runs one function."""

    def __init__(self, pid: int, pipe: int, noise: Noise) -> None:
        self._pid, self._pipe, self._noise = pid, pipe, noise
        self._exit: int | None = None

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._pid

    def read(self, timeout: float) -> bytes | None:
        """Wait for bytes."""
        if not select.select([self._pipe], [], [], timeout)[0]:
            return None
        return os.read(self._pipe, CHUNK)

    def finished(self) -> int | None:
        """Look without reaping first: the group is killed while its number is still taken."""
        if self._exit is None:
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if os.waitid(os.P_PID, self._pid, flags) is None:
                return None
            _kill_group(self._pid)
            self._exit = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._exit

    def stop(self, grace: float) -> None:
        """End the child's session and close the pipe; may be called again."""
        if self.finished() is None:
            _ask_group(self._pid)
            if not _wait(self.finished, grace):
                _kill_group(self._pid)
                _wait(self.finished, grace)
        self._noise.stop()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def noise(self) -> str:
        """Return the end of what the child printed."""
        return self._noise.tail()


def fork(body: Callable[[int], None]) -> Child:
    """Run `body(fd)` in a copy of this process; `fd` is where it may write to us."""
    noise = Noise()
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_child(body, writing, noise.fileno())
    os.close(writing)
    return ForkedChild(pid, reading, noise)


def _be_child(body: Callable[[int], None], pipe: int, noise: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.dup2(noise, 1)
        os.dup2(noise, 2)
        body(pipe)
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may run past here in the copy
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


class SpawnedChild:
    """A fresh process of ours; reads through a thread, since Windows pipes have no select."""

    def __init__(self, process: subprocess.Popen[bytes], noise: Noise) -> None:
        self._process, self._noise = process, noise
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with stdout:
            while chunk := os.read(stdout.fileno(), CHUNK):
                self._chunks.put(chunk)
        self._chunks.put(b"")

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def read(self, timeout: float) -> bytes | None:
        """Wait for bytes."""
        try:
            return self._chunks.get(timeout=timeout)
        except queue.Empty:
            return None

    def finished(self) -> int | None:
        """Return the exit code once there is one; whatever the child left is killed."""
        running = self._process.returncode is None
        code = self._process.poll()
        if running and code is not None:
            _kill_group(self.pid)
        return code

    def stop(self, grace: float) -> None:
        """End the child and what it started."""
        if self.finished() is None:
            _ask_group(self.pid)
            # On Windows there is no polite way; elsewhere the group has been asked already.
            if os.name == "nt":
                self._process.terminate()
            if not _wait(self.finished, grace):
                _kill_group(self.pid)
                self._process.kill()
                _wait(self.finished, grace)
        self._noise.stop()

    def noise(self) -> str:
        """Return the end of what the child printed."""
        return self._noise.tail()


def spawn(
    argv: Sequence[str], job: bytes, *, environ: Mapping[str, str] | None = None
) -> Child:
    """Start a program; `job` is its standard input, its standard output comes back to us."""
    given = tempfile.TemporaryFile()  # noqa: SIM115 - the child's input, not ours to close early
    given.write(job)
    given.seek(0)
    noise = Noise()
    process = subprocess.Popen(
        list(argv),
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=noise.fileno(),
        env=None if environ is None else dict(environ),
        start_new_session=True,
    )
    given.close()
    return SpawnedChild(process, noise)


def own_command() -> list[str]:
    """Return how to start this suite again, from a checkout, an installation or the pyz."""
    loader = getattr(sys.modules[__name__].__spec__, "loader", None)
    archive = getattr(loader, "archive", None)
    if isinstance(archive, str):
        return [sys.executable, archive]
    return [sys.executable, "-m", "vega_image.selftest"]


def claim_stdout() -> int:
    """Keep the standard output for ourselves; what libraries print goes to standard error."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return ours


def _ask_group(pid: int) -> None:
    _signal_group(pid, "SIGTERM")


def _kill_group(pid: int) -> None:
    _signal_group(pid, "SIGKILL")


def _signal_group(pid: int, name: str) -> None:
    number = getattr(signal, name, None)
    kill = getattr(os, "killpg", None)
    if number is None or kill is None:
        # Windows: no groups, and SIGKILL has no name there.
        return
    try:
        kill(pid, number)
    except ProcessLookupError:
        # Not yet its own group, or all gone.
        _signal_one(pid, number)
    except PermissionError:
        return


def _signal_one(pid: int, number: int) -> None:
    try:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            os.kill(pid, number)
    except (ChildProcessError, ProcessLookupError):
        return


def _wait(finished: Callable[[], int | None], seconds: float) -> bool:
    never = threading.Event()
    until = time.monotonic() + seconds
    while finished() is None:
        if time.monotonic() >= until:
            return False
        never.wait(POLL_SECONDS)
    return True
