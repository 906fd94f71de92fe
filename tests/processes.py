"""What runs: processes found by a mark in their environment, and waiting with a deadline."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

DEADLINE = 20.0


def marked(mark: str) -> list[str]:
    """Command lines of what runs with `mark` in its environment, as children inherit it."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_bytes().decode(errors="replace"))
    return found


def running(*argv: str) -> bool:
    """Whether some process has exactly this command line."""
    wanted = "".join(f"{word}\0" for word in argv).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == wanted:
                return True
    return False


def until(true: Callable[[], bool], why: Callable[[], object]) -> None:
    """Wait for something to come true; fail with `why` after the deadline."""
    waiter = threading.Event()
    deadline = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < deadline, why()
        waiter.wait(0.02)
