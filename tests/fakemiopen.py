"""A root file system with a libMIOpen of our own making, for the jail and the probe."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from vega_image.finddb.probe.build import tools
from vega_image.finddb.probe.card import Card
from vega_image.finddb.probe.cell import Cell, Limits
from vega_image.finddb.probe.library import find_library
from vega_image.store import Store

LIBRARIES = "usr/lib/x86_64-linux-gnu"
HOST = Path("/lib/x86_64-linux-gnu")
SOURCE = Path(__file__).parent / "data/c/fakemiopen.c"
LIMITS = Limits(start_seconds=30.0, answer_seconds=30.0, memory=1 << 30, file_bytes=1 << 20)


def fake_root(folder: Path, *defines: str) -> Path:
    """Make a root of this host's C library and a fake libMIOpen compiled with `defines`."""
    place = folder / LIBRARIES
    place.mkdir(parents=True)
    (folder / "lib64").mkdir()
    shutil.copy(HOST / "libc.so.6", place)
    shutil.copy("/lib64/ld-linux-x86-64.so.2", folder / "lib64")
    command = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", *defines]
    out = place / "libMIOpen.so.1"
    subprocess.run([*command, str(SOURCE), "-o", str(out)], check=True)
    return folder


def fake_cell(
    folder: Path, store: Path, *defines: str, limits: Limits = LIMITS, card: Card | None = None
) -> Cell:
    """Prepare a cell for such a root; `store` is where the compiled probe is kept."""
    root = fake_root(folder / "root", *defines)
    cell = Cell(
        folder=folder / "cell", library=find_library(root), card=card or Card(), limits=limits
    )
    cell.folder.mkdir()
    cell.furnish(tools(Store(store)))
    return cell
