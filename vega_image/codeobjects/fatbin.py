"""The device code of one linked host file, with everything that points at it.

clang gives each translation unit a bundle in `.hip_fatbin` and a wrapper in
`.hipFatBinSegment`; the wrapper's pointer is the only thing that may know where a bundle
lies. Whatever else might know makes the file one that cannot be slimmed: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from vega_image.codeobjects.bundle import Bundle, read_bundles
from vega_image.codeobjects.elf import (
    EM_X86_64,
    ET_DYN,
    PF_W,
    PT_LOAD,
    RELA,
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_WRITE,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_REL,
    SHT_RELA,
    SHT_RELR,
    SHT_SYMTAB,
    STT_SECTION,
    Elf,
    Relocation,
    Section,
    Segment,
    Symbol,
)
from vega_image.errors import StageError

FATBIN = ".hip_fatbin"
WRAPPERS = ".hipFatBinSegment"
# struct { uint32 magic 'HIPF'; uint32 version; void *binary; void *unused }
WRAPPER = Struct("<IIQQ")
WRAPPER_MAGIC = 0x48495046
WRAPPER_VERSION = 1
POINTER_AT = 8

# A power of two from the page of x86-64 to far above the 2 MiB some linkers choose.
ALIGNMENTS = frozenset(1 << bit for bit in range(12, 25))

R_X86_64_RELATIVE = 8
# DTPMOD64, DTPOFF64, TPOFF64, TLSDESC: their addends are offsets into TLS, not addresses.
TLS_RELOCATIONS = {16, 17, 18, 36}
DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_RELAENT, DT_REL, DT_PLTREL, DT_JMPREL = (
    2, 7, 8, 9, 17, 20, 23,
)  # fmt: skip
DT_RELR = 36
DT_ANDROID = range(0x6000000F, 0x60000013)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A wrapper's pointer to a bundle: its relocation, and its word in the file."""

    relocation: Relocation
    word_at: int
    word: int


@dataclass(frozen=True, slots=True)
class FatBinary:
    """A host file's device code. `load` is the index of the segment that holds it."""

    elf: Elf
    section: Section
    load: int
    bundles: tuple[Bundle, ...]
    pointers: tuple[Pointer, ...]

    @property
    def segment(self) -> Segment:
        """The segment that holds the section."""
        return self.elf.segments[self.load]

    def address(self, offset: int) -> int:
        """Virtual address of a file offset inside the section."""
        return offset - self.section.offset + self.section.addr


def refuse(elf: Elf, code: str, what: str, hint: str | None = None) -> StageError:
    """Say why a file cannot be slimmed."""
    return StageError(code, f"{elf.window.name}: {what}", at=elf.window.name, hint=hint)


def bundles_of(elf: Elf, section: Section) -> tuple[Bundle, ...]:
    """Read all bundles of a section."""
    return tuple(read_bundles(elf.window, section.offset, section.end))


def read_fat_binary(elf: Elf, section: Section, bundles: tuple[Bundle, ...]) -> FatBinary:
    """Account for every pointer to the bundles of `.hip_fatbin`.

    Raises StageError with a code SLIM_* for anything that is not understood completely.
    """
    if elf.header.machine != EM_X86_64 or elf.header.type != ET_DYN:
        what = (
            "not a position-independent x86-64 file, so its pointers cannot be told from data"
        )
        raise refuse(elf, "SLIM_STATIC_ADDRESSES", what)
    load = _segment_of(elf, section)
    _check_neighbours(elf, section)
    _check_symbols(elf, section)
    pointers = _pointers(elf, section)
    starts = {section.addr + bundle.start - section.offset for bundle in bundles}
    targets = {pointer.relocation.addend for pointer in pointers}
    if starts != targets:
        lost = ", ".join(f"{address:#x}" for address in sorted(starts ^ targets)[:4])
        what = f"pointers and bundles do not match one to one, first at {lost}"
        raise refuse(elf, "SLIM_BAD_WRAPPER", what)
    return FatBinary(elf, section, load, bundles, pointers)


def _segment_of(elf: Elf, section: Section) -> int:
    holders = [
        (index, segment)
        for index, segment in enumerate(elf.segments)
        if segment.offset < section.end and section.offset < segment.end
    ]
    index, segment = holders[0] if holders else (0, None)
    for load in elf.segments:
        known = load.align in ALIGNMENTS and (load.vaddr - load.offset) % load.align == 0
        if load.type == PT_LOAD and not known:
            raise refuse(elf, "SLIM_SEGMENT", f"a segment aligned to {load.align:#x}")
    if (
        len(holders) != 1
        or segment is None
        or segment.type != PT_LOAD
        or segment.flags & PF_W
        or segment.filesz != segment.memsz
        or not segment.offset <= section.offset <= section.end <= segment.end
        or segment.vaddr - segment.offset != section.addr - section.offset
    ):
        what = f"{FATBIN} is not in exactly one read-only loadable segment"
        raise refuse(elf, "SLIM_SEGMENT", what)
    return index


def _check_neighbours(elf: Elf, section: Section) -> None:
    odd = SHF_WRITE | SHF_COMPRESSED
    if section.type != SHT_PROGBITS or section.flags & odd or not section.flags & SHF_ALLOC:
        raise refuse(elf, "SLIM_SEGMENT", f"{FATBIN} is not plain read-only data")
    for other in elf.sections[1:]:
        overlaps = other.offset < section.end and section.offset < other.end
        if other is not section and overlaps:
            raise refuse(elf, "SLIM_SEGMENT", f"section {other.name} overlaps {FATBIN}")
    for at, size in (
        (elf.header.phoff, 56 * elf.header.phnum),
        (elf.header.shoff, 64 * elf.header.shnum),
    ):
        if at < section.end and section.offset < at + size:
            raise refuse(elf, "SLIM_SEGMENT", f"a header table lies in {FATBIN}")


