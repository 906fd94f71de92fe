"""Slimming the real libraries of linux-inference, and loading them as their root would.

`real_root` is the target's root, extracted and not slimmed. No GPU takes part: a preloaded
stub stands where libamdhip64 registers code, and shows what every pointer leads to.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.fatfiles import compile_c
from vega_image.codeobjects.census import census_file
from vega_image.codeobjects.elf import SHT_NOBITS, Elf, read_elf
from vega_image.codeobjects.slim import slim
from vega_image.codeobjects.window import Region, opened
from vega_image.process import output_of, run

pytestmark = [pytest.mark.slow, pytest.mark.needs("gcc", "eu-elflint")]

LIBRARIES = {
    "usr/lib/x86_64-linux-gnu/librocblas.so.4.*": "rocblas_sgemm",
    "usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-hip.so": "ggml_backend_init",
}
MULTIARCH = "usr/lib/x86_64-linux-gnu"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tools")
    stub = compile_c(folder / "stub.so", "stub.c", "-shared", "-fPIC")
    return stub, compile_c(folder / "loader", "loader.c")


@pytest.fixture(params=sorted(LIBRARIES))
def pair(
    request: pytest.FixtureRequest, real_root: Path, tmp_path: Path
) -> tuple[Path, Path, str]:
    """A real library, the same slimmed, and a symbol it must offer."""
    glob = str(request.param)
    source = next(p for p in sorted(real_root.glob(glob)) if not p.is_symlink())
    out = tmp_path / source.name
    assert slim(source, out, keep=["gfx906"], name=source.name) is not None
    return source, out, LIBRARIES[glob]


def test_a_real_library_becomes_a_fraction_with_the_same_code(
    pair: tuple[Path, Path, str], tmp_path: Path
) -> None:
    source, out, _ = pair
    assert out.stat().st_size < source.stat().st_size / 5
    before = {code.arch: code for code in census_file(source, "x")}
    (after,) = census_file(out, "x")
    assert (after.arch, after.bytes) == ("gfx906", before["gfx906"].bytes)
    assert after.objects == before["gfx906"].objects > 60
    assert slim(out, tmp_path / "again", keep=["gfx906"], name="x") is None


def test_only_three_sections_of_a_real_library_change(pair: tuple[Path, Path, str]) -> None:
    source, out, _ = pair
    with opened(Region(source), "old") as one, opened(Region(out), "new") as two:
        assert _changed(read_elf(one), read_elf(two)) == {
            ".hip_fatbin",
            ".rela.dyn",
            ".hipFatBinSegment",
        }


def _changed(old: Elf, new: Elf) -> set[str]:
    return {
        a.name
        for a, b in zip(old.sections, new.sections, strict=True)
        if (a.name, a.addr) != (b.name, b.addr)
        or (
            a.type != SHT_NOBITS
            and old.window.take(a.offset, a.size) != new.window.take(b.offset, b.size)
        )
    }


def test_relocations_of_a_real_library_keep_number_type_and_symbol(
    pair: tuple[Path, Path, str],
) -> None:
    source, out, _ = pair
    with opened(Region(source), "old") as window:
        section = read_elf(window).section(".hip_fatbin")
    assert section is not None
    row = re.compile(r"^([0-9a-f]{16})\s+[0-9a-f]{16}\s+(\S+)\s+(.*)$", re.MULTILINE)
    before, after = (row.findall(run(["readelf", "-rW", str(p)]).output) for p in (source, out))
    moved = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert len(moved) > 60
    for old, new in moved:
        assert old[:2] == new[:2]
        assert old[1] == "R_X86_64_RELATIVE"
        assert section.addr <= int(new[2], 16) < int(old[2], 16) < section.addr + section.size


def test_elflint_finds_no_error_in_a_real_slimmed_library(
    pair: tuple[Path, Path, str],
) -> None:
    assert run(["eu-elflint", "--gnu-ld", str(pair[1])]).output == "No errors\n"


def test_a_real_library_registers_the_same_code_objects(
    pair: tuple[Path, Path, str], real_root: Path, tools: tuple[Path, Path]
) -> None:
    source, out, symbol = pair
    before = _registered(source, symbol, real_root, tools)
    after = _registered(out, symbol, real_root, tools)
    entries = re.compile(r"entries=\d+")
    assert [entries.sub("", line) for line in before] == [entries.sub("", x) for x in after]
    mine = [line for line in after if line.startswith(f"bundle {out.name} ")]
    assert len(mine) > 60
    assert all("entries=2 good=1" in line for line in mine)
    assert " bad=0 " in after[-1]


def _registered(library: Path, symbol: str, root: Path, tools: tuple[Path, Path]) -> list[str]:
    stub, loader = tools
    folders = ":".join(str(root / sub) for sub in (MULTIARCH, f"{MULTIARCH}/ggml/backends0"))
    interpreter = str(root / MULTIARCH / "ld-linux-x86-64.so.2")
    library_path = ["--library-path", folders, "--preload", str(stub)]
    argv = [interpreter, *library_path, str(loader), f"{library}:{symbol}"]
    done = run(argv, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.output
    return done.output.replace(str(library), library.name).splitlines()


def test_no_instruction_refers_to_device_code(
    pair: tuple[Path, Path, str], tmp_path: Path
) -> None:
    """Only relocations can be checked by slim(); this is why they are enough."""
    source = pair[0]
    with opened(Region(source), "old") as window:
        section = read_elf(window).section(".hip_fatbin")
    assert section is not None
    argv = ["objdump", "-d", "--no-show-raw-insn", "-j", ".text", str(source)]
    seen = 0
    with (tmp_path / "log").open("wb") as log, output_of(argv, stderr=log) as child:
        assert child.stdout is not None
        for line in child.stdout:
            _, mark, address = line.partition(b" # ")
            if mark:
                seen += 1
                value = int(address.split()[0], 16)
                assert not section.addr <= value < section.addr + section.size, line
        assert child.wait() == 0
    assert seen > 10_000
