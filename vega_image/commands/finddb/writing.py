"""What the words write: a whole file or none."""

from __future__ import annotations

from pathlib import Path

from vega_image.errors import UsageError
from vega_image.store import disk_errors, write_atomic


def write_file(path: Path, data: bytes) -> None:
    """Write a file; raises UsageError OUTPUT_IN_NO_FOLDER, and EngineError from the disk."""
    if not path.absolute().parent.is_dir():
        msg = f"{path.parent} is no folder, {path.name} cannot be written there"
        raise UsageError("OUTPUT_IN_NO_FOLDER", msg, hint=f"mkdir -p {path.parent}")
    if path.exists() and not path.is_file():
        # Also /dev/null: a rename would put a file in its place.
        raise UsageError("OUTPUT_NOT_A_FILE", f"{path} is not a regular file", at=str(path))
    with disk_errors(path):
        write_atomic(path.resolve(), data)
