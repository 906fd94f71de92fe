"""Compress a layer so that a rebuild gives the same bytes on any machine.

zstd always runs its multi-threaded coder, also with one worker: where it cuts its jobs
depends on the window alone, so the number of cores cannot show in the bytes, while the
single-threaded coder writes other ones. gzip's header is written here: no time, no name, no
operating system.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import ValidationError

from vega_image.spec import Codec, Compression
from vega_image.store import CHUNK, Store

GZIP_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_MAX_WORKERS: Final = 16
_GZIP_MAX_LEVEL: Final = 9


@dataclass(frozen=True, slots=True)
class Blob:
    """A compressed layer in the store: `digest` names it, `size` is in bytes."""

    digest: str
    size: int


class _Coder(Protocol):
    def compress(self, data: memoryview, /) -> bytes:
        """Take bytes in, give what is ready out."""
        ...

    def flush(self) -> bytes:
        """Give the rest out."""
        ...


def compress(
    diff_id: str,
    options: Compression,
    store: Store,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Blob:
    """Compress the store object `diff_id` into a new object.

    `workers` changes how fast, never what (default: one per core, at most 16); gzip has one.
    `progress` counts bytes of input.
    """
    size = store.path(diff_id).stat().st_size
    coder = _coder(options, size, workers or min(os.cpu_count() or 1, _MAX_WORKERS))
    with store.writer() as out:
        done = 0
        for data in _pieces(store, diff_id):
            out.write(coder.compress(data))
            done += len(data)
            progress(done, size)
        out.write(coder.flush())
        return Blob(out.commit(), out.size)


def tool_versions(codec: Codec) -> dict[str, str]:
    """Name the library whose version decides the bytes, for the lock.

    >>> list(tool_versions(Codec.GZIP))
    ['zlib']
    """
    if codec is Codec.GZIP:
        return {"zlib": zlib.ZLIB_RUNTIME_VERSION}
    import zstandard  # noqa: PLC0415 - keeps `--help` fast

    return {"libzstd": ".".join(map(str, zstandard.ZSTD_VERSION))}


def media_type(codec: Codec) -> str:
    """Return the OCI media type of a layer under a codec.

    >>> media_type(Codec.ZSTD)
    'application/vnd.oci.image.layer.v1.tar+zstd'
    """
    return f"application/vnd.oci.image.layer.v1.tar+{codec.value}"


def describe(options: Compression) -> str:
    """Write options as one word, for a label; `parse` reads it back.

    >>> describe(Compression(codec=Codec.ZSTD, level=19))
    'zstd:19:0'
    """
    return f"{options.codec.value}:{options.level}:{options.window_log or 0}"


def parse(text: str) -> Compression | None:
    """Read what `describe` wrote; None for anything else.

    >>> parse("zstd:19:0") == Compression(codec=Codec.ZSTD, level=19), parse("zstd:99:0")
    (True, None)
    """
    match = re.fullmatch(r"(zstd|gzip):([0-9]{1,2}):([0-9]{1,2})", text)
    if match is None:
        return None
    try:
        return Compression(
            codec=Codec(match[1]), level=int(match[2]), window_log=int(match[3]) or None
        )
    except ValidationError:
        return None


def _pieces(store: Store, name: str) -> Iterator[memoryview]:
    with store.path(name).open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    for start in range(0, len(whole), CHUNK):
        yield whole[start : start + CHUNK]


def _coder(options: Compression, size: int, workers: int) -> _Coder:
    if options.codec is Codec.GZIP:
        return Gzip(min(options.level, _GZIP_MAX_LEVEL))
    import zstandard  # noqa: PLC0415 - keeps `--help` fast

    # Asking for a window of 0 is asking for the level's own.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        options.level,
        source_size=size,
        window_log=options.window_log or 0,
        threads=workers,
        write_content_size=True,
        write_checksum=True,
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=size)


class Gzip:
    """zlib under a header that says nothing: no time, no name, no operating system."""

    def __init__(self, level: int) -> None:
        self._deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._pending = GZIP_HEADER
        self._crc = 0
        self._size = 0

    def compress(self, data: bytes | memoryview, /) -> bytes:
        """Take bytes in, give what is ready out."""
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        ready, self._pending = self._pending + self._deflate.compress(data), b""
        return ready

    def flush(self) -> bytes:
        """Give the rest out."""
        tail = struct.pack("<II", self._crc, self._size & 0xFFFFFFFF)
        return self._pending + self._deflate.flush() + tail
