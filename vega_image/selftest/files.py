"""Write files so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from vega_image.selftest.errors import SelftestError

VERDICT_LIMIT = 1 << 16
PROBE = bytes(4096)


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file beside its place, make it durable, move it in. Raises OSError."""
    _move(_beside(path, data, mode=mode), path)
    _make_durable(path.parent)


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write several files, all or none: they move in once all are on the disk.

    Raises SelftestError (2, 5).
    """
    ready: dict[str, Path] = {}
    fresh: list[Path] = []
    try:
        for name, data in files.items():
            ready[name] = _beside(folder / name, data, mode=0o644)
        for name in files:
            new = not os.path.lexists(folder / name)
            _move(ready.pop(name), folder / name)
            fresh += [folder / name] if new else []
    except OSError as error:
        for path in fresh:
            _remove(path)
        raise refused(folder, error) from error
    finally:
        for temporary in ready.values():
            _remove(temporary)
    _make_durable(folder)


def writable_folder(folder: Path) -> tuple[Path, ...]:
    """Make a folder and prove that files can be written in it.

    Returns the folders that were not there before. Raises SelftestError (2, 5).
    """
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    made = tuple(reversed(missing))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
            file.flush()
    except OSError as error:
        remove_folders(made)
        raise refused(folder, error) from error
    return made


def remove_folders(made: Sequence[Path]) -> None:
    """Remove folders that `writable_folder` made, unless something is in them."""
    for path in reversed(made):
        with contextlib.suppress(OSError):
            path.rmdir()


def read_verdict(path: Path) -> str | None:
    """Return a verdict file's text for the gate; None if there is none.

    What exists but cannot be read, is a link or no plain file, or is longer than any verdict,
    is an empty text, which the gate calls damaged.
    """
    # A pipe must not hold us up, and nobody but us puts a verdict in its place: no links.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError:
        return ""
    try:
        with os.fdopen(handle, "rb") as file:
            plain = stat.S_ISREG(os.fstat(handle).st_mode)
            data = file.read(VERDICT_LIMIT + 1) if plain else b""
    except OSError:
        return ""
    return data.decode("utf-8", "replace") if len(data) <= VERDICT_LIMIT else ""


def refused(folder: Path, error: OSError) -> SelftestError:
    """Say why a folder cannot take a report: a wrong name (2), or no room or right (5)."""
    misnamed = isinstance(error, (FileExistsError, NotADirectoryError))
    hint = "choose another folder with --report DIR"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        hint = "make room, or choose a folder on another disk with --report DIR"
    return SelftestError(
        "REPORT_FOLDER",
        f"cannot write to {folder}: {error.strerror or error}",
        exit_code=2 if misnamed else 5,
        hint=hint,
        at=str(folder),
    )


def _beside(path: Path, data: bytes, *, mode: int) -> Path:
    """Write a file next to its place, on the disk when this returns. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
    except BaseException:
        _remove(Path(temporary))
        raise
    return Path(temporary)


def _move(temporary: Path, path: Path) -> None:
    try:
        temporary.replace(path)
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _make_durable(folder: Path) -> None:
    # Windows cannot open folders, and needs no such thing.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
