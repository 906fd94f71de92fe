"""Folders of a few files, written in an order that never claims what is not there yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from vega_image.errors import UsageError
from vega_image.finddb.manifest import MANIFEST
from vega_image.finddb.opening import read_bytes
from vega_image.store import disk_errors, write_atomic


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, the manifest last; what else a curated folder had before is removed.

    Raises UsageError FOLDER_IN_USE for a folder that holds anything but such files,
    EngineError DISK_FULL, NO_PERMISSION, DISK_FAILED.
    """
    old = _old_files(folder)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # A folder without manifest is refused by whoever reads it: no half of two versions.
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in sorted(old - set(files)):
            (folder / name).unlink(missing_ok=True)
        for name in sorted(files, key=lambda name: (name == MANIFEST, name)):
            write_atomic(folder / name, files[name])


def _old_files(folder: Path) -> set[str]:
    if not folder.exists():
        return set()
    if not folder.is_dir():
        msg = f"{folder} is a file; a folder is to be written"
        raise UsageError("FOLDER_IN_USE", msg, at=str(folder), hint="-o DIR")
    names = {path.name for path in folder.iterdir()}
    strange = sorted(name for name in names if not _ours(name))
    if strange:
        msg = f"{folder} holds {strange[0]}, which is of no curated find-db"
        raise UsageError("FOLDER_IN_USE", msg, at=str(folder), hint="-o an empty or new folder")
    return names


def _ours(name: str) -> bool:
    return name in {MANIFEST, "evidence.tsv"} or name.endswith(".HIP.fdb.txt")


def read_folder(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder; raises UsageError CURATED_ABSENT."""
    if not folder.is_dir():
        msg = f"there is no folder {folder}"
        hint = "vega-image finddb curate DB -o DIR"
        raise UsageError("CURATED_ABSENT", msg, at=str(folder), hint=hint)
    return {path.name: read_bytes(path) for path in _sorted(folder.iterdir())}


def _sorted(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.name)