def _into(section: Section, address: int) -> bool:
    return section.addr <= address < section.addr + section.size


def _check_symbols(elf: Elf, section: Section) -> None:
    for table in elf.sections:
        if table.type not in {SHT_SYMTAB, SHT_DYNSYM}:
            continue
        for symbol in elf.symbols(table):
            of_section = symbol.type == STT_SECTION and symbol.value == section.addr
            inside = symbol.section == section.index or _into(section, symbol.value)
            if symbol.section and inside and not of_section:
                what = f"a symbol of {table.name} at {symbol.value:#x} is in {FATBIN}"
                raise refuse(elf, "SLIM_SYMBOL", what)


def _relocations(elf: Elf) -> Iterator[Relocation]:
    tags = elf.dynamic()
    tables = ((DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ))
    ranges = [(tags[at], tags.get(size, 0)) for at, size in tables if tags.get(at)]
    packed = DT_REL in tags or DT_RELR in tags or any(tag in tags for tag in DT_ANDROID)
    if packed or tags.get(DT_PLTREL, DT_RELA) != DT_RELA:
        raise refuse(elf, "SLIM_RELOCATION", "relocations are packed, or keep addends in place")
    if tags.get(DT_RELAENT, RELA.size) != RELA.size:
        raise refuse(elf, "SLIM_RELOCATION", "relocation entries of an unknown size")
    for section in elf.sections:
        known = any(
            a <= section.addr <= section.addr + section.size <= a + n for a, n in ranges
        )
        dynamic = section.type == SHT_RELA and section.flags & SHF_ALLOC
        if section.type in {SHT_REL, SHT_RELA, SHT_RELR} and not (dynamic and known):
            what = f"relocations of {section.name} are not in the dynamic section"
            raise refuse(elf, "SLIM_RELOCATION", what)
    seen: set[int] = set()
    for address, size in ranges:
        for relocation in elf.relocations(address, size):
            if relocation.place not in seen:
                seen.add(relocation.place)
                yield relocation


def _pointers(elf: Elf, section: Section) -> tuple[Pointer, ...]:
    wrappers = elf.section(WRAPPERS)
    if (
        wrappers is None
        or wrappers.type == SHT_NOBITS
        or not wrappers.size
        or wrappers.size % WRAPPER.size
    ):
        raise refuse(elf, "SLIM_BAD_WRAPPER", f"{WRAPPERS} holds no whole wrappers")
    symbols = next((elf.symbols(s) for s in elf.sections if s.type == SHT_DYNSYM), ())
    pointers: dict[int, Pointer] = {}
    for relocation in _relocations(elf):
        in_wrapper = _into(wrappers, relocation.offset)
        if _into(section, relocation.offset):
            what = f"the relocation at {relocation.place:#x} changes {FATBIN}"
            raise refuse(elf, "SLIM_RELOCATION", what)
        if not in_wrapper and not _may_know(elf, section, relocation, symbols):
            continue
        pointer = _pointer(elf, section, wrappers, relocation)
        if pointers.setdefault(pointer.word_at, pointer) is not pointer:
            raise refuse(elf, "SLIM_RELOCATION", f"two at {relocation.offset:#x}")
    if len(pointers) != wrappers.size // WRAPPER.size:
        what = f"{len(pointers)} pointers in {wrappers.size // WRAPPER.size} wrappers"
        raise refuse(elf, "SLIM_BAD_WRAPPER", what)
    return tuple(pointers[at] for at in sorted(pointers))


def _may_know(
    elf: Elf, section: Section, relocation: Relocation, symbols: tuple[Symbol, ...]
) -> bool:
    if relocation.type in TLS_RELOCATIONS:
        return False
    if not relocation.symbol:
        return _into(section, relocation.addend)
    if relocation.symbol >= len(symbols):
        what = f"the relocation at {relocation.place:#x} has no symbol"
        raise refuse(elf, "SLIM_RELOCATION", what)
    symbol = symbols[relocation.symbol]
    return bool(symbol.section) and _into(section, symbol.value + relocation.addend)


def _pointer(elf: Elf, section: Section, wrappers: Section, relocation: Relocation) -> Pointer:
    at = relocation.offset - wrappers.addr
    if (
        relocation.type != R_X86_64_RELATIVE
        or relocation.symbol
        or not _into(section, relocation.addend)
        or not _into(wrappers, relocation.offset)
        or at % WRAPPER.size != POINTER_AT
    ):
        what = f"the relocation at {relocation.place:#x} is no wrapper's pointer to a bundle"
        raise refuse(elf, "SLIM_RELOCATION", what)
    place = wrappers.offset + at - POINTER_AT
    magic, version, word, unused = elf.window.unpack(WRAPPER, place)
    if (magic, version, unused) != (WRAPPER_MAGIC, WRAPPER_VERSION, 0):
        raise refuse(elf, "SLIM_BAD_WRAPPER", f"no wrapper at {place:#x}")
    if word not in {0, relocation.addend}:
        what = f"the wrapper at {place:#x} holds {word:#x}, its relocation another address"
        raise refuse(elf, "SLIM_BAD_WRAPPER", what)
    return Pointer(relocation, place + POINTER_AT, word)
