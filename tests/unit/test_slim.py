"""Slimming files of real linkers, and refusing every one that is not completely understood."""

from __future__ import annotations

import functools
import os
import re
import resource
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fatfiles import (
    Linker,
    bundle,
    code_object,
    compile_c,
    fat_objects,
    host_elf,
    link,
)
from vega_image.codeobjects.elf import SHT_NOBITS, Elf, read_elf
from vega_image.codeobjects.slim import SlimReport, slim, with_digests
from vega_image.codeobjects.window import Region, Window
from vega_image.errors import EngineError, StageError
from vega_image.process import run
from vega_image.store import digest_file

pytestmark = pytest.mark.needs("gcc")

LLD = "-fuse-ld=lld"
IN_PLACE = ("-s", LLD, "-Wl,--apply-dynamic-relocs")
ONE_SEGMENT = ("-s", "-Wl,-z,noseparate-code")
# Without unwind tables and start files nothing follows .hip_fatbin in its segment.
LAST = ("-s", "-nostartfiles", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none")


def variant(how: Linker, *needs: str) -> object:
    return pytest.param(how, id=how.name, marks=pytest.mark.needs(*needs, "gcc"))


LINKERS = [
    variant(Linker("bfd", options=("-s",))),
    variant(Linker("bfd-symbols")),
    variant(Linker("bfd-one-segment", options=ONE_SEGMENT)),
    variant(Linker("bfd-64k", options=("-s", "-Wl,-z,max-page-size=0x10000"))),
    variant(Linker("bfd-nothing-follows", options=LAST)),
    variant(Linker("bfd-unaligned", options=("-s",), align=4)),
    variant(Linker("bfd-program", options=("-s",), program=True)),
    variant(Linker("bfd-one-segment-program", options=ONE_SEGMENT, program=True)),
    variant(Linker("gold", options=("-s", "-fuse-ld=gold"))),
    variant(Linker("lld", options=("-s", LLD)), "lld"),
    variant(Linker("lld-symbols", options=(LLD,)), "lld"),
    variant(Linker("lld-in-place", options=IN_PLACE), "lld"),
    variant(Linker("lld-nothing-follows", options=(*LAST, LLD)), "lld"),
    variant(Linker("lld-program", options=("-s", LLD), program=True), "lld"),
    variant(Linker("clang", compiler="clang", options=("-s",)), "clang"),
    variant(Linker("clang-lld", compiler="clang", options=("-s", LLD)), "clang", "lld"),
]

Build = Callable[[Linker], Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return functools.cache(lambda how: link(tmp_path_factory.mktemp(how.name), how))


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stub")
    return compile_c(folder / "stub.so", "stub.c", "-shared", "-fPIC")


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("loader") / "loader", "loader.c")


def slimmed(source: Path, folder: Path, keep: tuple[str, ...] = ("gfx906",)) -> Path:
    folder.mkdir(exist_ok=True)
    out = folder / source.name
    assert slim(source, out, keep=keep, name="usr/lib/libfat.so") is not None
    out.chmod(0o755)
    return out


def elf_of(path: Path) -> Elf:
    return read_elf(Window(path.read_bytes(), path.name))


def refusal(source: Path, folder: Path, keep: tuple[str, ...] = ("gfx906",)) -> str:
    with pytest.raises(StageError) as caught:
        slim(source, folder / "out", keep=keep, name="usr/lib/libfat.so")
    assert not (folder / "out").exists()
    assert caught.value.message.startswith("usr/lib/libfat.so")
    return caught.value.code


@pytest.mark.parametrize("how", LINKERS)
def test_only_kept_code_objects_remain_and_they_are_unchanged(
    build: Build, tmp_path: Path, how: Linker
) -> None:
    source = build(how)
    report = slim(source, tmp_path / "out", keep=["gfx906"], name="usr/lib/libfat.so")
    assert report is not None
    data = (tmp_path / "out").read_bytes()
    assert (report.bytes_before, report.bytes_after) == (source.stat().st_size, len(data))
    assert [share.target for share in report.removed] == ["gfx1030", "gfx900"]
    assert [(s.target, s.objects, s.bytes) for s in report.kept] == [("gfx906", 2, 22887)]
    assert (report.bundles, report.moved_pointers) == (2, 1)
    for seed, sizes in ((1, (10111, 10888, 11665)), (2, (11222, 11999, 12776))):
        for arch, size in zip(("gfx900", "gfx906", "gfx1030"), sizes, strict=True):
            thing = code_object(arch, size, seed=seed)
            assert thing in source.read_bytes()
            assert (thing in data) == (arch == "gfx906")
            assert (thing[-64:] in data) == (arch == "gfx906")
    unit = 0x10000 if how.name == "bfd-64k" else 4096
    assert report.bytes_before - report.bytes_after > 45784 - 2 * unit


@pytest.mark.parametrize("how", LINKERS)
def test_nothing_else_changes(build: Build, tmp_path: Path, how: Linker) -> None:
    source = build(how)
    before, after = elf_of(source), elf_of(slimmed(source, tmp_path))
    names = [section.name for section in before.sections]
    assert names == [section.name for section in after.sections]
    changed = set()
    for old, new in zip(before.sections, after.sections, strict=True):
        assert (old.addr, old.type, old.flags) == (new.addr, new.type, new.flags)
        if old.type != SHT_NOBITS and (
            before.window.take(old.offset, old.size) != after.window.take(new.offset, new.size)
        ):
            changed.add(old.name)
    assert changed <= {".hip_fatbin", ".rela.dyn", ".hipFatBinSegment"}


@pytest.mark.parametrize("how", LINKERS)
def test_code_objects_lie_in_their_page_as_before(
    build: Build, tmp_path: Path, how: Linker
) -> None:
    source = build(how)
    old, new = source.read_bytes(), slimmed(source, tmp_path).read_bytes()
    for seed, size in ((1, 10888), (2, 11999)):
        thing = code_object("gfx906", size, seed=seed)
        assert old.index(thing) % 4096 == new.index(thing) % 4096


def test_no_second_table_of_segments_is_left_behind(build: Build, tmp_path: Path) -> None:
    source = build(Linker("bfd", options=("-s",)))
    old, new = elf_of(source), elf_of(slimmed(source, tmp_path))
    assert new.header.phnum == old.header.phnum + 1
    place, size = old.header.phoff, 56 * old.header.phnum
    assert new.header.phoff != place
    assert new.window.take(place, size) == bytes(size)


def relocations(path: Path) -> list[tuple[str, ...]]:
    text = run(["readelf", "-rW", str(path)]).output
    return re.findall(r"^([0-9a-f]{16})\s+[0-9a-f]{16}\s+(\S+)\s+(.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("how", LINKERS)
def test_only_addends_into_the_section_move(build: Build, tmp_path: Path, how: Linker) -> None:
    source = build(how)
    before, after = relocations(source), relocations(slimmed(source, tmp_path))
    section = elf_of(source).section(".hip_fatbin")
    assert section is not None
    assert len(before) == len(after) > 3
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(moved) == 1
    for old, new in moved:
        assert (old[:2], old[1]) == (new[:2], "R_X86_64_RELATIVE")
        assert section.addr < int(new[2], 16) < int(old[2], 16) < section.addr + section.size


@pytest.mark.needs("eu-elflint")
@pytest.mark.parametrize("how", LINKERS)
def test_elflint_finds_nothing_new(build: Build, tmp_path: Path, how: Linker) -> None:
    source = build(how)
    old = run(["eu-elflint", "--gnu-ld", str(source)]).output
    new = run(["eu-elflint", "--gnu-ld", str(slimmed(source, tmp_path))]).output
    assert set(new.splitlines()) <= {*old.splitlines(), "No errors"}
    if "lld" not in how.name:
        assert new == "No errors\n"
    assert "arning" not in run(["readelf", "-aW", str(tmp_path / source.name)]).output


@pytest.mark.parametrize("how", LINKERS)
def test_it_loads_runs_and_registers_the_same_code(
    build: Build, tmp_path: Path, how: Linker, stub: Path, loader: Path
) -> None:
    def told(path: Path) -> list[str]:
        argv = [str(path)] if how.program else [str(loader), f"{path}:answer()"]
        done = run(argv, env={**os.environ, "LD_PRELOAD": str(stub)})
        assert done.returncode == 0, done.output
        lines = done.output.replace(str(path), "FILE").splitlines()
        assert lines[-1] == "total bundles=2 bad=0 functions=0"
        return lines

    source = build(how)
    before, after = told(source), told(slimmed(source, tmp_path))
    assert "entries=2" in after[0]
    assert [line.replace("entries=4", "entries=2") for line in before] == after


@pytest.mark.parametrize("how", LINKERS)
def test_a_slim_file_is_left_alone(build: Build, tmp_path: Path, how: Linker) -> None:
    out = slimmed(build(how), tmp_path)
    assert slim(out, tmp_path / "again", keep=["gfx906"], name="libfat.so") is None
    assert not (tmp_path / "again").exists()


def test_the_same_input_gives_the_same_bytes(build: Build, tmp_path: Path) -> None:
    source = build(Linker("bfd", options=("-s",)))
    one, two = slimmed(source, tmp_path / "a"), slimmed(source, tmp_path / "b")
    assert one.read_bytes() == two.read_bytes()


def test_a_member_of_a_tar_is_slimmed_in_place_of_a_copy(build: Build, tmp_path: Path) -> None:
    source = build(Linker("bfd", options=("-s",)))
    data = source.read_bytes()
    tar = tmp_path / "tar"
    tar.write_bytes(b"h" * 512 + data + b"t" * 700)
    region = Region(tar, 512, len(data))
    report = slim(region, tmp_path / "out", keep=["gfx906"], name="libfat.so")
    assert report is not None
    assert (tmp_path / "out").read_bytes() == slimmed(source, tmp_path / "x").read_bytes()
    full = with_digests(report, region, tmp_path / "out")
    assert full.digest_before == digest_file(source)
    assert full.digest_after == digest_file(tmp_path / "out")


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_another_file_system_gives_the_same_bytes(build: Build, tmp_path: Path) -> None:
    source = build(Linker("bfd", options=("-s",)))
    out = Path("/dev/shm") / f"vega-image-test-{os.getpid()}"
    try:
        assert slim(source, out, keep=["gfx906"], name="libfat.so") is not None
        assert out.read_bytes() == slimmed(source, tmp_path).read_bytes()
    finally:
        out.unlink(missing_ok=True)


def test_two_architectures_may_stay(build: Build, tmp_path: Path) -> None:
    source = build(Linker("bfd", options=("-s",)))
    report = slim(source, tmp_path / "out", keep=["gfx1030", "gfx906"], name="libfat.so")
    assert isinstance(report, SlimReport)
    assert [share.target for share in report.kept] == ["gfx1030", "gfx906"]
    assert code_object("gfx1030", 12776, seed=2) in (tmp_path / "out").read_bytes()


def test_features_of_a_kept_processor_stay(tmp_path: Path) -> None:
    targets = ("gfx906:sramecc+:xnack-", "gfx906:xnack+", "gfx900")
    fat = bundle([(t, code_object(t.split(":")[0], 6000)) for t in targets])
    source = link(tmp_path, Linker("x", options=("-s",)), first=fat, second=fat)
    report = slim(source, tmp_path / "out", keep=["gfx906"], name="libfat.so")
    assert report is not None
    assert [share.target for share in report.kept] == list(targets[:2])


REFUSED = [
    ("SLIM_SYMBOL", Linker("exported", options=("-s",), defines=("EXPORTED",))),
    ("SLIM_SYMBOL", Linker("named", defines=("NAMED",))),
    ("SLIM_SYMBOL", Linker("ended", options=("-s",), defines=("ENDED",))),
    ("SLIM_RELOCATION", Linker("stray", options=("-s",), defines=("STRAY",))),
    ("SLIM_RELOCATION", Linker("emitted", options=("-Wl,--emit-relocs",))),
    ("SLIM_BAD_WRAPPER", Linker("lost", defines=("LOST",))),
    ("SLIM_BAD_WRAPPER", Linker("extra", defines=("EXTRA",))),
    ("MALFORMED_BUNDLE", Linker("junk", defines=("JUNK",))),
    ("SLIM_STATIC_ADDRESSES", Linker("static", options=("-no-pie",), program=True)),
]


@pytest.mark.parametrize(("code", "how"), REFUSED, ids=lambda x: getattr(x, "name", None))
def test_what_is_not_understood_is_refused(
    build: Build, tmp_path: Path, code: str, how: Linker
) -> None:
    assert refusal(build(how), tmp_path) == code


@pytest.mark.needs("lld")
def test_packed_relocations_are_refused(build: Build, tmp_path: Path) -> None:
    how = Linker("relr", options=("-s", LLD, "-Wl,--pack-dyn-relocs=relr"))
    assert refusal(build(how), tmp_path) == "SLIM_RELOCATION"


def test_a_missing_architecture_is_named_with_the_file(build: Build, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"libfat\.so.*no code for gfx908") as caught:
        slim(build(Linker("bfd-symbols")), tmp_path / "o", keep=["gfx908"], name="libfat.so")
    assert caught.value.code == "SLIM_ARCH_ABSENT"


def test_one_bundle_without_the_architecture_is_enough_to_refuse(tmp_path: Path) -> None:
    lacking = fat_objects(2, ("gfx900", "gfx1030"))
    source = link(tmp_path, Linker("x"), second=lacking)
    assert refusal(source, tmp_path) == "SLIM_ARCH_ABSENT"


def test_something_between_code_objects_is_refused(tmp_path: Path) -> None:
    plain = fat_objects(1)
    first = 4096 + 10111
    source = link(tmp_path, Linker("x"), first=plain[:first] + b"\1" + plain[first + 1 :])
    assert refusal(source, tmp_path) == "SLIM_GAP"


def test_a_bundle_nobody_points_at_is_refused(tmp_path: Path) -> None:
    two = fat_objects(1) + fat_objects(3)
    assert refusal(link(tmp_path, Linker("x"), first=two), tmp_path) == "SLIM_BAD_WRAPPER"


def test_an_entry_without_a_target_is_refused(tmp_path: Path) -> None:
    odd = fat_objects(1).replace(b"hipv4-amdgcn-amd-amdhsa--gfx900", b"x" * 31)
    assert refusal(link(tmp_path, Linker("x"), first=odd), tmp_path) == "SLIM_ENTRY"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        b"\x7fELF",
        code_object("gfx1030", 500),
        host_elf(b"no device code", section=b".rodata"),
        host_elf(fat_objects(1, ("gfx906",))),
    ],
    ids=["empty", "text", "short", "code object", "host only", "slim"],
)
def test_files_with_nothing_to_leave_out_are_left_alone(tmp_path: Path, data: bytes) -> None:
    source = tmp_path / "file"
    source.write_bytes(data)
    assert slim(source, tmp_path / "out", keep=["gfx906"], name="file") is None
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def sound(build: Build) -> bytes:
    return build(Linker("bfd", options=("-s",))).read_bytes()


