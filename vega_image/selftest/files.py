"""Write files so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from vega_image.selftest.errors import SelftestError

VERDICT_LIMIT = 1 << 16


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file beside its place, make it durable, move it in. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        os.replace(temporary, path)  # noqa: PTH105 - pairs with mkstemp's text
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108 - pairs with mkstemp's text
        raise
    _make_durable(path.parent)


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write several files, all or none of those that were not there. Raises SelftestError."""
    written: list[Path] = []
    try:
        for name, data in files.items():
            fresh = not (folder / name).exists()
            write_whole(folder / name, data)
            if fresh:
                written.append(folder / name)
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        raise _refused(folder, error) from error


def writable_folder(folder: Path) -> None:
    """Make a folder and prove that files can be made in it. Raises SelftestError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _refused(folder, error) from error


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


def _refused(folder: Path, error: OSError) -> SelftestError:
    return SelftestError(
        "REPORT_FOLDER",
        f"cannot write to {folder}: {error.strerror or error}",
        hint="choose another folder with --report DIR",
        at=str(folder),
    )


def _make_durable(folder: Path) -> None:
    # Windows cannot open folders, and needs no such thing.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
