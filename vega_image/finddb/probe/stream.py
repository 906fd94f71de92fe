"""Lines of a child that may stop talking: each is waited for only so long."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

CHUNK = 1 << 16
LONGEST = 1 << 20


class SilentError(Exception):
    """No line came in time."""


class LongLineError(Exception):
    """A line does not end."""


@dataclass(slots=True)
class Lines:
    """Reads one stream; use `lines_of`."""

    stream: IO[bytes]
    selector: selectors.BaseSelector
    _kept: bytes = b""

    def next(self, seconds: float) -> str | None:
        """Return the next line without its end, None at the end of the stream.

        Raises SilentError, LongLineError.
        """
        deadline = time.monotonic() + seconds
        while b"\n" not in self._kept:
            if len(self._kept) > LONGEST:
                raise LongLineError
            if not self.selector.select(max(0.0, deadline - time.monotonic())):
                raise SilentError
            data = os.read(self.stream.fileno(), CHUNK)
            if not data:
                return None
            self._kept += data
        line, _, self._kept = self._kept.partition(b"\n")
        return line.decode(errors="replace")


@contextmanager
def lines_of(stream: IO[bytes]) -> Iterator[Lines]:
    """Read a pipe line by line."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        yield Lines(stream, selector)
