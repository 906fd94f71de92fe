"""A small reader of ELF64 little-endian files that trusts no offset in them.

Layouts: the System V ABI, "Object Files"; AMDGPU's flags are read by target.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import Struct

from vega_image.codeobjects.target import Target, target_of_flags
from vega_image.codeobjects.window import Window
from vega_image.errors import StageError

MAGIC = b"\x7fELF"
ELF64_LE = b"\x7fELF\x02\x01\x01"
EHDR = Struct("<16sHHIQQQIHHHHHH")
PHDR = Struct("<IIQQQQQQ")
SHDR = Struct("<IIQQQQIIQQ")
SYM = Struct("<IBBHQQ")
RELA = Struct("<QQq")
DYN = Struct("<qQ")
WORD = Struct("<Q")

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
EM_X86_64, EM_AMDGPU = 62, 224
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_PHDR = 1, 2, 3, 6
PF_X, PF_W = 1, 2
SHT_NULL = 0
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_DYNSYM, SHT_RELR = (
    1, 2, 3, 4, 8, 9, 11, 19,
)  # fmt: skip
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 1, 2, 4, 0x800
STT_SECTION = 3
PN_XNUM = 0xFFFF


@dataclass(frozen=True, slots=True)
class Header:
    """The ELF header's fields that matter here."""

    type: int
    machine: int
    flags: int
    abi_version: int
    phoff: int
    shoff: int
    phnum: int
    shnum: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A program header, in file order of its fields."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int

    @property
    def end(self) -> int:
        """File offset after its last byte."""
        return self.offset + self.filesz


@dataclass(frozen=True, slots=True)
class Section:
    """A section header, in file order of its fields, after its name and index."""

    name: str
    index: int
    name_offset: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int

    @property
    def end(self) -> int:
        """File offset after its last byte; NOBITS sections have none."""
        return self.offset + (0 if self.type == SHT_NOBITS else self.size)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol; `section` is a section index or a reserved number."""

    type: int
    section: int
    value: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """One RELA entry; `place` is the file offset of the entry itself."""

    place: int
    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Elf:
    """The headers of one ELF file, and the window its content is read through."""

    window: Window
    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section | None:
        """Return the only section of that name; raises MALFORMED_ELF when there are several."""
        found = [section for section in self.sections if section.name == name]
        if len(found) > 1:
            raise malformed(self.window, f"{len(found)} sections are called {name}")
        return found[0] if found else None

    def file_offset(self, address: int, size: int) -> int:
        """Where the bytes of a virtual address lie in the file."""
        for segment in self.segments:
            skip = address - segment.vaddr
            if segment.type == PT_LOAD and 0 <= skip <= segment.filesz - size:
                return segment.offset + skip
        raise malformed(self.window, f"address {address:#x} is in no segment's file part")

    def dynamic(self) -> Mapping[int, int]:
        """Read the dynamic section: tag -> value, of repeated tags the last."""
        tags: dict[int, int] = {}
        for segment in self.segments:
            if segment.type == PT_DYNAMIC:
                count = segment.filesz // DYN.size
                for tag, value in self.window.table(DYN, segment.offset, count):
                    if tag == 0:
                        break
                    tags[tag] = value
        return tags

    def symbols(self, table: Section) -> tuple[Symbol, ...]:
        """Decode a symbol table."""
        rows = self._rows(table, SYM)
        return tuple(Symbol(info & 15, index, value) for _, info, _, index, value, _ in rows)

    def relocations(self, address: int, size: int) -> tuple[Relocation, ...]:
        """Decode the RELA table at a virtual address."""
        place = self.file_offset(address, size)
        rows = self.window.table(RELA, place, size // RELA.size)
        return tuple(
            Relocation(place + RELA.size * i, offset, info & 0xFFFFFFFF, info >> 32, addend)
            for i, (offset, info, addend) in enumerate(rows)
        )

    def target(self) -> Target | None:
        """Return what an AMDGPU code object is for; None for other files and new processors."""
        if self.header.machine != EM_AMDGPU:
            return None
        return target_of_flags(self.header.flags, self.header.abi_version)

    def _rows(self, table: Section, layout: Struct) -> Iterator[tuple[int, ...]]:
        if table.entsize != layout.size or table.size % layout.size:
            what = f"section {table.name} has entries of {table.entsize} bytes"
            raise malformed(self.window, what)
        return self.window.table(layout, table.offset, table.size // layout.size)


def malformed(window: Window, what: str) -> StageError:
    """Say what is wrong with an ELF file."""
    return StageError("MALFORMED_ELF", f"{window.name}: {what}", at=window.name)


def read_header(window: Window, at: int = 0) -> Header:
    """Read the header of an ELF64 little-endian file at an offset of the window."""
    ident, *fields = window.unpack(EHDR, at)
    if not ident.startswith(ELF64_LE):
        raise malformed(window, f"no ELF64 little-endian header at {at:#x}")
    kind, machine, _, _, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, _ = fields
    if (phnum and phentsize != PHDR.size) or (shnum and shentsize != SHDR.size):
        raise malformed(window, f"header tables with entries of {phentsize}, {shentsize} bytes")
    return Header(kind, machine, flags, ident[8], phoff, shoff, phnum, shnum)


def read_elf(window: Window) -> Elf:
    """Read all headers; raises StageError MALFORMED_ELF or TRUNCATED."""
    header = read_header(window)
    if header.phnum == PN_XNUM or (header.shnum == 0 and header.shoff):
        raise malformed(window, "more headers than the header can count")
    rows = window.table(PHDR, header.phoff, header.phnum)
    segments = tuple(Segment(*row) for row in rows)
    for segment in segments:
        window.require(segment.offset, segment.filesz)
    return Elf(window, header, segments, _sections(window, header))


def _sections(window: Window, header: Header) -> tuple[Section, ...]:
    rows = list(window.table(SHDR, header.shoff, header.shnum))
    if not rows:
        return ()
    names_index: int = window.unpack(EHDR, 0)[-1]
    if names_index >= len(rows):
        raise malformed(window, f"section {names_index} for names of {len(rows)} sections")
    start, size = rows[names_index][4:6]
    names = window.take(start, size)
    sections = tuple(
        Section(_text(window, names, row[0]), index, *row) for index, row in enumerate(rows)
    )
    for section in sections:
        if section.type not in {SHT_NULL, SHT_NOBITS}:
            window.require(section.offset, section.size)
    return sections


def _text(window: Window, table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    if end < 0:
        raise malformed(window, f"a section name at {start} of {len(table)} has no end")
    return table[start:end].decode("latin-1")
