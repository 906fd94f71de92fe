"""Bytes that came from outside, read through a bounded view: no read goes past its end."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

from vega_image.digest import PREFIX
from vega_image.errors import StageError

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Region:
    """`size` bytes of `path` from `offset`: a whole file, or a member of a plain tar."""

    path: Path
    offset: int = 0
    size: int | None = None


class Window:
    """`size` bytes of `buffer` from `base`; every offset is relative to `base`.

    `name` is what messages call it. Reads outside raise StageError TRUNCATED.
    """

    def __init__(
        self,
        buffer: bytes | mmap.mmap,
        name: str,
        *,
        base: int = 0,
        size: int | None = None,
    ) -> None:
        self.name = name
        self.base = base
        self.size = len(buffer) - base if size is None else size
        self._buffer = buffer
        if base < 0 or self.size < 0 or base + self.size > len(buffer):
            msg = f"{name}: the file holds {len(buffer)} bytes, {base}+{self.size} were named"
            raise StageError("TRUNCATED", msg, at=name)

    def require(self, offset: int, size: int) -> None:
        """Raise unless `size` bytes at `offset` are inside."""
        if offset < 0 or size < 0 or offset + size > self.size:
            msg = f"{self.name}: {size} bytes at {offset:#x} go past its end ({self.size:#x})"
            raise StageError("TRUNCATED", msg, at=self.name)

    def take(self, offset: int, size: int) -> bytes:
        """Copy bytes out."""
        self.require(offset, size)
        start = self.base + offset
        return self._buffer[start : start + size]

    def unpack(self, layout: Struct, offset: int) -> tuple[Any, ...]:
        """Decode one record."""
        self.require(offset, layout.size)
        return layout.unpack_from(self._buffer, self.base + offset)

    def table(self, layout: Struct, offset: int, count: int) -> Iterator[tuple[Any, ...]]:
        """Decode `count` records that lie one after another."""
        return layout.iter_unpack(self.take(offset, layout.size * count))

    def find(self, needle: bytes, start: int, end: int) -> int:
        """First place of `needle` in [start, end), or -1."""
        self.require(start, end - start)
        found = self._buffer.find(needle, self.base + start, self.base + end)
        return found if found < 0 else found - self.base

    def nonzero(self, start: int, end: int) -> int:
        """First byte in [start, end) that is not zero, or `end`."""
        for offset in range(start, end, CHUNK):
            chunk = self.take(offset, min(CHUNK, end - offset))
            rest = chunk.lstrip(b"\0")
            if rest:
                return offset + len(chunk) - len(rest)
        return end


@contextmanager
def opened(region: Region, name: str) -> Iterator[Window]:
    """Map a region read-only and call it `name`."""
    with region.path.open("rb") as file:
        total = region.path.stat().st_size
        size = total - region.offset if region.size is None else region.size
        if not total:
            yield Window(b"", name, base=region.offset, size=size)
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield Window(mapped, name, base=region.offset, size=size)


def digest_region(region: Region) -> str:
    """Hash a region: `sha256:` + hex. Releases the interpreter, so it may run beside work."""
    state = hashlib.sha256()
    with opened(region, str(region.path)) as window:
        for offset in range(0, window.size, CHUNK):
            state.update(window.take(offset, min(CHUNK, window.size - offset)))
    return PREFIX + state.hexdigest()
