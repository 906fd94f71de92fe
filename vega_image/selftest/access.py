"""Whether a user may open a device node: asked of the kernel where that is possible.

Groups are numbers throughout: a group's name means something else in every container.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass

from vega_image.selftest.reading import NotAvailable, Reading, Sysroot

READ_WRITE = 0o6


@dataclass(frozen=True, slots=True)
class User:
    """Who asks: numeric user and all numeric groups."""

    uid: int
    gids: tuple[int, ...]

    @classmethod
    def of(cls, uid: int, gids: Collection[int]) -> User:
        """Put the groups in order."""
        return cls(uid, tuple(sorted(set(gids))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One device node. `how` is `open` when open(2) answered, `mode` when its mode did.

    `error` is empty, or the errno name for the refusal, e.g. `EACCES`.
    """

    path: str
    exists: bool
    uid: Reading[int]
    gid: Reading[int]
    mode: Reading[str]
    allowed: Reading[bool]
    how: str
    error: str


def read_access(root: Sysroot, name: str, user: User) -> Access:
    """Find out whether `user` may read and write the node `/name`."""
    try:
        status = (root.path / name).stat()
    except (OSError, ValueError) as error:
        return _absent(name, error)
    asked = root.live and user.uid == os.geteuid()
    error_name = _opened(root, name) if asked else _judged(status, user)
    return Access(
        path=f"/{name}",
        exists=True,
        uid=status.st_uid,
        gid=status.st_gid,
        mode=f"{stat.S_IMODE(status.st_mode):04o}",
        allowed=not error_name,
        how="open" if asked else "mode",
        error=error_name,
    )


def _absent(name: str, error: OSError | ValueError) -> Access:
    number = error.errno if isinstance(error, OSError) else None
    missing = NotAvailable(f"/{name}: {os.strerror(number) if number else 'no such name'}")
    return Access(
        path=f"/{name}",
        exists=number not in {errno.ENOENT, errno.ENOTDIR, None},
        uid=missing,
        gid=missing,
        mode=missing,
        allowed=missing,
        how="mode",
        error=_name(number),
    )


def _opened(root: Sysroot, name: str) -> str:
    try:
        handle = os.open(root.path / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _name(error.errno)
    os.close(handle)
    return ""


def _judged(status: os.stat_result, user: User) -> str:
    if user.uid == 0:
        return ""
    if status.st_uid == user.uid:
        granted = status.st_mode >> 6
    elif status.st_gid in user.gids:
        granted = status.st_mode >> 3
    else:
        granted = status.st_mode
    return "" if granted & READ_WRITE == READ_WRITE else "EACCES"


def _name(number: int | None) -> str:
    return errno.errorcode.get(number or 0, "EINVAL")
