"""Where the libMIOpen of a root file system is, and which libraries the shim stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vega_image.codeobjects.elf import DYN, EM_X86_64, PT_DYNAMIC, Elf, read_elf
from vega_image.codeobjects.window import Region, opened
from vega_image.errors import UsageError, VegaError

NAME: Final = "libMIOpen.so.1"
FOLDERS: Final = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "opt/rocm/lib",
    "usr/local/lib",
)
LOADERS: Final = ("lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
SHIMMED: Final = (
    "libamdhip64.so", "libhiprtc.so", "libamd_comgr.so", "librocblas.so", "libroctx64.so",
    "libhipblaslt.so", "libhsa-runtime64.so",
)  # fmt: skip
DT_NEEDED, DT_STRTAB, DT_STRSZ = 1, 5, 10
LINKS_AT_MOST: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A libMIOpen: `path` and `loader` as its root sees them, `file` as the host does.

    `shimmed` are the names under which it asks for what the shim answers.
    """

    root: Path
    path: str
    loader: str
    file: Path
    sha256: str
    shimmed: tuple[str, ...]


def find_library(root: Path, name: str = "") -> Library:
    """Find the library; `name` is what people call the root.

    Raises UsageError LIBRARY_ABSENT, LOADER_ABSENT, LIBRARY_UNREADABLE.
    """
    called = name or str(root)
    for folder in FOLDERS:
        file = inside(root, f"{folder}/{NAME}")
        if file is not None:
            return _library(root, f"/{folder}/{NAME}", file, called)
    msg = f"{called}: no {NAME} in {', '.join(FOLDERS)}"
    hint = "name an image with MIOpen, as linux-miopen, or the root of one"
    raise UsageError("LIBRARY_ABSENT", msg, at=called, hint=hint)


def inside(root: Path, path: str) -> Path | None:
    """Resolve a path as a process with this root would; None where there is no file.

    Links are followed within `root`, so that no file of the host is taken for one of it.
    """
    parts = [part for part in reversed(path.split("/")) if part not in {"", "."}]
    here: list[str] = []
    links = 0
    while parts:
        part = parts.pop()
        if part == "..":
            here = here[:-1]
            continue
        place = root.joinpath(*here, part)
        if not place.is_symlink():
            here.append(part)
            continue
        links += 1
        if links > LINKS_AT_MOST:
            return None
        target = str(place.readlink())
        here = [] if target.startswith("/") else here
        parts += [item for item in reversed(target.split("/")) if item not in {"", "."}]
    found = root.joinpath(*here)
    return found if found.exists() else None


def _library(root: Path, path: str, file: Path, called: str) -> Library:
    loader = next((name for name in LOADERS if inside(root, name)), None)
    if loader is None:
        msg = f"{called}: no program loader ({' or '.join(LOADERS)})"
        raise UsageError("LOADER_ABSENT", msg, at=called, hint="name a whole root")
    try:
        with opened(Region(file), path) as window:
            needed = tuple(_needed(read_elf(window)))
    except VegaError as error:
        msg = f"{path}: {error.message}"
        raise UsageError("LIBRARY_UNREADABLE", msg, at=str(file)) from error
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Library(
        root=root,
        path=path,
        loader=f"/{loader}",
        file=file,
        sha256=digest,
        shimmed=tuple(name for name in needed if name.startswith(SHIMMED)),
    )


def _needed(elf: Elf) -> Iterator[str]:
    """Yield the names of the libraries that a library asks for (DT_NEEDED)."""
    if elf.header.machine != EM_X86_64:
        msg = f"its machine is {elf.header.machine}, not x86-64"
        raise UsageError("LIBRARY_UNREADABLE", msg)
    tags = elf.dynamic()
    size = tags.get(DT_STRSZ, 0)
    names = elf.window.take(elf.file_offset(tags.get(DT_STRTAB, 0), size), size)
    for segment in elf.segments:
        if segment.type == PT_DYNAMIC:
            rows = elf.window.table(DYN, segment.offset, segment.filesz // DYN.size)
            for tag, value in rows:
                if tag == DT_NEEDED:
                    yield names[value : names.find(b"\0", value)].decode("latin-1")
