"""Recorded workstations: the good one, and what differs on the others."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from vega_image.selftest.facts import Facts, read_facts

DATA = Path(__file__).resolve().parent / "data" / "gpu" / "kfd-radeon-vii"
OVERLAYS = sorted(path.name for path in (DATA / "overlays").iterdir())

STRANGER = 54321
NODE = "sys/class/kfd/kfd/topology/nodes/1"
DEVICE = "sys/class/drm/card0/device"
NOTHING: Mapping[str, str] = MappingProxyType({})


def assemble(folder: Path, overlay: str = "") -> Path:
    """Lay the good machine and an overlay into `folder`, device nodes with their usual mode."""
    root = folder / "sysroot"
    shutil.copytree(DATA / "sysroot", root)
    if overlay:
        shutil.copytree(DATA / "overlays" / overlay, root, dirs_exist_ok=True)
    removed = root / "REMOVE"
    for name in removed.read_text().split() if removed.exists() else ():
        path = root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    for node in (root / "dev/kfd", root / "dev/dri/renderD128"):
        if node.exists():
            node.chmod(0o660)
    return root


def facts_of(root: Path, environ: Mapping[str, str] = NOTHING) -> Facts:
    """Read a machine as a user who is in the group that owns the device nodes."""
    return read_facts(root, environ, uid=STRANGER, gids={root.stat().st_gid})


def edit(root: Path, name: str, old: str, new: str) -> None:
    """Replace a piece of one file, which must be there."""
    path = root / name
    text = path.read_text()
    assert old in text, f"{name} has no {old!r}"
    path.write_text(text.replace(old, new))


def write(root: Path, name: str, text: str) -> None:
    """Write one file, making its folders."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
