"""linux-miopen for real: what is in it, that it starts, and what the real comgr says of it.

No GPU takes part. libamd_comgr of the image itself is asked for code objects in the way the
HIP runtime asks it; hipRTC of the image compiles a kernel of MIOpen's own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.fatfiles import SOURCES
from tests.realimage import build_real
from vega_image.codeobjects.bundle import Bundle, Compressed, read_bundles
from vega_image.codeobjects.census import census_file
from vega_image.codeobjects.elf import read_elf
from vega_image.codeobjects.packing import recompressed, unpacked
from vega_image.codeobjects.slim import slim
from vega_image.codeobjects.window import Region, Window, opened
from vega_image.oci.archive import docker_archive
from vega_image.oci.layout import Layout, read_layout
from vega_image.process import run
from vega_image.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.needs("gcc")]

TARGET = "linux-miopen"
LIB = "usr/lib/x86_64-linux-gnu"
DRIVER = "usr/libexec/rocm/libmiopen1-tests/MIOpenDriver"
OURS = "amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-"
# Kernels that solvers of 7.2.4 ask for by name and that Debian leaves out of the library.
ASSEMBLY_KERNELS = 22
SANDBOX = ["--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp"]


@pytest.fixture(scope="module")
def layout(real_factory: Path) -> Layout:
    return read_layout(Path(build_real(real_factory, "--level", "3", target=TARGET)["layout"]))


@pytest.fixture(scope="module")
def root(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("miopen-root")
    unpack = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    for layer in layout.layers:
        path = layout.folder / "blobs/sha256" / layer.digest.removeprefix("sha256:")
        with (
            path.open("rb") as blob,
            unpack.stream_reader(blob) as plain,
            subprocess.Popen(["tar", "-x", "-C", folder], stdin=subprocess.PIPE) as tar,
        ):
            assert tar.stdin is not None
            shutil.copyfileobj(plain, tar.stdin)
            tar.stdin.close()
        assert tar.returncode == 0
    yield folder
    subprocess.run(["rm", "-rf", "--", folder], check=True)


@pytest.fixture(scope="module")
def shipped(
    real_factory: Path, layout: Layout, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Debian's librocblas.so, as it is in the package."""
    folder = tmp_path_factory.mktemp("shipped")
    lock = json.loads((real_factory / f"images/{TARGET}.lock.json").read_text())
    packages = lock["sources"]["debian"]["packages"]
    sha256 = next(p["sha256"] for p in packages if p["package"] == "librocblas5")
    deb = layout.folder.parent.parent / "objects/sha256" / sha256[:2] / sha256
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE
    ) as unpack:
        argv = ["tar", "-x", "-C", str(folder), "--wildcards", f"./{LIB}/librocblas.so.*"]
        subprocess.run(argv, stdin=unpack.stdout, check=True)
    return next(p for p in (folder / LIB).iterdir() if not p.is_symlink())


