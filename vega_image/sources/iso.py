"""What the user brings, an ISO or an installer: the file it must be. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from pathlib import Path

from vega_image.errors import BytesError, UsageError
from vega_image.lock import LockedFile, LockedIso
from vega_image.spec import FileSource, IsoSource
from vega_image.windows.isofacts import iso_fact

_CHUNK = 1 << 20


def resolve(source: IsoSource) -> LockedIso:
    """Lock a medium by the table of known ones or the spec; raises UsageError UNKNOWN_ISO."""
    if source.iso is not None:
        fact = iso_fact(source.iso)
        editions = {image.index: image.name for image in fact.images}
        return LockedIso(
            kind="iso", iso=fact.id, size=fact.size, sha256=fact.sha256, editions=editions
        )
    # The model refuses a source with neither.
    assert source.size is not None
    assert source.sha256 is not None
    return LockedIso(
        kind="iso",
        iso="own medium",
        size=source.size,
        sha256=source.sha256,
        editions=source.editions,
    )


def resolve_file(source: FileSource) -> LockedFile:
    """Lock a file as far as the spec knows it; without digest it stays unresolved."""
    return LockedFile(
        kind="file",
        file=source.file,
        version=source.version,
        size=source.size,
        sha256=source.sha256,
    )


def verify_iso(
    path: Path,
    *,
    size: int,
    sha256: str,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Read the file once and compare its size (bytes) and SHA-256 (hex).

    `progress` hears (done, total) in bytes. Raises UsageError ISO_ABSENT or ISO_NOT_A_FILE;
    BytesError ISO_WRONG_SIZE (before reading), ISO_WRONG_DIGEST or ISO_UNREADABLE.
    """
    found = _size(path)
    if found != size:
        msg = f"{path} has {found} bytes, the ISO wanted has {size}"
        hint = "another edition or an unfinished download: get the file again"
        raise BytesError("ISO_WRONG_SIZE", msg, hint=hint, at=str(path))
    try:
        digest = _sha256(path, size, progress)
    except OSError as error:
        raise _unreadable(path, error) from error
    if digest != sha256.lower():
        msg = f"{path} has SHA-256 {digest}, the ISO wanted has {sha256.lower()}"
        hint = "the file is damaged or another one: get it again from its publisher"
        raise BytesError("ISO_WRONG_DIGEST", msg, hint=hint, at=str(path))


def measure(
    path: Path, *, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> tuple[int, str]:
    """Read a file that the office brings: its size in bytes and its SHA-256 in hex.

    Raises UsageError PAYLOAD_NOT_A_FILE, BytesError PAYLOAD_UNREADABLE or PAYLOAD_EMPTY.
    """
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            msg = f"{path} is no regular file"
            raise UsageError("PAYLOAD_NOT_A_FILE", msg, hint=f"ls -l {path}", at=str(path))
        digest = _sha256(path, state.st_size, progress)
    except OSError as error:
        raise _unreadable(path, error, code="PAYLOAD_UNREADABLE") from error
    if not state.st_size:
        msg = f"{path} is empty"
        raise BytesError("PAYLOAD_EMPTY", msg, hint="get the file again", at=str(path))
    return state.st_size, digest


def _size(path: Path) -> int:
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        msg = f"there is no file {path}"
        hint = "vega-image downloads no ISO: name one you have"
        raise UsageError("ISO_ABSENT", msg, hint=hint, at=str(path)) from None
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(state.st_mode):
        msg = f"{path} is no regular file"
        raise UsageError("ISO_NOT_A_FILE", msg, hint="name the .iso file", at=str(path))
    return state.st_size


def _sha256(path: Path, size: int, progress: Callable[[int, int], None]) -> str:
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress(min(done, size), size)
    return digest.hexdigest()


def _unreadable(path: Path, error: OSError, *, code: str = "ISO_UNREADABLE") -> BytesError:
    msg = f"{path} cannot be read: {error.strerror}"
    return BytesError(code, msg, hint=f"ls -l {path}", at=str(path))
