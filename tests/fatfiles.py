"""Fake code objects, bundles of them, and host files with such bundles by real linkers."""

from __future__ import annotations

import hashlib
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from vega_image.process import run

SOURCES = Path(__file__).parent / "data" / "c"
MACH = {"gfx900": 0x2C, "gfx906": 0x2F, "gfx1030": 0x36, "gfx90a": 0x3F}
ANY = 0x500
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"


def code_object(
    arch: str, size: int, *, flags: int = ANY, abi: int = 2, seed: int = 0
) -> bytes:
    """An ELF header that says `arch`, then noise: what a reader may look at, and may not."""
    ident = b"\x7fELF\x02\x01\x01\x40" + bytes([abi]) + bytes(7)
    mach = MACH[arch] | flags
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 224, 1, 0, 0, 0, mach, 64, 0, 0, 0, 0, 0)
    return head + random.Random(f"{arch}{seed}").randbytes(size - len(head))


def bundle(
    objects: Sequence[tuple[str, bytes]], *, align: int = 4096, kind: str = "hipv4"
) -> bytes:
    """A plain bundle as clang writes it: the host's empty entry first."""
    ids = ["host-x86_64-unknown-linux-gnu-"]
    ids += [f"{kind}-amdgcn-amd-amdhsa--{target}" for target, _ in objects]
    header = 32 + sum(24 + len(name) for name in ids)
    place = first = -(-header // align) * align
    rows = [(first, 0, ids[0])]
    body = b""
    for name, (_, data) in zip(ids[1:], objects, strict=True):
        rows.append((place, len(data), name))
        body += bytes(place - first - len(body)) + data
        place = -(-(place + len(data)) // align) * align
    table = b"".join(struct.pack("<QQQ", a, b, len(c)) + c.encode() for a, b, c in rows)
    head = MAGIC + struct.pack("<Q", len(rows)) + table
    return head + bytes(first - len(head)) + body


def compressed(plain: bytes, *, version: int = 3, method: int = 1) -> bytes:
    """A CCOB around a plain bundle."""
    packed = zlib.compress(plain) if method == 0 else zstandard.compress(plain, 3)
    total = {1: 20, 2: 24, 3: 32}[version] + len(packed)
    sizes = {
        1: struct.pack("<I", len(plain)),
        2: struct.pack("<II", total, len(plain)),
        3: struct.pack("<QQ", total, len(plain)),
    }[version]
    digest = hashlib.md5(plain).digest()[:8]
    return b"CCOB" + struct.pack("<HH", version, method) + sizes + digest + packed


def fat_objects(seed: int, archs: Sequence[str] = ("gfx900", "gfx906", "gfx1030")) -> bytes:
    """A bundle of objects whose sizes end nowhere near a page."""
    sizes = [9000 + 1111 * seed + 777 * i for i in range(len(archs))]
    pairs = zip(archs, sizes, strict=True)
    return bundle([(arch, code_object(arch, size, seed=seed)) for arch, size in pairs])


def host_elf(fatbin: bytes, *, section: bytes = b".hip_fatbin", kind: int = 1) -> bytes:
    """The least ELF file that has a section with these bytes; nothing could load it."""
    names = b"\0" + section + b"\0.shstrtab\0"
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    at = 64 + len(fatbin) + len(names)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, 3, 2)
    rows = [
        (0,) * 10,
        (1, kind, 2, 64, 64, len(fatbin), 0, 0, 1, 0),
        (2 + len(section), 3, 0, 0, 64 + len(fatbin), len(names), 0, 0, 1, 0),
    ]
    return head + fatbin + names + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)


@dataclass(frozen=True)
class Linker:
    """One way to link the fixture. `options` go to the compiler, `defines` to its sources."""

    name: str
    compiler: str = "gcc"
    options: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    program: bool = False
    align: int = 12


def link(
    folder: Path, how: Linker, *, first: bytes | None = None, second: bytes | None = None
) -> Path:
    """Compile and link tests/data/c/fatlib.*; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "first.bundle").write_bytes(fat_objects(1) if first is None else first)
    (folder / "second.bundle").write_bytes(fat_objects(2) if second is None else second)
    out = folder / ("program" if how.program else "libfat.so")
    shape = ("-DPROGRAM", "-fPIE", "-pie") if how.program else ("-fPIC", "-shared")
    defines = [f"-D{name}" for name in (f"FATBIN_ALIGN={how.align}", *how.defines)]
    sources = [str(SOURCES / "fatlib.c"), str(SOURCES / "fatlib.S")]
    include = f"-Wa,-I{folder}"
    _compile(
        [how.compiler, "-O1", *shape, *defines, include, *sources, *how.options, "-o", str(out)]
    )
    return out


def compile_c(out: Path, source: str, *options: str) -> Path:
    """Compile one of tests/data/c."""
    _compile(["gcc", "-O2", *options, str(SOURCES / source), "-o", str(out), "-ldl"])
    return out


def _compile(argv: list[str]) -> None:
    done = run(argv)
    assert done.returncode == 0, f"{done.command}\n{done.output}"
