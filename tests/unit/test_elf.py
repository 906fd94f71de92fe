"""The ELF reader: what it reads, and that no offset of a hostile file is believed."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fatfiles import code_object, host_elf
from vega_image.codeobjects.elf import EM_AMDGPU, SHT_DYNSYM, Elf, read_elf
from vega_image.codeobjects.target import (
    Target,
    parse_target,
    target_of_entry,
    target_of_flags,
)
from vega_image.codeobjects.window import Region, Window, digest_region, opened
from vega_image.digest import digest_bytes
from vega_image.errors import StageError
from vega_image.process import run

HOST = host_elf(b"content")


def elf_of(data: bytes) -> Elf:
    return read_elf(Window(data, "lib.so"))


def refused(data: bytes) -> str:
    with pytest.raises(StageError) as caught:
        elf_of(data)
    assert "lib.so" in caught.value.message
    return caught.value.code


def outcome(data: bytes) -> tuple[Elf | None, str]:
    try:
        return elf_of(data), ""
    except StageError as error:
        return None, error.code


def test_sections_are_read_with_their_names_and_bytes() -> None:
    elf = elf_of(HOST)
    assert [section.name for section in elf.sections] == ["", ".hip_fatbin", ".shstrtab"]
    section = elf.section(".hip_fatbin")
    assert section is not None
    assert elf.window.take(section.offset, section.size) == b"content"
    assert elf.section(".text") is None


@pytest.mark.needs("gcc")
def test_the_running_interpreter_reads_as_binutils_say(tmp_path: Path) -> None:
    copy = tmp_path / "python"
    copy.write_bytes(Path(sys.executable).resolve().read_bytes())
    with opened(Region(copy), "python") as window:
        elf = read_elf(window)
        told = run(["readelf", "-SW", str(copy)])
        assert f"There are {len(elf.sections)} section headers" in told.output
        assert all(section.name in told.output for section in elf.sections)
        (table,) = (s for s in elf.sections if s.type == SHT_DYNSYM)
        count = len(elf.symbols(table))
        assert count
        symbols = run(["readelf", "--dyn-syms", "-W", str(copy)]).output
        assert f"'.dynsym' contains {count} entries" in symbols


FIELDS = {
    "shoff": (40, "<Q"),
    "phnum": (56, "<H"),
    "shentsize": (58, "<H"),
    "shnum": (60, "<H"),
    "shstrndx": (62, "<H"),
}


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("phnum", 0xFFFF, "MALFORMED_ELF"),
        ("phnum", 9, "MALFORMED_ELF"),
        ("shoff", 1 << 63, "TRUNCATED"),
        ("shoff", len(HOST) - 1, "TRUNCATED"),
        ("shentsize", 63, "MALFORMED_ELF"),
        ("shnum", 0, "MALFORMED_ELF"),
        ("shnum", 4, "TRUNCATED"),
        ("shstrndx", 3, "MALFORMED_ELF"),
        ("shstrndx", 1, "MALFORMED_ELF"),
    ],
)
def test_a_header_that_lies_is_refused(field: str, value: int, code: str) -> None:
    at, layout = FIELDS[field]
    data = HOST[:at] + struct.pack(layout, value) + HOST[at + struct.calcsize(layout) :]
    assert refused(data) == code


@pytest.mark.parametrize("cut", [0, 1, 63, 64, 80, len(HOST) - 1])
def test_a_cut_file_is_refused(cut: int) -> None:
    assert refused(HOST[:cut]) == "TRUNCATED"


def test_a_32_bit_file_is_refused() -> None:
    assert refused(HOST[:4] + b"\x01" + HOST[5:]) == "MALFORMED_ELF"


@pytest.mark.parametrize(
    ("flags", "abi", "text"),
    [
        (0x500, 2, "gfx906"),
        (0x000, 4, "gfx906"),
        (0x600, 3, "gfx906:xnack-"),
        (0x700, 4, "gfx906:xnack+"),
        (0xE00, 2, "gfx906:sramecc+:xnack-"),
        (0xA00, 2, "gfx906:sramecc-:xnack-"),
        (0x300, 1, "gfx906:sramecc+:xnack+"),
        (0x000, 1, "gfx906"),
        (0x1000500, 4, "gfx906"),
    ],
)
def test_e_flags_name_the_target(flags: int, abi: int, text: str) -> None:
    elf = elf_of(code_object("gfx906", 100, flags=flags, abi=abi))
    assert elf.header.machine == EM_AMDGPU
    assert str(elf.target()) == text


@pytest.mark.needs("clang", "lld")
@pytest.mark.parametrize(
    "text", ["gfx906", "gfx906:sramecc+:xnack-", "gfx90a:xnack+", "gfx1030", "gfx900:xnack-"]
)
def test_a_code_object_of_clang_names_its_target(tmp_path: Path, text: str) -> None:
    source, out = tmp_path / "k.c", tmp_path / "k.hsaco"
    source.write_text("__attribute__((amdgpu_kernel)) void k(int *p) { *p = 1; }\n")
    target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={text}", "-nogpulib", "-nostdlib"]
    assert run(["clang", *target, str(source), "-o", str(out)]).returncode == 0
    assert str(elf_of(out.read_bytes()).target()) == text


def test_an_unknown_processor_is_not_guessed() -> None:
    assert target_of_flags(0x5FE, 2) is None
    assert target_of_flags(0x527, 2) is None


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+", "gfx9-4-generic:xnack+"),
        ("hip-amdgcn-amd-amdhsa--gfx803", "gfx803"),
        ("openmp-amdgcn-amd-amdhsa-unknown-gfx906", "gfx906"),
        ("host-x86_64-unknown-linux--", "None"),
        ("hip-amdgcn-amd-amdhsa-gfx906", "gfx906"),
        ("openmp-amdgcn-amd-amdhsa-unknown", "None"),
        ("hipv4-amdgcn-amd-amdhsa--", "None"),
        ("hipv4-amdgcn-amd-amdhsa--gfx906:xnack", "None"),
        ("hipv4-amdgcn-amd-amdhsa--gfx906:xnack+:xnack-", "None"),
        ("", "None"),
    ],
)
def test_bundle_entry_ids_name_the_target(entry: str, text: str) -> None:
    assert str(target_of_entry(entry)) == text


FEATURE = st.sampled_from(["", "+", "-"])


@given(processor=st.from_regex(r"\Agfx[0-9]{3,4}[a-c]?\Z"), sramecc=FEATURE, xnack=FEATURE)
def test_target_ids_survive_writing_and_reading(
    processor: str, sramecc: str, xnack: str
) -> None:
    target = Target(processor, sramecc, xnack)
    assert parse_target(str(target)) == target


@given(place=st.integers(min_value=0, max_value=len(HOST) - 1), noise=st.binary(max_size=24))
@settings(max_examples=500, deadline=None)
def test_a_damaged_file_gives_an_elf_or_a_refusal(place: int, noise: bytes) -> None:
    data = HOST[:place] + noise + HOST[place + len(noise) :]
    elf, code = outcome(data)
    assert code in {"", "MALFORMED_ELF", "TRUNCATED"}
    for section in elf.sections if elf else ():
        assert section.end <= len(data) or section.type in {0, 8}


def test_a_region_of_a_file_is_read_as_if_it_were_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tar"
    path.write_bytes(b"x" * 512 + HOST + b"y" * 100)
    region = Region(path, 512, len(HOST))
    with opened(region, "member") as window:
        assert len(read_elf(window).sections) == 3
        with pytest.raises(StageError, match="past its end"):
            window.take(0, len(HOST) + 1)
    assert digest_region(region) == digest_bytes(HOST)
    with pytest.raises(StageError), opened(Region(path, 512, 1 << 20), "member"):
        pass


def test_an_empty_file_is_an_empty_window(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    with opened(Region(path), "empty") as window:
        assert window.size == 0
