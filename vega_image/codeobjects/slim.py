"""Leave out the device code of other GPUs, on disk too, and change nothing else.

Every kept code object stays byte for byte; of the host part only the addends into
`.hip_fatbin` (and their copies in place), header tables and file offsets change. A file
that is not understood completely is refused: the way out is to keep it whole.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vega_image.codeobjects.bundle import MOST_UNCOMPRESSED, Bundle, Entry, read_bundles
from vega_image.codeobjects.elf import ELF64_LE, Elf, Section, read_elf
from vega_image.codeobjects.fatbin import (
    FATBIN,
    WRAPPERS,
    FatBinary,
    bundles_of,
    read_fat_binary,
    refuse,
)
from vega_image.codeobjects.layout import Copy, Layout, lay_out
from vega_image.codeobjects.packing import in_order, is_kept, unpacked
from vega_image.codeobjects.window import Region, Window, digest_region, opened
from vega_image.errors import StageError
from vega_image.store import disk_errors

KEEP_WHOLE = "leave this file whole: remove it from what `slim` covers, or drop the target"
# What copy_file_range(2) answers where sendfile(2) still works.
NO_RANGE_COPY = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}


@dataclass(frozen=True, slots=True)
class Share:
    """The code objects of one target id in one file."""

    target: str
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlimReport:
    """What slimming one file did; digests are filled in by `with_digests`."""

    name: str
    keep: tuple[str, ...]
    bytes_before: int
    bytes_after: int
    bundles: int
    moved_pointers: int
    kept: tuple[Share, ...]
    removed: tuple[Share, ...]
    digest_before: str | None = None
    digest_after: str | None = None


def slim(
    source: Path | Region, out: Path, *, keep: Sequence[str], name: str
) -> SlimReport | None:
    """Write `source` to `out` with the code objects of the processors in `keep` only.

    None, and no file, when there is nothing to leave out. Raises StageError: MALFORMED_ELF,
    MALFORMED_BUNDLE or TRUNCATED for a damaged file, SLIM_* for one that cannot be changed
    safely; EngineError DISK_FULL. `name` is what messages call the file. Plain code objects
    (.co, .hsaco) hold one target each and are left alone.
    """
    region = source if isinstance(source, Region) else Region(source)
    with opened(region, name) as window:
        found = _to_slim(window, keep)
        if found is None:
            return None
        fat, entries = found
        layout = lay_out(fat, keep)
        report = _report(fat, layout, entries, keep)
        try:
            with disk_errors(out):
                _write(region, layout, out)
            _check(fat, out, keep)
        except BaseException:
            out.unlink(missing_ok=True)
            raise
    return report


def with_digests(report: SlimReport, source: Path | Region, out: Path) -> SlimReport:
    """Record what both files hash to."""
    region = source if isinstance(source, Region) else Region(source)
    before, after = digest_region(region), digest_region(Region(out))
    return replace(report, digest_before=before, digest_after=after)


def _to_slim(window: Window, keep: Sequence[str]) -> tuple[FatBinary, tuple[Entry, ...]] | None:
    """Return what is to be slimmed, and all entries its bundles had."""
    if window.size < len(ELF64_LE) or window.take(0, len(ELF64_LE)) != ELF64_LE:
        return None
    elf = read_elf(window)
    section = elf.section(FATBIN)
    if section is None:
        if elf.section(WRAPPERS) is not None:
            raise refuse(elf, "SLIM_BAD_WRAPPER", f"it has {WRAPPERS} but no {FATBIN}")
        return None
    # Twice, so that never more than one unpacked bundle is held whole.
    bundles = read_bundles(window, section.offset, section.end)
    if not any(_is_foreign(elf, bundle, keep) for bundle in bundles):
        return None
    return _kept_of(elf, section, keep)


def _kept_of(
    elf: Elf, section: Section, keep: Sequence[str]
) -> tuple[FatBinary, tuple[Entry, ...]]:
    bundles: list[Bundle] = []
    entries: list[Entry] = []
    held = 0
    for bundle in read_bundles(elf.window, section.offset, section.end):
        _is_foreign(elf, bundle, keep)
        _require_kept(elf, bundle, keep)
        _require_zero_gaps(elf, bundle)
        entries += bundle.entries
        if bundle.compressed is None:
            bundles.append(bundle)
            continue
        bundles.append(unpacked(bundle, keep))
        held += bundles[-1].data.size
        if held > MOST_UNCOMPRESSED:
            what = f"more than {MOST_UNCOMPRESSED} bytes of what stays are compressed"
            raise refuse(elf, "SLIM_TOO_LARGE", what, KEEP_WHOLE)
    return read_fat_binary(elf, section, tuple(bundles)), tuple(entries)


def _is_foreign(elf: Elf, bundle: Bundle, keep: Sequence[str]) -> bool:
    """Whether a bundle has anything to leave out."""
    for entry in bundle.entries:
        if entry.target is None and not entry.id.startswith("host-"):
            what = f"the entry {entry.id} of the bundle at {bundle.start:#x} names no target"
            raise refuse(elf, "SLIM_ENTRY", what)
    return not all(is_kept(entry, keep) for entry in bundle.entries)


def _require_kept(elf: Elf, bundle: Bundle, keep: Sequence[str]) -> None:
    have = {entry.target.processor for entry in bundle.entries if entry.target and entry.size}
    for processor in keep:
        if processor not in have:
            what = (
                f"the bundle at {bundle.start:#x} has no code for {processor}, "
                f"only for {', '.join(sorted(have)) or 'nothing'}"
            )
            raise refuse(elf, "SLIM_ARCH_ABSENT", what, KEEP_WHOLE)


def _require_zero_gaps(elf: Elf, bundle: Bundle) -> None:
    """Refuse bytes that belong to no code object: nobody knows what reads them."""
    at = bundle.header
    ends = [(entry.offset, entry.offset + entry.size) for entry in in_order(bundle.entries)]
    if bundle.compressed:
        ends.append((bundle.data.size, bundle.data.size))
    for start, end in ends:
        if bundle.data.nonzero(at, start) != start:
            what = (
                f"there is something at {at:#x} of {bundle.data.name}, between the code objects"
            )
            raise refuse(elf, "SLIM_GAP", what)
        at = end


def _report(
    fat: FatBinary, layout: Layout, entries: Sequence[Entry], keep: Sequence[str]
) -> SlimReport:
    return SlimReport(
        name=fat.elf.window.name,
        keep=tuple(keep),
        bytes_before=fat.elf.window.size,
        bytes_after=layout.size,
        bundles=len(fat.bundles),
        moved_pointers=layout.moved_pointers,
        kept=_shares(entry for entry in entries if is_kept(entry, keep)),
        removed=_shares(entry for entry in entries if not is_kept(entry, keep)),
    )


def _shares(entries: Iterable[Entry]) -> tuple[Share, ...]:
    sizes: dict[str, list[int]] = {}
    for entry in entries:
        if entry.target is not None and entry.size:
            sizes.setdefault(str(entry.target), []).append(entry.size)
    return tuple(Share(target, len(row), sum(row)) for target, row in sorted(sizes.items()))


def _write(region: Region, layout: Layout, out: Path) -> None:
    with region.path.open("rb") as source, out.open("wb") as target:
        os.ftruncate(target.fileno(), layout.size)
        for copy in layout.copies:
            moved = replace(copy, source=copy.source + region.offset)
            _copy(source.fileno(), target.fileno(), moved)
        for write in layout.writes:
            os.pwrite(target.fileno(), write.data, write.to)


def _copy(source: int, target: int, copy: Copy) -> None:
    done = 0
    while done < copy.size:
        moved = _copy_some(
            source, target, Copy(copy.source + done, copy.to + done, copy.size - done)
        )
        if not moved:
            msg = "the file became shorter while it was read"
            raise StageError("TRUNCATED", msg)
        done += moved


def _copy_some(source: int, target: int, copy: Copy) -> int:
    try:
        return os.copy_file_range(source, target, copy.size, copy.source, copy.to)
    except OSError as error:
        if error.errno not in NO_RANGE_COPY:
            raise
    os.lseek(target, copy.to, os.SEEK_SET)
    return os.sendfile(target, source, copy.source, copy.size)


def _check(fat: FatBinary, out: Path, keep: Sequence[str]) -> None:
    """Read the written file back: same wrappers, kept code objects equal, nothing foreign."""
    with opened(Region(out), fat.elf.window.name) as window:
        elf = read_elf(window)
        section = elf.section(FATBIN)
        assert section is not None
        again = read_fat_binary(elf, section, bundles_of(elf, section))
        old = [(bundle, entry) for bundle, entry in _entries(fat) if is_kept(entry, keep)]
        new = list(_entries(again))
        same = [entry.id for _, entry in old] == [entry.id for _, entry in new]
        if not same or len(again.pointers) != len(fat.pointers):
            raise refuse(elf, "SLIM_FAILED", "the slimmed file does not read back as planned")
        for before, after in zip(old, new, strict=True):
            if _code(*before) != _code(*after):
                raise refuse(elf, "SLIM_FAILED", f"the code object {after[1].id} changed")


def _entries(fat: FatBinary) -> Iterator[tuple[Bundle, Entry]]:
    return ((bundle, entry) for bundle in fat.bundles for entry in bundle.entries)


def _code(bundle: Bundle, entry: Entry) -> bytes:
    return bundle.data.take(entry.offset, entry.size)
