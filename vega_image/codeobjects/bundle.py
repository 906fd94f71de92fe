"""Offload bundles: several code objects, one per target, behind one table of contents.

Plain (`__CLANG_OFFLOAD_BUNDLE__`) as in clang's ClangOffloadBundler, "Layout of Bundled Code
Object"; compressed (`CCOB`) versions 1 to 3 as in the same page, "Compression and
Decompression", and in the packed headers of LLVM's OffloadBundle.cpp.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

from vega_image.codeobjects.target import Target, target_of_entry
from vega_image.codeobjects.window import Window
from vega_image.errors import StageError

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"
COUNT = Struct("<Q")
ENTRY = Struct("<QQQ")
# version -> (total size or nothing, uncompressed size, hash), after magic, version, method
COMMON = Struct("<4sHH")
SIZES = {1: Struct("<IQ"), 2: Struct("<IIQ"), 3: Struct("<QQQ")}
ZLIB, ZSTD = 0, 1

MOST_ENTRIES = 1024
LONGEST_ID = 256
# A header may promise any size; more than this is refused before a byte is decompressed. The
# largest of Debian's rocBLAS 7.2.4 unpacks to 52 MB, with fourteen GPUs in it.
MOST_UNCOMPRESSED = 1 << 30
# A few bytes of zstd can stand for 128 KiB: small bites bound what a bomb unpacks to.
BITE = 1 << 12


@dataclass(frozen=True, slots=True)
class Entry:
    """One code object: `size` bytes at `offset` of the bundle's `data`."""

    id: str
    offset: int
    size: int

    @property
    def target(self) -> Target | None:
        """The GPU it is for; None for the host's (empty) entry."""
        return target_of_entry(self.id)


@dataclass(frozen=True, slots=True)
class Compressed:
    """The header of a CCOB: `payload` is where the compressed bytes begin."""

    version: int
    method: int
    payload: int
    total: int | None
    uncompressed: int
    md5_prefix: bytes


@dataclass(frozen=True, slots=True)
class Bundle:
    """What lies in [start, end) of a file.

    `data` is the window the entries lie in: the file's own, or what a CCOB unpacked to;
    `contents` is where the table of contents starts in it, `header` where it ends.
    """

    start: int
    end: int
    data: Window
    contents: int
    header: int
    entries: tuple[Entry, ...]
    compressed: Compressed | None = None


