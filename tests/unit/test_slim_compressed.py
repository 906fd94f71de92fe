"""Slimming compressed bundles: what stays, what it becomes, and that no size is believed."""

from __future__ import annotations

import functools
import hashlib
import random
import re
import resource
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fatfiles import Linker, bundle, code_object, compile_c, compressed, fat_objects, link
from vega_image.codeobjects import packing
from vega_image.codeobjects import slim as slimming
from vega_image.codeobjects.bundle import Bundle, read_bundles
from vega_image.codeobjects.census import census_file
from vega_image.codeobjects.elf import Elf, read_elf
from vega_image.codeobjects.slim import slim
from vega_image.codeobjects.window import Region, Window, opened
from vega_image.errors import StageError
from vega_image.process import run

pytestmark = pytest.mark.needs("gcc")

HEAD = code_object("gfx906", 64)
PLAIN = Linker("bfd", options=("-s",))
LINKERS = [
    PLAIN,
    Linker("bfd-one-segment", options=("-s", "-Wl,-z,noseparate-code")),
    Linker("bfd-program", options=("-s",), program=True),
    Linker("bfd-unaligned", options=("-s",), align=4),
]
Build = Callable[[Linker, int, int], Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A host file with two compressed bundles of one version and method."""

    @functools.cache
    def make(how: Linker, version: int, method: int) -> Path:
        first, second = (
            compressed(fat_objects(seed), version=version, method=method) for seed in (1, 2)
        )
        folder = tmp_path_factory.mktemp(f"{how.name}-{version}-{method}")
        return link(folder, how, first=first, second=second)

    return make


def elf_of(path: Path) -> Elf:
    return read_elf(Window(path.read_bytes(), path.name))


def bundles_in(path: Path) -> list[Bundle]:
    elf = elf_of(path)
    section = elf.section(".hip_fatbin")
    assert section is not None
    return list(read_bundles(elf.window, section.offset, section.end))


def code_in(path: Path) -> list[tuple[str, bytes]]:
    return [
        (entry.id, found.data.take(entry.offset, entry.size))
        for found in bundles_in(path)
        for entry in found.entries
    ]


def refusal(source: Path, folder: Path, keep: tuple[str, ...] = ("gfx906",)) -> StageError:
    with pytest.raises(StageError) as caught:
        slim(source, folder / "out", keep=keep, name="libfat.so")
    assert not (folder / "out").exists()
    assert caught.value.message.startswith("libfat.so")
    return caught.value


@pytest.mark.parametrize("how", LINKERS, ids=lambda how: how.name)
@pytest.mark.parametrize(
    ("version", "method"), [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]
)
def test_what_stays_is_what_was_compressed(
    build: Build, tmp_path: Path, how: Linker, version: int, method: int
) -> None:
    source, out = build(how, version, method), tmp_path / "out"
    report = slim(source, out, keep=["gfx906"], name="x")
    assert report is not None
    kept = [(i, c) for i, c in code_in(source) if i.endswith("-gfx906") or i.startswith("host")]
    assert code_in(out) == kept
    for seed, size in ((1, 10888), (2, 11999)):
        thing = code_object("gfx906", size, seed=seed)
        assert thing not in source.read_bytes()
        assert out.read_bytes().count(thing) == 1, "not plain, or twice"
        assert out.read_bytes().index(thing) % 4096 == 0
    assert [(s.target, s.objects, s.bytes) for s in report.kept] == [("gfx906", 2, 22887)]
    assert [share.target for share in report.removed] == ["gfx1030", "gfx900"]
    assert report.bytes_after == out.stat().st_size < report.bytes_before - 25_000
    (row,) = census_file(out, "x")
    assert (row.arch, row.bytes, row.objects, row.compressed) == ("gfx906", 22887, 2, False)
    assert slim(out, tmp_path / "again", keep=["gfx906"], name="x") is None


@pytest.mark.needs("eu-elflint")
@pytest.mark.parametrize("how", LINKERS, ids=lambda how: how.name)
def test_the_file_stays_sound_and_loads(build: Build, tmp_path: Path, how: Linker) -> None:
    source, out = build(how, 3, 1), tmp_path / "libfat.so"
    assert slim(source, out, keep=["gfx906"], name="x") is not None
    out.chmod(0o755)
    assert run(["eu-elflint", "--gnu-ld", str(out)]).output == "No errors\n"
    stub = compile_c(tmp_path / "stub.so", "stub.c", "-shared", "-fPIC")
    loader = compile_c(tmp_path / "loader", "loader.c")
    argv = [str(out)] if how.program else [str(loader), f"{out}:answer()"]
    done = run(argv, env={"LD_PRELOAD": str(stub)})
    assert done.returncode == 0, done.output
    assert done.output.count("entries=2 good=1") == 2
    assert "bundles=2 bad=0" in done.output


def test_the_same_bytes_every_time(build: Build, tmp_path: Path) -> None:
    source = build(PLAIN, 3, 1)
    for name in ("one", "two"):
        slim(source, tmp_path / name, keep=["gfx906"], name="x")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_plain_and_compressed_bundles_may_be_mixed(tmp_path: Path) -> None:
    source = link(tmp_path, PLAIN, first=fat_objects(1), second=compressed(fat_objects(2)))
    assert slim(source, tmp_path / "out", keep=["gfx906", "gfx900"], name="x") is not None
    targets = [name.rpartition("-")[2] for name, code in code_in(tmp_path / "out") if code]
    assert targets == ["gfx900", "gfx906"] * 2


def test_already_slim_bundles_stay_compressed(tmp_path: Path) -> None:
    thin = compressed(fat_objects(1, ("gfx906",)))
    source = link(tmp_path, PLAIN, first=thin, second=thin)
    assert slim(source, tmp_path / "out", keep=["gfx906"], name="x") is None


def airy(*archs: str, size: int = 300_000) -> bytes:
    """A bundle of objects that compress to almost nothing."""
    return bundle([(arch, code_object(arch, 64) + bytes(size)) for arch in archs])


@pytest.mark.parametrize(("version", "method"), [(1, 1), (2, 0), (2, 1), (3, 0), (3, 1)])
def test_what_has_no_room_stays_compressed(tmp_path: Path, version: int, method: int) -> None:
    fat = airy("gfx900", "gfx906")
    packed = compressed(fat, version=version, method=method)
    source = link(tmp_path, PLAIN, first=packed, second=compressed(fat_objects(2)))
    assert slim(source, tmp_path / "out", keep=["gfx906"], name="x") is not None
    assert [name for name, code in code_in(tmp_path / "out") if code] == [
        "hipv4-amdgcn-amd-amdhsa--gfx906"
    ] * 2
    one, two = bundles_in(tmp_path / "out")
    assert one.compressed is not None
    assert two.compressed is not None
    assert (one.compressed.version, one.compressed.method) == (version, 1)
    place = {1: 20, 2: 24, 3: 32}[version]
    data = (tmp_path / "out").read_bytes()[one.start : one.end]
    plain = zstandard.decompress(data[place:])
    assert plain.startswith(b"__CLANG_OFFLOAD_BUNDLE__")
    assert data[place - 8 : place] == hashlib.md5(plain).digest()[:8]
    sizes = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    told = struct.unpack_from(sizes, data, 8)
    assert told == ((len(plain),) if version == 1 else (len(data), len(plain)))


def test_what_fits_in_no_form_is_refused(tmp_path: Path) -> None:
    """Compressed harder than slimming does, it leaves no room for anything else."""
    words = [random.Random(i).randbytes(9) for i in range(4000)]
    text = b"".join(random.Random(7).choices(words, k=120_000))
    fat = bundle([("gfx900", code_object("gfx900", 64)), ("gfx906", HEAD + text)])
    packed = zstandard.ZstdCompressor(level=22).compress(fat)
    head = struct.pack("<4sHHQQ", b"CCOB", 3, 1, 32 + len(packed), len(fat))
    tight = head + hashlib.md5(fat).digest()[:8] + packed
    source = link(tmp_path, PLAIN, first=tight, second=tight)
    assert refusal(source, tmp_path).code == "SLIM_NO_ROOM"


HIDDEN = {
    "before the first code object": lambda fat: fat[:4000] + b"x" + fat[4001:],
    "after the last one": lambda fat: fat + b"\0x",
}


@pytest.mark.parametrize("where", HIDDEN)
def test_bytes_of_no_code_object_are_not_dropped_silently(tmp_path: Path, where: str) -> None:
    packed = compressed(HIDDEN[where](fat_objects(1)))
    source = link(tmp_path, PLAIN, first=packed, second=compressed(fat_objects(2)))
    assert refusal(source, tmp_path).code == "SLIM_GAP"


def test_a_bundle_without_our_gpu_is_refused(tmp_path: Path) -> None:
    other = compressed(fat_objects(1, ("gfx900", "gfx1030")))
    source = link(tmp_path, PLAIN, first=other, second=compressed(fat_objects(2)))
    assert refusal(source, tmp_path).code == "SLIM_ARCH_ABSENT"


def test_an_unnamed_target_in_a_later_bundle_is_refused(tmp_path: Path) -> None:
    odd = fat_objects(1).replace(b"hipv4-amdgcn-amd-amdhsa--gfx900", b"x" * 31)
    source = link(tmp_path, PLAIN, first=compressed(fat_objects(2)), second=compressed(odd))
    assert refusal(source, tmp_path).code == "SLIM_ENTRY"


def test_a_bomb_is_refused_without_unpacking_it(tmp_path: Path) -> None:
    """True to its own header, but larger than anything may be."""
    stream = zstandard.ZstdCompressor(level=1).compressobj(size=3 << 30)
    chunk = bytes(1 << 24)
    packed = b"".join(stream.compress(chunk) for _ in range((3 << 30) // len(chunk)))
    packed += stream.flush()
    head = struct.pack("<4sHHQQQ", b"CCOB", 3, 1, 32 + len(packed), 3 << 30, 0)
    source = link(tmp_path, PLAIN, first=head + packed, second=compressed(fat_objects(2)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    assert refusal(source, tmp_path).code == "MALFORMED_BUNDLE"
    with pytest.raises(StageError, match="uncompressed size of 3221225472 bytes"):
        census_file(source, "libfat.so")
    assert time.monotonic() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_many_bundles_together_may_not_hold_more_than_one_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slimming, "MOST_UNCOMPRESSED", 500_000)
    one = compressed(airy("gfx900", "gfx906"))
    source = link(tmp_path, PLAIN, first=one, second=one)
    error = refusal(source, tmp_path)
    assert error.code == "SLIM_TOO_LARGE"
    assert error.hint


def test_recompressing_does_not_ask_this_hosts_zlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = compressed(airy("gfx900", "gfx906"), method=0)
    source = link(tmp_path, PLAIN, first=packed, second=packed)

    def bomb(*_: object, **__: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr(zlib, "compress", bomb)
    monkeypatch.setattr(zlib, "compressobj", bomb)
    assert slim(source, tmp_path / "out", keep=["gfx906"], name="x") is not None


@given(
    archs=st.lists(
        st.sampled_from(["gfx900", "gfx906", "gfx1030", "gfx90a"]), min_size=1, unique=True
    ),
    sizes=st.lists(st.integers(min_value=64, max_value=20_000), min_size=4, max_size=4),
    version=st.sampled_from([1, 2, 3]),
    align=st.sampled_from([1, 64, 4096]),
)
@settings(max_examples=150, deadline=None)
def test_a_reduced_bundle_holds_exactly_what_is_kept(
    archs: list[str], sizes: list[int], version: int, align: int
) -> None:
    objects = [(a, code_object(a, n)) for a, n in zip(archs, sizes, strict=False)]
    data = compressed(bundle(objects, align=align), version=version)
    (whole,) = read_bundles(Window(data, "x"), 0, len(data))
    less = packing.unpacked(whole, ["gfx906"])
    again = packing.recompressed(less)
    (back,) = read_bundles(Window(again, "x"), 0, len(again))
    for found in (less, back):
        held = {e.target.processor: e for e in found.entries if e.target}
        assert held.keys() == {"gfx906"} & set(archs)
        assert next(e.id for e in found.entries).startswith("host-")
        for arch, entry in held.items():
            assert found.data.take(entry.offset, entry.size) == dict(objects)[arch]
    assert less.data.size == back.data.size <= whole.data.size + 4096
    assert (less.start, less.end) == (whole.start, whole.end)


@pytest.fixture(scope="module")
def fat(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, int, int]:
    folder = tmp_path_factory.mktemp("fuzz")
    first, second = (compressed(fat_objects(seed), version=3) for seed in (1, 2))
    source = link(folder, PLAIN, first=first, second=second)
    with opened(Region(source), "x") as window:
        section = read_elf(window).section(".hip_fatbin")
    assert section is not None
    return source, source.read_bytes(), section.offset, section.size


@given(place=st.integers(min_value=0), noise=st.binary(min_size=1, max_size=24))
@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_damaged_file_is_refused_or_slimmed_to_the_same_code(
    fat: tuple[Path, bytes, int, int], tmp_path: Path, place: int, noise: bytes
) -> None:
    source, data, start, size = fat
    at = start + place % (size - len(noise))
    bad = tmp_path / "bad.so"
    bad.write_bytes(data[:at] + noise + data[at + len(noise) :])
    try:
        report = slim(bad, tmp_path / "out", keep=["gfx906"], name="bad.so")
    except StageError as error:
        code = error.code
    else:
        assert report is not None
        code = ""
    assert re.fullmatch("|MALFORMED_BUNDLE|TRUNCATED|SLIM_.*", code)
    if code:
        return
    assert code_in(tmp_path / "out") == [
        (name, code) for name, code in code_in(source) if not re.search("gfx(900|1030)", name)
    ]
