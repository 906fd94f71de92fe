"""Write a Windows tree to a folder, whole and without what an older one left in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from vega_image.errors import UsageError
from vega_image.store import disk_errors, write_atomic

MANIFEST = "context.json"


def write_tree(files: Mapping[str, bytes], folder: Path) -> None:
    """Write every file, the manifest last; files that only an older tree had are removed.

    What people put there stays. Raises UsageError FOLDER_NOT_OURS for a folder that holds
    other things and no tree, or where a file of the tree would be a folder.
    """
    before = _rendered(folder)
    order = sorted(files, key=lambda path: (path == MANIFEST, path))
    with disk_errors(folder):
        for path in order:
            target = folder / path
            if target.is_dir():
                msg = f"{target}: a folder is where a file belongs"
                raise UsageError("FOLDER_NOT_OURS", msg, at=str(target), hint="move it away")
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, files[path])
        for path in before:
            if path not in files:
                (folder / path).unlink(missing_ok=True)


def _rendered(folder: Path) -> Iterable[str]:
    """Return the paths of the tree that is there; none in a new or empty folder."""
    with disk_errors(folder):
        if not folder.exists() or not any(folder.iterdir()):
            return ()
    try:
        paths = json.loads((folder / MANIFEST).read_bytes())["rendered"]
        named = [path for path in paths if isinstance(path, str)]
    except (OSError, ValueError, KeyError, TypeError):
        msg = f"{folder}: the folder holds other things"
        raise UsageError(
            "FOLDER_NOT_OURS", msg, at=str(folder), hint="name a new folder: -o DIR"
        ) from None
    # The manifest is a file that anybody may have edited: nothing outside may be touched.
    return [path for path in named if ".." not in Path(path).parts and not path.startswith("/")]
