"""The content-addressed store: `objects/sha256/ab/<hex>` and `refs/<kind>/<name>.json`.

An object appears under its name only by an atomic rename after its bytes were hashed and
fsynced, so a kill at any moment leaves at worst a folder in `tmp/`, which the next process
that writes removes, never a wrong object. `partial/` holds downloads that will be resumed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from vega_image.digest import PREFIX, Json, canonical, hex_of
from vega_image.errors import BytesError, EngineError
from vega_image.scratch import Claim, claim, sweep
from vega_image.units import megabytes

CHUNK = 1 << 20


class ObjectWriter:
    """Bytes on their way into the store; `digest` and `size` hold once `commit` returned."""

    def __init__(self, file: IO[bytes], path: Path, store: Store) -> None:
        self.file = file
        self.path = path
        self.digest = ""
        self.size = 0
        self._hash = hashlib.sha256()
        self._store = store

    def write(self, data: bytes | memoryview) -> int:
        """Append and hash; raises EngineError DISK_FULL."""
        with disk_errors(self.path):
            self.file.write(data)
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    def commit(self) -> str:
        """Give the object its name and return its digest."""
        with disk_errors(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.close()
        self.digest = PREFIX + self._hash.hexdigest()
        self._store.adopt(self.path, self.digest)
        return self.digest


class Store:
    """A folder of immutable objects, shared safely by several vega-image processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._claim: Claim | None = None
        self._claiming = threading.Lock()
        with disk_errors(root):
            _make_folder(root / "objects" / "sha256")

    @property
    def tmp(self) -> Path:
        """A folder for half-done work that goes with this store or with this process."""
        with self._claiming:
            if self._claim is None:
                self._claim = self._claimed()
                weakref.finalize(self, self._claim.release)
            return self._claim.path

    @property
    def partial(self) -> Path:
        """Where downloads grow that a later process may go on with."""
        folder = self.root / "partial"
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def path(self, digest: str) -> Path:
        """Where an object lies or would lie."""
        name = hex_of(digest)
        return self.root / "objects" / "sha256" / name[:2] / name

    def has(self, digest: str) -> bool:
        """Whether the object is there (its bytes are checked by `verify`)."""
        return self.path(digest).is_file()

    def verify(self, digest: str, *, what: str) -> Path:
        """Re-hash an object and return its path.

        Raises BytesError STORE_TAMPERED, after setting the bad file aside, when its bytes
        are not the promised ones; OBJECT_GONE when there is none. `what` names it to a person.
        """
        path = self.path(digest)
        if not path.is_file():
            msg = f"{what}: not in the store ({digest})"
            raise BytesError("OBJECT_GONE", msg, at=what, hint="run the build again")
        found = digest_file(path)
        if found != digest:
            path.unlink()
            msg = f"{what}: the stored bytes are not {digest} but {found}; removed"
            raise BytesError("STORE_TAMPERED", msg, at=str(path), hint="run the build again")
        return path

    @contextmanager
    def writer(self) -> Iterator[ObjectWriter]:
        """Open a new object; without `commit` nothing stays."""
        with disk_errors(self.tmp):
            handle, name = tempfile.mkstemp(dir=self.tmp)
        path = Path(name)
        file = os.fdopen(handle, "wb")
        try:
            yield ObjectWriter(file, path, self)
        finally:
            # What is thrown away need not reach a full disk.
            with suppress(OSError):
                file.close()
            path.unlink(missing_ok=True)

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest."""
        with self.writer() as out:
            out.write(data)
            return out.commit()

    def put_json(self, value: Json) -> str:
        """Store a value in its canonical encoding and return its digest."""
        return self.put(canonical(value))

    def read_json(self, digest: str, *, what: str) -> Json:
        """Read a JSON object back, checked; raises BytesError like `verify`."""
        return cast("Json", json.loads(self.verify(digest, what=what).read_bytes()))

    def adopt(self, path: Path, digest: str) -> Path:
        """Move a finished, hashed file of this file system into place."""
        target = self.path(digest)
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.chmod(0o444)
            path.replace(target)
        return target

    def set_ref(self, kind: str, name: str, value: Json) -> None:
        """Name something; the write is atomic. `name` must be one safe path component."""
        target = self._ref(kind, name)
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, canonical(value) + b"\n", near=self.tmp)

    def get_ref(self, kind: str, name: str) -> Json | None:
        """Read a name back; None when there is none or its file is damaged."""
        try:
            return cast("Json", json.loads(self._ref(kind, name).read_bytes()))
        except (FileNotFoundError, ValueError):
            return None

    def refs(self, kind: str) -> list[str]:
        """All names of a kind, sorted."""
        return sorted(path.stem for path in (self.root / "refs" / kind).glob("*.json"))

    def drop_ref(self, kind: str, name: str) -> None:
        """Forget a name."""
        self._ref(kind, name).unlink(missing_ok=True)

    @contextmanager
    def locked(
        self, name: str, *, shared: bool = False, waiting: Callable[[], None] = lambda: None
    ) -> Iterator[None]:
        """Hold a lock known to all processes of this store; it dies with its holder.

        `shared` holders exclude only those who are not; `waiting` is called before a wait.
        """
        path = self.root / "locks" / name
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = path.open("wb")
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        with handle:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(handle, kind)
            yield

    def _claimed(self) -> Claim:
        folder = self.root / "tmp"
        with self.locked("tmp"), disk_errors(folder):
            folder.mkdir(exist_ok=True)
            sweep(folder)
            return claim(folder)

    def _ref(self, kind: str, name: str) -> Path:
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            msg = f"not a reference name: {name!r}"
            raise ValueError(msg)
        return self.root / "refs" / kind / f"{name}.json"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileNotFoundError, FileExistsError) as error:
        # /proc says so of any new folder; a file or a dangling link may be in the way.
        raise NotADirectoryError(errno.ENOTDIR, "no folder can be made here") from error


def digest_file(path: Path) -> str:
    """Hash a file: `sha256:` + hex."""
    with path.open("rb") as file:
        return PREFIX + hashlib.file_digest(file, "sha256").hexdigest()


def write_atomic(
    target: Path, data: bytes, *, mode: int = 0o644, near: Path | None = None
) -> None:
    """Write a whole file or none: temp file beside it or in `near`, fsync, rename."""
    handle, name = tempfile.mkstemp(dir=near or target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


# A folder that cannot be made there (/proc), a name no file can have, a broken disk.
NOT_WRITABLE = frozenset(
    {errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG, errno.ELOOP, errno.EIO}
)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the disk's refusals into exit 5 with the path and the way out."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            msg = f"disk full while writing {path}"
            hint = "free some space, or use another disk: --store DIR"
            raise EngineError("DISK_FULL", msg, hint=hint, at=str(path)) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            msg = f"no permission to write {path}"
            hint = "use a folder of your own: --store DIR"
            raise EngineError("NO_PERMISSION", msg, hint=hint, at=str(path)) from error
        if error.errno in NOT_WRITABLE:
            msg = f"cannot write {path}: {error.strerror}"
            hint = "use another folder: --store DIR"
            raise EngineError("CANNOT_WRITE", msg, hint=hint, at=str(path)) from error
        raise


def check_space(store: Store, needed: int) -> None:
    """Refuse before work starts what would fill the disk; raises EngineError DISK_TOO_SMALL."""
    free = shutil.disk_usage(store.root).free
    if free < needed:
        msg = f"{store.root}: {megabytes(free)} free, up to {megabytes(needed)} are needed"
        hint = "free some space, or use another disk: --store DIR"
        raise EngineError("DISK_TOO_SMALL", msg, hint=hint, at=str(store.root))
