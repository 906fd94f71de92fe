"""Counting device code by content, and judging what was counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fatfiles import bundle, code_object, compressed, fat_objects, host_elf
from vega_image.codeobjects.census import (
    CodeKind,
    DeviceCode,
    Finding,
    census_file,
    census_window,
    is_environment_file,
    judge_census,
)
from vega_image.codeobjects.window import Window
from vega_image.errors import StageError
from vega_image.spec import Census

FAT = fat_objects(1)
SLIM = fat_objects(1, ("gfx906",))


def counted(data: bytes, name: str = "usr/lib/libx.so") -> list[tuple[str, int, int, str]]:
    found = census_window(Window(data, name))
    assert all(code.path == name for code in found)
    return [(code.arch, code.objects, code.bytes, str(code.kind)) for code in found]


def refused(data: bytes) -> str:
    with pytest.raises(StageError, match=r"usr/lib/libx\.so") as caught:
        counted(data)
    return caught.value.code


def test_a_library_is_listed_by_target() -> None:
    assert counted(host_elf(FAT + FAT)) == [
        ("gfx1030", 2, 2 * 11665, "fatbin"),
        ("gfx900", 2, 2 * 10111, "fatbin"),
        ("gfx906", 2, 2 * 10888, "fatbin"),
    ]


def test_compressed_bundles_are_looked_into() -> None:
    (code,) = census_window(Window(host_elf(compressed(SLIM)), "x"))
    assert (code.arch, code.bytes, code.compressed) == ("gfx906", 10111, True)
    assert [row[0] for row in counted(host_elf(FAT + compressed(SLIM)))] == [
        "gfx1030", "gfx900", "gfx906", "gfx906",
    ]  # fmt: skip


@pytest.mark.parametrize("data", [FAT, compressed(FAT, version=1), compressed(FAT, method=0)])
def test_a_bundle_on_its_own_is_listed(data: bytes) -> None:
    rows = counted(data)
    assert [row[0] for row in rows] == ["gfx1030", "gfx900", "gfx906"]
    assert {row[3] for row in rows} == {"bundle"}


def test_a_plain_code_object_is_listed_whatever_its_name() -> None:
    data = code_object("gfx906", 700, flags=0xE00)
    name = "usr/lib/Kernels.so-000-gfx1030.hsaco"
    assert counted(data, name) == [("gfx906:sramecc+:xnack-", 1, 700, "elf")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        b"CC",
        b"text about __CLANG_OFFLOAD_BUNDLE__ gfx906",
        host_elf(
            b"__CLANG_OFFLOAD_BUNDLE__ hipv4-amdgcn-amd-amdhsa--gfx906", section=b".rodata"
        ),
        host_elf(FAT, kind=8),
        b"\x7fELF\x01\x01\x01" + bytes(100),
    ],
    ids=["empty", "short", "shorter", "text", "words in a library", "debug file", "32 bit"],
)
def test_other_files_have_none(data: bytes) -> None:
    assert counted(data) == []


def test_a_device_object_of_a_new_processor_is_not_passed_over() -> None:
    data = bytearray(code_object("gfx906", 300))
    data[48] = 0xFE
    assert counted(bytes(data)) == [("unknown", 1, 300, "elf")]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (host_elf(FAT[:-1]), "MALFORMED_BUNDLE"),
        (host_elf(b"junk" + FAT), "MALFORMED_BUNDLE"),
        (host_elf(FAT)[:-1], "TRUNCATED"),
        (FAT + b"junk", "MALFORMED_BUNDLE"),
        (
            host_elf(FAT)[:40] + bytes(8) + host_elf(FAT)[48:60] + bytes(4) + FAT,
            "MALFORMED_ELF",
        ),
    ],
    ids=["cut bundle", "junk", "cut file", "junk after", "no sections"],
)
def test_what_cannot_be_counted_is_refused(data: bytes, code: str) -> None:
    assert refused(data) == code


@pytest.mark.parametrize(
    ("target", "content"),
    [
        ("gfx906", code_object("gfx1030", 400)),
        ("gfx906:xnack-", code_object("gfx906", 400)),
        ("gfx906", code_object("gfx906", 400, flags=0x700)),
        ("gfx906", bytes(400)),
        ("gfx906", b"\x7fELF\x02\x01\x01".ljust(400, b"\0")),
        ("gfx906", b"?"),
    ],
    ids=["other arch", "other feature", "xnack+ inside", "zeros", "not amdgpu", "a byte"],
)
def test_an_entry_that_is_not_what_its_name_says_is_refused(
    target: str, content: bytes
) -> None:
    assert refused(host_elf(bundle([(target, content)]))) == "TARGET_MISMATCH"


def test_code_object_version_3_agrees_without_features() -> None:
    old = code_object("gfx906", 400, flags=0x200, abi=1)
    assert counted(bundle([("gfx906", old)])) == [("gfx906", 1, 400, "bundle")]


def test_a_member_of_a_tar_is_counted_where_it_lies(tmp_path: Path) -> None:
    data = host_elf(SLIM)
    tar = tmp_path / "tar"
    tar.write_bytes(b"h" * 512 + data + FAT)
    found = census_file(tar, "libx.so", offset=512, size=len(data))
    assert [code.arch for code in found] == ["gfx906"]
    assert census_file(tar, "libx.so") == ()
    assert census_file(tar, "libx.so", offset=512, size=3) == ()


@given(place=st.integers(0, 400), noise=st.binary(min_size=1, max_size=30), ccob=st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_damaged_library_is_counted_or_refused(
    place: int, noise: bytes, *, ccob: bool
) -> None:
    data = host_elf(compressed(FAT) if ccob else FAT)
    place = place if place < 300 else len(data) - place + 100
    try:
        counted(data[:place] + noise + data[place + len(noise) :])
    except StageError as error:
        codes = {"MALFORMED_ELF", "MALFORMED_BUNDLE", "TRUNCATED", "TARGET_MISMATCH"}
        if error.code not in codes:
            raise


SPEC = Census(libraries=("usr/lib/lib*.so*",), kernel_files={"usr/lib/rocblas/*gfx906*.dat": 2})
PATHS = ("usr/lib/libx.so", "usr/lib/rocblas/a_gfx906.dat", "usr/lib/rocblas/b/c_gfx906.dat")


def code(
    arch: str, path: str = "usr/lib/libx.so", kind: CodeKind = CodeKind.FATBIN
) -> DeviceCode:
    return DeviceCode(path=path, arch=arch, bytes=2_500_000, objects=1, kind=kind)


def judged(
    *found: DeviceCode,
    paths: tuple[str, ...] = PATHS,
    env: dict[str, str] | None = None,
    texts: dict[str, str] | None = None,
) -> list[Finding]:
    return list(judge_census(found, SPEC, paths=paths, env=env or {}, texts=texts))


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_a_good_tree_has_no_findings() -> None:
    assert judged(code("gfx906"), env={"HSA_XNACK": "0"}) == []
    assert judged(code("gfx906:sramecc+:xnack-")) == []


def test_a_library_that_only_talks_of_gfx906_fails_by_name() -> None:
    lib = host_elf(fat_objects(1, ("gfx900", "gfx1030")) + bytes(64), section=b".hip_fatbin")
    path = "usr/lib/libgfx906-kernels.so"
    found = census_window(Window(lib + b"gfx906 hipv4-amdgcn-amd-amdhsa--gfx906", path))
    absent, library = judged(*found)
    assert (absent.code, absent.path) == ("ARCH_ABSENT", path)
    assert path in absent.message
    assert "gfx1030" in absent.message
    assert library.code == "LIBRARY_ABSENT"


def test_another_architecture_beside_ours_is_priced() -> None:
    (finding,) = judged(code("gfx906"), code("gfx90a:xnack+"))
    assert finding.code == "FOREIGN_TARGET"
    assert "gfx90a:xnack+ (2.5 MB)" in finding.message


def test_xnack_objects_are_foreign_to_our_cards() -> None:
    assert codes(judged(code("gfx906"), code("gfx906:xnack+"))) == ["FOREIGN_TARGET"]
    assert codes(judged(code("gfx906:xnack+"))) == ["ARCH_ABSENT", "LIBRARY_ABSENT"]


def test_a_kernel_file_of_another_gpu_is_found() -> None:
    other = code("gfx1030", path="usr/lib/rocblas/k.co", kind=CodeKind.ELF)
    assert [(f.code, f.path) for f in judged(code("gfx906"), other)] == [
        ("ARCH_ABSENT", "usr/lib/rocblas/k.co")
    ]


def test_unknown_targets_are_never_ours() -> None:
    assert codes(judged(code("gfx906"), code("unknown", path="x.co"))) == ["ARCH_ABSENT"]


def test_missing_kernel_files_are_counted() -> None:
    (finding,) = judged(code("gfx906"), paths=PATHS[:2])
    assert finding.code == "KERNEL_FILES_ABSENT"
    assert finding.message == "1 files match usr/lib/rocblas/*gfx906*.dat, at least 2 must"


def test_a_library_that_is_there_without_code_is_absent() -> None:
    assert codes(judged(code("gfx906", path="opt/other.so"))) == ["LIBRARY_ABSENT"]


def test_overrides_are_found_in_the_environment_and_in_files() -> None:
    env = {"HSA_OVERRIDE_GFX_VERSION": "9.0.6", "PATH": "/usr/bin"}
    texts = {
        "etc/environment": "# HSA_OVERRIDE_OLD=1\nHSA_OVERRIDE_GFX_VERSION=9.0.6\n",
        "etc/profile.d/x.sh": "  export HSA_OVERRIDE_A_B = 1 ; HSA_OVER=2\n",
        "usr/lib/systemd/system/a.service": '[Service]\nEnvironment="HSA_OVERRIDE_C=1"\n',
        "etc/default/y": "OTHER=HSA_OVERRIDE\n",
    }
    findings = judged(code("gfx906"), env=env, texts=texts)
    assert {finding.code for finding in findings} == {"HSA_OVERRIDE"}
    assert [finding.message.split()[0] for finding in findings] == [
        "HSA_OVERRIDE_GFX_VERSION",
        "HSA_OVERRIDE_GFX_VERSION",
        "HSA_OVERRIDE_A_B",
        "HSA_OVERRIDE_C",
    ]
    assert all(is_environment_file(path) for path in texts)
    assert not is_environment_file("usr/share/doc/environment")
