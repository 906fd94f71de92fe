"""Folders for half-done work that are gone once their process is, however it died."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Claim:
    """A folder of this process; the lock on the file beside it dies with the process."""

    path: Path
    handle: IO[bytes]

    def release(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        _lock_of(self.path).unlink(missing_ok=True)
        self.handle.close()


def claim(parent: Path) -> Claim:
    """Make a folder below `parent`; only one process at a time may be in here or in `sweep`."""
    path = Path(tempfile.mkdtemp(dir=parent, prefix="run-"))
    handle = _lock_of(path).open("wb")
    fcntl.flock(handle, fcntl.LOCK_EX)
    return Claim(path, handle)


def sweep(parent: Path) -> None:
    """Remove what the dead left below `parent`."""
    for path in _dead(parent):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _dead(parent: Path) -> Iterator[Path]:
    # Folders first: a lock file may only go after what it is for.
    for path in sorted(parent.iterdir(), key=lambda path: path.suffix == _LOCK):
        folder = path.with_suffix("") if path.suffix == _LOCK else path
        if not _alive(folder):
            yield path


def _alive(folder: Path) -> bool:
    with suppress(FileNotFoundError), _lock_of(folder).open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK)
