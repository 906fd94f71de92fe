"""Where every byte of a slimmed file comes from. Values in, values out; no I/O.

The kept code objects move together; the addresses of everything outside `.hip_fatbin` stay.
So the segment around it is cut in two, what follows moves down in the file by whole pages
and keeps its address, and the longer table of program headers goes behind the last bundle,
into the first of the two segments, because nothing guarantees room at its old place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vega_image.codeobjects.bundle import Bundle
from vega_image.codeobjects.elf import (
    PF_X,
    PHDR,
    PT_INTERP,
    PT_LOAD,
    PT_PHDR,
    SHDR,
    SHF_EXECINSTR,
    WORD,
    Section,
    Segment,
)
from vega_image.codeobjects.fatbin import FATBIN, FatBinary, refuse
from vega_image.codeobjects.packing import (
    PAGE,
    contents,
    is_kept,
    like,
    place,
    recompressed,
)

# Offsets in the ELF header of e_phoff, e_shoff and e_phnum.
E_PHOFF, E_SHOFF, E_PHNUM = 32, 40, 56


@dataclass(frozen=True, slots=True)
class Copy:
    """`size` bytes from `source` of the input to `to` of the output."""

    source: int
    to: int
    size: int


@dataclass(frozen=True, slots=True)
class Write:
    """New bytes at `to` of the output."""

    to: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """The output: `size` bytes, zero where nothing is copied or written; writes come last."""

    size: int
    copies: tuple[Copy, ...]
    writes: tuple[Write, ...]
    moved_pointers: int


@dataclass(frozen=True, slots=True)
class Packed:
    """The new content of `.hip_fatbin`: its end, and where each bundle went (offsets)."""

    end: int
    starts: dict[int, int]
    copies: tuple[Copy, ...]
    writes: tuple[Write, ...]


def lay_out(fat: FatBinary, keep: Sequence[str]) -> Layout:
    """Plan the slimmed file; raises StageError SLIM_* when that would need a guess."""
    packed = _packed(fat, keep)
    shift = _Shift.of(fat, packed.end)
    segments, table_at = shift.segments(packed.end)
    head = Copy(0, 0, fat.section.offset)
    rest = fat.elf.window.size - fat.section.end
    tail = Copy(fat.section.end, fat.section.end - shift.delta, rest)
    writes = (
        *packed.writes,
        *_pointer_writes(fat, packed, shift),
        *shift.header_writes(segments, table_at),
        *_section_writes(shift, packed.end - fat.section.offset),
    )
    moved = sum(packed.starts[start] != start for start in packed.starts)
    return Layout(
        fat.elf.window.size - shift.delta, (head, *packed.copies, tail), writes, moved
    )


def _packed(fat: FatBinary, keep: Sequence[str]) -> Packed:
    """Unpack what was compressed, unless that takes more room than there is."""
    plain = _pack(fat, keep, compress=False)
    if plain.end <= fat.section.end:
        return plain
    packed = _pack(fat, keep, compress=True)
    if packed.end > fat.section.end:
        what = f"what stays takes {packed.end - fat.section.end} bytes more than {FATBIN} has"
        raise refuse(fat.elf, "SLIM_NO_ROOM", what)
    return packed


def _pack(fat: FatBinary, keep: Sequence[str], *, compress: bool) -> Packed:
    packed = Packed(fat.section.offset, {}, (), ())
    for bundle in fat.bundles:
        if bundle.compressed:
            packed = _with_data(packed, bundle, compress=compress)
        else:
            packed = _with_copies(packed, bundle, keep)
    return packed


def _with_data(packed: Packed, bundle: Bundle, *, compress: bool) -> Packed:
    """Add a bundle that `packing.unpacked` made: its bytes are in no file."""
    data = recompressed(bundle) if compress else bundle.data.take(0, bundle.data.size)
    start = like(packed.end, bundle.start if compress else 0)
    return Packed(
        start + len(data),
        packed.starts | {bundle.start: start},
        packed.copies,
        (*packed.writes, Write(start, data)),
    )


def _with_copies(packed: Packed, bundle: Bundle, keep: Sequence[str]) -> Packed:
    start = like(packed.end, bundle.start)
    kept = [entry for entry in bundle.entries if is_kept(entry, keep)]
    places, end = place(bundle, kept, start)
    copies = [
        Copy(entry.offset, at, entry.size)
        for entry, at in zip(kept, places, strict=True)
        if entry.size
    ]
    return Packed(
        end,
        packed.starts | {bundle.start: start},
        (*packed.copies, *copies),
        (*packed.writes, Write(start, contents(kept, places, start))),
    )


def _pointer_writes(fat: FatBinary, packed: Packed, shift: _Shift) -> list[Write]:
    writes: list[Write] = []
    for pointer in fat.pointers:
        old = pointer.relocation.addend
        start = old - fat.section.addr + fat.section.offset
        word = WORD.pack(fat.address(packed.starts[start]))
        # r_addend is the third word of an entry.
        writes.append(Write(shift.offset(pointer.relocation.place) + 2 * WORD.size, word))
        if pointer.word:
            writes.append(Write(shift.offset(pointer.word_at), word))
    return writes


@dataclass(frozen=True, slots=True)
class _Shift:
    """What follows the section comes `delta` bytes earlier, if `split` in its own segment."""

    fat: FatBinary
    delta: int
    split: bool

    @classmethod
    def of(cls, fat: FatBinary, end: int) -> _Shift:
        loads = [s for s in fat.elf.segments if s.type == PT_LOAD and s.end > fat.section.end]
        step = max([PAGE, *(s.align for s in loads)])
        has_tail = fat.segment.end > fat.section.end
        table = _up(end, 8) - end + PHDR.size * (fat.elf.header.phnum + 1) if has_tail else 0
        delta = max(0, fat.section.end - end - table) // step * step
        return cls(fat, delta, has_tail and delta > 0)

    def offset(self, old: int) -> int:
        return old - self.delta if old >= self.fat.section.end else old

    def segments(self, end: int) -> tuple[list[Segment], int]:
        """Return the new table, and its place."""
        segments: list[Segment] = []
        for index, segment in enumerate(self.fat.elf.segments):
            if index == self.fat.load:
                segments += self._cut(segment, end)
            else:
                segments.append(replace(segment, offset=self.offset(segment.offset)))
        if not self.split:
            return segments, self.offset(self.fat.elf.header.phoff)
        place = _up(end, 8)
        return [self._own(s, place, len(segments)) for s in segments], place

    def _cut(self, segment: Segment, end: int) -> list[Segment]:
        if not self.split:
            size = segment.filesz - self.delta
            return [replace(segment, filesz=size, memsz=size)]
        table_end = _up(end, 8) + PHDR.size * (self.fat.elf.header.phnum + 1)
        size = table_end - segment.offset
        skip = self.fat.section.end - segment.offset
        tail = replace(
            segment,
            offset=self.fat.section.end - self.delta,
            vaddr=segment.vaddr + skip,
            paddr=segment.paddr + skip,
            filesz=segment.filesz - skip,
            memsz=segment.memsz - skip,
        )
        head = replace(segment, filesz=size, memsz=size)
        return [self._rights(half) for half in (head, tail)]

    def _rights(self, half: Segment) -> Segment:
        """Take the right to execute from a half that got none of the code."""
        code = any(
            section.flags & SHF_EXECINSTR
            and half.vaddr <= section.addr < half.vaddr + half.memsz
            for section in self.fat.elf.sections
        )
        return half if code else replace(half, flags=half.flags & ~PF_X)

    def _own(self, segment: Segment, place: int, count: int) -> Segment:
        """PT_PHDR describes the table itself."""
        if segment.type != PT_PHDR:
            return segment
        home = self.fat.segment
        size = PHDR.size * count
        skip = place - home.offset
        return replace(
            segment,
            offset=place,
            vaddr=home.vaddr + skip,
            paddr=home.paddr + skip,
            filesz=size,
            memsz=size,
        )

    def header_writes(self, segments: Sequence[Segment], place: int) -> list[Write]:
        """Write the table and the ELF header's words about it; zero the old table."""
        header = self.fat.elf.header
        if self.split:
            self._check_table_address()
        blank = bytes(PHDR.size * header.phnum)
        rows = b"".join(_segment_row(segment) for segment in segments)
        return [
            Write(self.offset(header.phoff), blank),
            Write(place, rows),
            Write(E_PHOFF, WORD.pack(place)),
            Write(E_PHNUM, len(segments).to_bytes(2, "little")),
        ]

    def _check_table_address(self) -> None:
        """Kernels before 5.18 tell a program where its table is as first address + e_phoff."""
        elf = self.fat.elf
        first = next(s for s in elf.segments if s.type == PT_LOAD)
        home = self.fat.segment
        program = any(s.type == PT_INTERP for s in elf.segments)
        if program and home.vaddr - home.offset != first.vaddr - first.offset:
            raise refuse(elf, "SLIM_SEGMENT", "its program headers cannot move")


def _section_writes(shift: _Shift, size: int) -> list[Write]:
    elf = shift.fat.elf
    rows = [_section_row(shift, section, size) for section in elf.sections]
    table = shift.offset(elf.header.shoff)
    return [Write(table, b"".join(rows)), Write(E_SHOFF, WORD.pack(table))]


def _segment_row(segment: Segment) -> bytes:
    return PHDR.pack(
        segment.type,
        segment.flags,
        segment.offset,
        segment.vaddr,
        segment.paddr,
        segment.filesz,
        segment.memsz,
        segment.align,
    )


def _section_row(shift: _Shift, section: Section, size: int) -> bytes:
    ours = section.index == shift.fat.section.index
    return SHDR.pack(
        section.name_offset,
        section.type,
        section.flags,
        section.addr,
        shift.offset(section.offset),
        size if ours else section.size,
        section.link,
        section.info,
        section.addralign,
        section.entsize,
    )


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