@pytest.fixture(scope="module")
def judge(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Ask the image's libamd_comgr: (file, offset, target) -> "SIZE HASH", "" for none."""
    program = linked(tmp_path_factory.mktemp("judge") / "comgr", root, "libamd_comgr.so.3")
    loader = [str(root / LIB / "ld-linux-x86-64.so.2"), "--library-path", str(root / LIB)]

    def ask(path: Path, offset: int, target: str = OURS) -> str:
        # Its cache knows a compressed bundle by the hash in the header, whatever follows.
        done = run(
            [*loader, str(program), str(path), str(offset), target],
            env={"AMD_COMGR_CACHE": "0"},
        )
        return done.output.strip() if done.returncode == 0 else ""

    return ask


def linked(out: Path, root: Path, library: str) -> Path:
    """Compile tests/data/c/NAME.c against a library of the image."""
    argv = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", str(SOURCES / f"{out.name}.c")]
    lost = "-Wl,--unresolved-symbols=ignore-all"
    done = run([*argv, "-o", str(out), lost, str(root / LIB / library)])
    assert done.returncode == 0, done.output
    return out


def bundles_in(path: Path) -> list[Bundle]:
    """Where the bundles are; their unpacked content is not kept."""
    with opened(Region(path), path.name) as window:
        section = read_elf(window).section(".hip_fatbin")
        assert section is not None
        empty = Window(b"", "")
        return [
            Bundle(b.start, b.end, empty, 0, 0, b.entries, b.compressed)
            for b in read_bundles(window, section.offset, section.end)
        ]


def test_it_is_small_and_holds_gfx906_only(root: Path, layout: Layout) -> None:
    found = [
        code
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
        for code in census_file(path, path.relative_to(root).as_posix())
    ]
    assert {code.arch.partition(":")[0] for code in found} == {"gfx906"}
    by_path = {code.path: code for code in found}
    blas = next(code for path, code in by_path.items() if "librocblas.so" in path)
    assert (blas.objects, blas.compressed) == (65, False)
    assert sum("/rocblas/" in path for path in by_path) > 100
    assert layout.uncompressed_bytes < 600e6


def test_nothing_interprets_or_compiles_in_it(root: Path) -> None:
    programs = [p for p in root.rglob("*") if p.is_file() and os.access(p, os.X_OK)]
    names = {p.name for p in programs if ".so" not in p.name}
    assert names == {"MIOpenDriver"}
    assert not [p for p in root.rglob("*") if p.is_file() and re.search(r"python|\.h$", p.name)]


def test_the_loader_finds_every_library_inside(root: Path) -> None:
    loader = [str(root / LIB / "ld-linux-x86-64.so.2"), "--library-path", str(root / LIB)]
    done = run([*loader, "--list", str(root / DRIVER)])
    assert done.returncode == 0, done.output
    assert "not found" not in done.output
    paths = re.findall(r"=> (/\S+)", done.output)
    assert len(paths) > 25
    assert all(path.startswith(str(root)) for path in paths)


def test_comgr_takes_the_same_code_from_the_slimmed_library(
    shipped: Path, tmp_path: Path, judge: Any
) -> None:
    out = tmp_path / shipped.name
    report = slim(shipped, out, keep=["gfx906"], name=shipped.name)
    assert report is not None
    assert report.bytes_after < report.bytes_before / 2
    old, new = bundles_in(shipped), bundles_in(out)
    assert len(old) == len(new) == 65
    assert {b.compressed.version if b.compressed else 0 for b in old} == {3}
    for before, after in list(zip(old, new, strict=True))[::8]:
        told = judge(shipped, before.start)
        assert told
        assert judge(out, after.start) == told
        assert judge(shipped, before.start, OURS.replace("906:sramecc+:xnack-", "1030"))
        assert not judge(out, after.start, OURS.replace("906:sramecc+:xnack-", "1030"))


@pytest.mark.parametrize("version", [2, 3])
def test_comgr_unpacks_what_had_no_room(
    shipped: Path, tmp_path: Path, judge: Any, version: int
) -> None:
    with opened(Region(shipped), "x") as window:
        section = read_elf(window).section(".hip_fatbin")
        assert section is not None
        whole = next(read_bundles(window, section.offset, section.end))
        less = unpacked(whole, ["gfx906"])
    head = Compressed(version, 1, 0, None, less.data.size, b"")
    packed = Bundle(0, 0, less.data, 0, less.header, less.entries, head)
    made = tmp_path / "bundle"
    made.write_bytes(recompressed(packed))
    assert judge(made, 0) == judge(shipped, whole.start) != ""
    assert not judge(made, 0, OURS.replace("906:sramecc+:xnack-", "1030"))
    made.write_bytes(made.read_bytes()[:-99] + b"damage" * 17)
    assert not judge(made, 0)


def test_eu_elflint_finds_no_error(root: Path) -> None:
    for name in ("librocblas.so.5.2", "librocrand.so.1.1"):
        assert run(["eu-elflint", "--gnu-ld", str(root / LIB / name)]).output == "No errors\n"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=pytest.mark.needs("docker")),
        pytest.param("podman", marks=pytest.mark.needs("podman")),
    ],
)
def engine(
    request: pytest.FixtureRequest, layout: Layout, tmp_path_factory: Any
) -> Iterator[str]:
    """An engine that holds the image as localhost/vega-miopen-test."""
    name = str(request.param)
    archive = tmp_path_factory.mktemp("archive") / "image.tar"
    store = Store(layout.folder.parent.parent)
    with archive.open("wb") as file:
        for chunk in docker_archive(layout, store, tag="localhost/vega-miopen-test:1"):
            file.write(chunk)
    done = run([name, "load", "--input", str(archive)])
    archive.unlink()
    assert done.returncode == 0, done.output
    seen = json.loads(run([name, "image", "inspect", "localhost/vega-miopen-test:1"]).output)
    identity = seen[0]["Id"].removeprefix("sha256:")
    assert identity == layout.config_digest.removeprefix("sha256:")
    yield name
    run([name, "rmi", "--force", "localhost/vega-miopen-test:1"])


def contained(engine: str, *words: str) -> subprocess.CompletedProcess[str]:
    runtime = ["--runtime", "runc"] if engine == "podman" else []
    # Podman's own default is above what a virtual machine may allow.
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
    argv = [engine, *runtime, "run", *SANDBOX, *limits, *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_driver_starts_in_the_sandbox(engine: str) -> None:
    done = contained(engine, "localhost/vega-miopen-test:1", "--version")
    assert done.stdout == "MIOpen (version: 3.5.1)\n", done.stderr


def test_it_compiles_miopens_own_kernel_with_nothing_but_itself(
    engine: str, root: Path, tmp_path: Path
) -> None:
    linked(tmp_path / "hiprtc", root, "libhiprtc.so.7")
    texts = kernels((root / LIB / "libMIOpen.so.1.0").read_bytes())
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    tmp_path.chmod(0o755)
    words = ("-v", f"{tmp_path}:/kernel:ro", "--entrypoint", "/kernel/hiprtc")
    names = sorted(texts, key=lambda name: not name.endswith(".cpp"))
    done = contained(engine, *words, "localhost/vega-miopen-test:1", "/kernel", *names)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100_000


def kernels(library: bytes) -> dict[str, bytes]:
    """Take the naive convolution and its three headers out of the library's strings."""
    marks = {
        "naive_conv.cpp": b'#include "stride_array.hpp"',
        "miopen_cstdint.hpp": b"typedef unsigned char uint8_t",
        "miopen_limits.hpp": b"define WORKAROUND_DONT_USE_CUSTOM_LIMITS",
        "stride_array.hpp": b"StrideArray",
    }
    found = {}
    for name, mark in marks.items():
        at = library.index(mark)
        start, end = library.rindex(b"\0", 0, at) + 1, library.index(b"\0", at)
        found[name] = library[start:end]
    return found


def test_the_known_gap_is_as_the_label_says(root: Path, layout: Layout) -> None:
    library = (root / LIB / "libMIOpen.so.1.0").read_bytes()
    named = set(re.findall(rb"(?<=\0)[a-z][a-z0-9_]+\.s(?=\0)", library))
    assert len(named) == ASSEMBLY_KERNELS
    for mark in (b".amdgcn_target", b".amdhsa_kernel", b".macro", b"s_endpgm"):
        assert mark not in library
    assert census_file(root / LIB / "libMIOpen.so.1.0", "x") == ()
    assert "no assembly kernels" in layout.labels["io.vega-image.known-gap"]
    assert layout.labels["io.vega-image.finddb.status"] == "unproven"