class Decompressor(Protocol):
    """What zlib's and zstandard's decompressing objects share."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Input after the end of the stream."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """Feed input, get output."""
        ...


def read_bundles(window: Window, start: int, end: int) -> Iterator[Bundle]:
    """Read the bundles of [start, end), which may hold nothing else but zeros between them.

    Raises StageError MALFORMED_BUNDLE naming file and offset.
    """
    place = window.nonzero(start, end)
    while place < end:
        bundle = read_bundle(window, place, end)
        yield bundle
        place = window.nonzero(bundle.end, end)


def read_bundle(window: Window, start: int, end: int) -> Bundle:
    """Read the bundle at `start`, of either kind, that ends before `end`."""
    head = window.take(start, min(len(MAGIC), end - start))
    if head == MAGIC:
        return _plain(window, start, end)
    if head.startswith(COMPRESSED_MAGIC):
        return _compressed(window, start, end)
    raise malformed(window, start, f"no bundle starts here but {head[:8].hex()}")


def malformed(window: Window, place: int, what: str) -> StageError:
    """Say what is wrong with a bundle."""
    msg = f"{window.name}: bundle at {place:#x}: {what}"
    return StageError("MALFORMED_BUNDLE", msg, at=window.name)


def _plain(window: Window, start: int, end: int) -> Bundle:
    cursor = start + len(MAGIC) + COUNT.size
    if cursor > end:
        raise malformed(window, start, "its header is cut off")
    (count,) = window.unpack(COUNT, start + len(MAGIC))
    if not 0 < count <= MOST_ENTRIES:
        raise malformed(window, start, f"{count} entries")
    entries: list[Entry] = []
    for _ in range(count):
        entry, cursor = _entry(window, start, cursor, end)
        entries.append(entry)
    _check_disjoint(window, start, cursor, entries)
    last = max([cursor, *(entry.offset + entry.size for entry in entries if entry.size)])
    return Bundle(start, last, window, start, cursor, tuple(entries))


def _entry(window: Window, start: int, cursor: int, end: int) -> tuple[Entry, int]:
    if cursor + ENTRY.size > end:
        raise malformed(window, start, "its table of contents is cut off")
    offset, size, length = window.unpack(ENTRY, cursor)
    cursor += ENTRY.size
    if length > min(LONGEST_ID, end - cursor):
        raise malformed(window, start, f"an entry's name of {length} bytes")
    name = window.take(cursor, length)
    if not name.isascii() or not name.decode("ascii", "replace").isprintable():
        raise malformed(window, start, f"an entry called {name!r}")
    if size and start + offset + size > end:
        what = f"entry {name.decode()} of {size} bytes at {offset:#x} goes past its end"
        raise malformed(window, start, what)
    return Entry(name.decode(), start + offset, size), cursor + length


def _check_disjoint(window: Window, start: int, header: int, entries: list[Entry]) -> None:
    names = [entry.id for entry in entries]
    if len(set(names)) != len(names):
        raise malformed(window, start, "two entries have one name")
    previous = header
    for entry in sorted((e for e in entries if e.size), key=lambda e: e.offset):
        if entry.offset < previous:
            raise malformed(window, start, f"entry {entry.id} overlaps what is before it")
        previous = entry.offset + entry.size


def _compressed(window: Window, start: int, end: int) -> Bundle:
    head = read_compressed_header(window, start, end)
    data, used = _decompress(
        window, start, head, end if head.total is None else start + head.total
    )
    stop = head.payload + used
    if head.total is not None and stop != start + head.total:
        raise malformed(window, start, "bytes left over after its compressed data")
    inner = Window(data, f"{window.name}@{start:#x}")
    bundle = _plain(inner, 0, inner.size) if data.startswith(MAGIC) else None
    if bundle is None:
        raise malformed(window, start, "no bundle inside its compressed data")
    return Bundle(start, stop, inner, 0, bundle.header, bundle.entries, head)


def read_compressed_header(window: Window, start: int, end: int) -> Compressed:
    """Read a CCOB header without unpacking anything."""
    if start + COMMON.size > end:
        raise malformed(window, start, "its header is cut off")
    _, version, method = window.unpack(COMMON, start)
    sizes = SIZES.get(version)
    if sizes is None or method not in {ZLIB, ZSTD}:
        raise malformed(window, start, f"CCOB version {version}, method {method}")
    payload = start + COMMON.size + sizes.size
    if payload > end:
        raise malformed(window, start, "its header is cut off")
    *totals, uncompressed, digest = window.unpack(sizes, start + COMMON.size)
    total = totals[0] if totals else None
    if total is not None and not payload < start + total <= end:
        raise malformed(window, start, f"a total size of {total} bytes")
    if not 0 < uncompressed <= MOST_UNCOMPRESSED:
        raise malformed(window, start, f"an uncompressed size of {uncompressed} bytes")
    return Compressed(
        version, method, payload, total, uncompressed, digest.to_bytes(8, "little")
    )


def _decompress(window: Window, start: int, head: Compressed, end: int) -> tuple[bytes, int]:
    """Return the content and how many compressed bytes it took."""
    stream = _decompressor(head.method)
    parts: list[bytes] = []
    have = 0
    place = head.payload
    while place < end and not stream.eof and have <= head.uncompressed:
        chunk = window.take(place, min(BITE, end - place))
        parts.append(_feed(stream, chunk, window, start))
        have += len(parts[-1])
        place += len(chunk)
    if not stream.eof or have != head.uncompressed:
        raise malformed(window, start, f"{head.uncompressed} bytes promised, {have} unpacked")
    data = b"".join(parts)
    if hashlib.md5(data, usedforsecurity=False).digest()[:8] != head.md5_prefix:
        raise malformed(window, start, "its content does not have the hash of its header")
    return data, place - len(stream.unused_data) - head.payload


def _feed(stream: Decompressor, chunk: bytes, window: Window, start: int) -> bytes:
    import zstandard  # noqa: PLC0415 - keeps `--help` fast

    try:
        return stream.decompress(chunk)
    except (zlib.error, zstandard.ZstdError) as error:
        raise malformed(window, start, f"cannot be unpacked: {error}") from error


def _decompressor(method: int) -> Decompressor:
    if method == ZLIB:
        return zlib.decompressobj()
    import zstandard  # noqa: PLC0415 - keeps `--help` fast

    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