def place_of(data: bytes, what: str) -> int:
    """File offsets the mutants below change."""
    elf = read_elf(Window(data, "x"))
    wrappers, rela = elf.section(".hipFatBinSegment"), elf.section(".rela.dyn")
    fat = next(i for i, s in enumerate(elf.sections) if s.name == ".hip_fatbin")
    load = next(
        i
        for i, s in enumerate(elf.segments)
        if s.type == 1 and s.offset <= elf.sections[fat].offset < s.end
    )
    assert wrappers is not None
    assert rela is not None
    size, rows = rela.size // 24, [elf.relocations(rela.addr, rela.size)]
    first = next(
        r for r in rows[0] if wrappers.addr <= r.offset < wrappers.addr + wrappers.size
    )
    assert size == len(rows[0])
    return {
        "wrapper": wrappers.offset,
        "relocation": first.place,
        "other relocation": rows[0][0].place,
        "segment": elf.header.phoff + 56 * load,
        "section": elf.header.shoff + 64 * fat,
        "wrappers section": elf.header.shoff + 64 * wrappers.index,
    }[what]


MUTANTS = [
    ("wrapper", 0, "<I", 0x48495047, "SLIM_BAD_WRAPPER"),
    ("wrapper", 4, "<I", 2, "SLIM_BAD_WRAPPER"),
    ("wrapper", 8, "<Q", 0x3008, "SLIM_BAD_WRAPPER"),
    ("wrapper", 16, "<Q", 1, "SLIM_BAD_WRAPPER"),
    ("relocation", 8, "<Q", 37, "SLIM_RELOCATION"),
    ("relocation", 8, "<Q", 8 | 1 << 32, "SLIM_RELOCATION"),
    ("relocation", 8, "<Q", 8 | 1 << 60, "SLIM_RELOCATION"),
    ("relocation", 16, "<q", 0x10, "SLIM_RELOCATION"),
    ("segment", 4, "<I", 6, "SLIM_SEGMENT"),
    ("segment", 32, "<Q", 1 << 40, "TRUNCATED"),
    ("segment", 40, "<Q", 1 << 40, "SLIM_SEGMENT"),
    ("segment", 48, "<Q", 3, "SLIM_SEGMENT"),
    ("segment", 48, "<Q", 1 << 60, "SLIM_SEGMENT"),
    ("segment", 16, "<Q", 0x7000, "SLIM_SEGMENT"),
    ("section", 8, "<Q", 3, "SLIM_SEGMENT"),
    ("section", 8, "<Q", 0x802, "SLIM_SEGMENT"),
    ("section", 16, "<Q", 0x9000, "SLIM_SEGMENT"),
    ("section", 32, "<Q", 1 << 40, "TRUNCATED"),
    ("wrappers section", 32, "<Q", 47, "SLIM_BAD_WRAPPER"),
    ("wrappers section", 0, "<I", 0, "SLIM_BAD_WRAPPER"),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_each_changed_field_is_noticed(
    sound: bytes, tmp_path: Path, mutant: tuple[str, int, str, int, str]
) -> None:
    what, at, layout, value, code = mutant
    place = place_of(sound, what) + at
    data = sound[:place] + struct.pack(layout, value) + sound[place + struct.calcsize(layout) :]
    (tmp_path / "mutant").write_bytes(data)
    assert refusal(tmp_path / "mutant", tmp_path) == code


def test_two_sections_of_one_name_are_refused(sound: bytes, tmp_path: Path) -> None:
    place = place_of(sound, "section")
    data = sound[: place + 64] + sound[place : place + 4] + sound[place + 68 :]
    (tmp_path / "mutant").write_bytes(data)
    assert refusal(tmp_path / "mutant", tmp_path) == "MALFORMED_ELF"


def test_a_pointer_in_another_field_of_a_wrapper_is_refused(
    sound: bytes, tmp_path: Path
) -> None:
    place = place_of(sound, "relocation")
    (offset,) = struct.unpack_from("<Q", sound, place)
    data = sound[:place] + struct.pack("<Q", offset + 8) + sound[place + 8 :]
    (tmp_path / "mutant").write_bytes(data)
    assert refusal(tmp_path / "mutant", tmp_path) == "SLIM_RELOCATION"


def test_a_write_that_fails_leaves_no_file(sound: bytes, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(sound)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(EngineError, match="disk full"):
            slim(tmp_path / "source", tmp_path / "out", keep=["gfx906"], name="libfat.so")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "out").exists()


def test_a_relocation_inside_a_bundle_or_twice_in_a_wrapper_is_refused(
    sound: bytes, tmp_path: Path
) -> None:
    elf = read_elf(Window(sound, "x"))
    section = elf.section(".hip_fatbin")
    assert section is not None
    first, other = place_of(sound, "relocation"), place_of(sound, "other relocation")
    into = struct.pack("<Q", section.addr + 8) + sound[other + 8 : other + 24]
    for index, entry in enumerate((into, sound[first : first + 24])):
        path = tmp_path / f"mutant{index}"
        path.write_bytes(sound[:other] + entry + sound[other + 24 :])
        assert refusal(path, tmp_path) == "SLIM_RELOCATION"


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_file_is_slimmed_left_alone_or_refused(
    sound: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp()
    places = [0, *(place_of(sound, w) for w in ("wrapper", "relocation", "segment", "section"))]
    place = data.draw(st.sampled_from(places)) + data.draw(st.integers(0, 200))
    noise = data.draw(st.binary(min_size=1, max_size=16))
    (folder / "damaged").write_bytes(sound[:place] + noise + sound[place + len(noise) :])
    try:
        report = slim(folder / "damaged", folder / "out", keep=["gfx906"], name="libfat.so")
    except StageError:
        report = None
        assert not (folder / "out").exists()
    if report is not None:
        assert slim(folder / "out", folder / "out2", keep=["gfx906"], name="x") is None
        (folder / "out").unlink()
