"""A folder in memory for one socket: only its owner may enter, nothing in it reaches a disk."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from vega_image.engines.owner import Owner
from vega_image.errors import HostError
from vega_image.serving.sandbox import Account

PREFIX = "vega-image-run-"
MEMORY = frozenset({"tmpfs", "ramfs"})
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - last of the candidates, with a name nobody can take


def candidates(environ: Mapping[str, str], *, uid: int) -> tuple[Path, ...]:
    """Return where such a folder may lie, best first.

    >>> candidates({"XDG_RUNTIME_DIR": "/run/user/1000"}, uid=1000)[0].as_posix()
    '/run/user/1000'
    """
    named = environ.get("XDG_RUNTIME_DIR", "")
    first = [named] if named.startswith("/") else []
    own = "/run" if uid == 0 else f"/run/user/{uid}"
    return tuple(dict.fromkeys(Path(one) for one in (*first, own, SHARED_MEMORY)))


def file_system_of(mountinfo: str, path: str) -> str:
    r"""Return the type of the file system that holds an absolute path, from mountinfo's text.

    >>> file_system_of("1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /run rw - tmpfs b rw", "/run/x")
    'tmpfs'
    """
    best, kind = "", ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) > 4 and kinds:  # noqa: PLR2004 - the mount point is the fifth field
            point = _unescaped(fields[4])
            below = path == point or path.startswith(point.rstrip("/") + "/")
            if below and len(point) >= len(best):
                best, kind = point, kinds[0]
    return kind


@contextmanager
def socket_folder(places: Sequence[Path], account: Account) -> Iterator[Path]:
    """Make a folder of mode 0700 for `account`, and remove it and those of dead runs after.

    Raises HostError NO_MEMORY_FOLDER when no candidate is a writable file system in memory.
    """
    mountinfo = Path("/proc/self/mountinfo").read_text()
    me = Owner.current()
    name = f"{PREFIX}{me.namespace}_{me.pid}_{me.started}.{secrets.token_hex(4)}"
    for place in places:
        if file_system_of(mountinfo, str(place.resolve())) not in MEMORY:
            continue
        _sweep(place, me)
        folder = place / name
        try:
            folder.mkdir(mode=0o700)
        except OSError:
            continue
        try:
            if account.uid != os.geteuid():
                os.chown(folder, account.uid, account.gid)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    msg = f"no folder in memory for the socket: tried {', '.join(map(str, places))}"
    raise HostError("NO_MEMORY_FOLDER", msg, hint="set XDG_RUNTIME_DIR to a tmpfs of yours")


def _sweep(place: Path, me: Owner) -> None:
    for folder in place.glob(PREFIX + "*"):
        # Memory does not outlive a boot, so the name need not tell it (and must stay short:
        # a socket's path has 107 bytes).
        process = folder.stem.removeprefix(PREFIX).replace("_", "/")
        owner = Owner.parse(f"{me.boot}/{process}")
        if owner is not None and owner.surely_dead(me) and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)


def _unescaped(text: str) -> str:
    for escape, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, plain)
    return text
