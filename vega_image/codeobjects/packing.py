"""One bundle reduced to the code objects that stay: where each goes, and as what.

A compressed bundle becomes a plain one when there is room for that. Which of the two a bundle
is, the HIP runtime reads from the bundle's own first bytes (clr's hip_fatbin.cpp): plain code
objects are then loaded from where they lie, compressed ones unpacked into memory first. Plain,
they also stay byte for byte what the distribution built, in the file and not only after
unpacking, and a compressed layer around them gets smaller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from vega_image.codeobjects.bundle import (
    COMMON,
    COMPRESSED_MAGIC,
    COUNT,
    ENTRY,
    MAGIC,
    SIZES,
    ZSTD,
    Bundle,
    Entry,
    read_bundle,
)
from vega_image.codeobjects.window import Window

PAGE: Final = 4096
# From here on the bundles of rocBLAS shrink by less than a percent per doubling of the time.
_LEVEL: Final = 12


def is_kept(entry: Entry, keep: Sequence[str]) -> bool:
    """Whether an entry stays: the host's, and every code object of a kept processor."""
    return entry.target is None or entry.target.processor in keep


def like(least: int, old: int) -> int:
    """Return the first offset from `least` that lies in its page as `old` lay in its own."""
    return least + (old - least) % PAGE


def place(bundle: Bundle, kept: Sequence[Entry], start: int) -> tuple[list[int], int]:
    """Return the new offsets of the kept entries, and the end of the new bundle."""
    end = start + len(MAGIC) + COUNT.size + sum(ENTRY.size + len(e.id) for e in kept)
    places: dict[Entry, int] = {}
    for entry in in_order(kept):
        places[entry] = like(end, entry.offset)
        end = places[entry] + entry.size
    # An empty entry points, as clang leaves it, at the first code object.
    first = min(places.values(), default=start)
    return [
        places.get(entry, first if entry.offset > bundle.contents else start) for entry in kept
    ], end


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Sort the entries that are not empty by where they lie."""
    return sorted((entry for entry in entries if entry.size), key=lambda entry: entry.offset)


def contents(kept: Sequence[Entry], places: Sequence[int], start: int) -> bytes:
    """Write the table of contents of a plain bundle at `start`."""
    rows = [
        ENTRY.pack(place - start, entry.size, len(entry.id)) + entry.id.encode("ascii")
        for entry, place in zip(kept, places, strict=True)
    ]
    return MAGIC + COUNT.pack(len(rows)) + b"".join(rows)


def unpacked(bundle: Bundle, keep: Sequence[str]) -> Bundle:
    """Return a compressed bundle with only its kept entries, laid out anew in `data`."""
    kept = [entry for entry in bundle.entries if is_kept(entry, keep)]
    places, end = place(bundle, kept, 0)
    out = bytearray(end)
    head = contents(kept, places, 0)
    out[: len(head)] = head
    for entry, at in zip(kept, places, strict=True):
        if entry.size:
            out[at : at + entry.size] = bundle.data.take(entry.offset, entry.size)
    data = Window(bytes(out), bundle.data.name)
    inner = read_bundle(data, 0, data.size)
    return Bundle(
        bundle.start, bundle.end, data, 0, inner.header, inner.entries, bundle.compressed
    )


def recompressed(bundle: Bundle) -> bytes:
    """Return an unpacked bundle as a compressed one of the version it had.

    Always by zstd, whose version is pinned: the zlib of this host would show in the bytes.
    """
    import zstandard  # noqa: PLC0415 - keeps `--help` fast

    assert bundle.compressed is not None
    version = bundle.compressed.version
    plain = bundle.data.take(0, bundle.data.size)
    packed = zstandard.ZstdCompressor(level=_LEVEL, threads=0).compress(plain)
    sizes = SIZES[version]
    total = COMMON.size + sizes.size + len(packed)
    digest = hashlib.md5(plain, usedforsecurity=False).digest()[:8]
    numbers = (len(plain), int.from_bytes(digest, "little"))
    row = sizes.pack(*numbers) if version == 1 else sizes.pack(total, *numbers)
    return COMMON.pack(COMPRESSED_MAGIC, version, ZSTD) + row + packed
