"""All files of a lock in one folder: the auditable input, for hosts without a network.

The folder holds `lock.json`, `SHA256SUMS` (for `sha256sum -c`) and one file per locked file.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vega_image.digest import PREFIX, digest_bytes, hex_of
from vega_image.errors import BytesError, LockError, PolicyError, UsageError
from vega_image.lock import Lock, LockedArchive, LockedDebian, LockedFile, LockedGit, LockedIso
from vega_image.lockfile import decode_lock, encode_lock
from vega_image.store import Store, disk_errors

LOCK = "lock.json"
SUMS = "SHA256SUMS"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class PoolFile:
    """One file of a pool: its name there, its size in bytes, its SHA-256."""

    name: str
    size: int
    sha256: str


def pool_files(lock: Lock) -> tuple[PoolFile, ...]:
    """Give every locked file a name that is one plain path component, sorted by name."""
    files: dict[str, PoolFile] = {}
    for name, size, sha256 in _locked(lock):
        plain = re.sub(r"[^A-Za-z0-9._+~-]", "_", name).lstrip(".-") or "file"
        taken = files.get(plain)
        if plain in {LOCK, SUMS} or (taken and taken.sha256 != sha256):
            plain = f"{sha256[:12]}_{plain}"
        files[plain] = PoolFile(plain, size, sha256)
    return tuple(sorted(files.values(), key=lambda file: file.name))


def pool_export(lock: Lock, store: Store, out: Path) -> tuple[PoolFile, ...]:
    """Write the pool of a lock to a new folder, whole or not at all.

    Files are hard links where `out` is on the store's disk. Raises UsageError POOL_EXISTS,
    BytesError OBJECT_GONE or STORE_TAMPERED, EngineError DISK_FULL.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        msg = f"{out}: exists already"
        raise UsageError("POOL_EXISTS", msg, hint="name a new folder", at=str(out))
    files = pool_files(lock)
    with disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        with disk_errors(out):
            for file in files:
                _copy(store.verify(PREFIX + file.sha256, what=file.name), draft / file.name)
            (draft / LOCK).write_bytes(encode_lock(lock))
            (draft / SUMS).write_bytes(_sums(lock, files))
            draft.chmod(0o755)
            draft.replace(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return files


def pool_import(folder: Path, store: Store, lock: Lock | None = None) -> Lock:
    """Take a pool into the store, every file checked, and return its lock.

    With `lock`, the pool must be of that lock. Raises UsageError NO_POOL; LockError
    LOCK_MALFORMED, LOCK_EDITED, POOL_OTHER_LOCK; PolicyError POOL_STRANGER, POOL_SUMS_DIFFER;
    BytesError POOL_INCOMPLETE, POOL_WRONG_DIGEST; EngineError DISK_FULL.
    """
    inside = _lock_of(folder)
    if lock is not None and lock.digest != inside.digest:
        msg = f"{folder} holds the files of another lock ({inside.digest}, not {lock.digest})"
        hint = f"use the lock in it: cp {folder / LOCK} images/{lock.target}.lock.json"
        raise LockError("POOL_OTHER_LOCK", msg, hint=hint, at=str(folder / LOCK))
    files = pool_files(inside)
    _check_folder(folder, files, inside)
    for file in files:
        _take(folder / file.name, file, store)
    return inside


def _locked(lock: Lock) -> Iterator[tuple[str, int, str]]:
    for name, source in sorted(lock.sources.items()):
        match source:
            case LockedDebian():
                for file in source.packages:
                    yield file.pool_path.rpartition("/")[2], file.size, file.sha256
            case LockedArchive():
                if source.size and source.sha256:
                    base = source.url.rstrip("/").rpartition("/")[2]
                    yield f"{name}_{base}", source.size, source.sha256
            case LockedGit():
                if source.size and source.tree_sha256:
                    yield f"{name}_{source.commit}.tar", source.size, source.tree_sha256
            case LockedIso() | LockedFile():
                pass  # the office brings these itself; the store never holds them


def _sums(lock: Lock, files: tuple[PoolFile, ...]) -> bytes:
    sums: Mapping[str, str] = {
        **{file.name: file.sha256 for file in files},
        LOCK: hex_of(digest_bytes(encode_lock(lock))),
    }
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()


def _copy(source: Path, target: Path) -> None:
    """Copy, never link: what a person does to the folder must not reach the store."""
    shutil.copyfile(source, target)


def _lock_of(folder: Path) -> Lock:
    path = folder / LOCK
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"{folder}: not a folder made by `vega-image pool export`: {error.strerror}"
        raise UsageError("NO_POOL", msg, hint="vega-image pool export", at=str(path)) from None
    return decode_lock(data, at=str(path))


def _check_folder(folder: Path, files: tuple[PoolFile, ...], lock: Lock) -> None:
    known = {LOCK, SUMS, *(file.name for file in files)}
    found = {path.name: path for path in folder.iterdir()}
    strangers = sorted(
        name
        for name, path in found.items()
        if name not in known or path.is_symlink() or not path.is_file()
    )
    if strangers:
        msg = f"{folder}: not of this pool: {', '.join(map(repr, strangers))}"
        hint = "take them away, or make the pool again: vega-image pool export"
        raise PolicyError("POOL_STRANGER", msg, hint=hint, at=str(folder / strangers[0]))
    if SUMS in found and found[SUMS].read_bytes() != _sums(lock, files):
        msg = f"{folder / SUMS}: does not say what the lock beside it says"
        hint = "make the pool again: vega-image pool export"
        raise PolicyError("POOL_SUMS_DIFFER", msg, hint=hint, at=str(folder / SUMS))
    lost = sorted(known - found.keys())
    if lost:
        msg = f"{folder}: incomplete, {len(lost)} files are not in it: {', '.join(lost)}"
        hint = "copy the folder again"
        raise BytesError("POOL_INCOMPLETE", msg, hint=hint, at=str(folder / lost[0]))


def _take(path: Path, file: PoolFile, store: Store) -> None:
    """Hash the very bytes that go into the store: a stick may be written to meanwhile."""
    hashed = hashlib.sha256()
    with path.open("rb") as source, store.writer() as out:
        while out.size <= file.size and (data := source.read(_CHUNK)):
            hashed.update(data)
            out.write(data)
        if out.size != file.size or hashed.hexdigest() != file.sha256:
            msg = f"{path}: not the {file.size} bytes with SHA-256 {file.sha256}"
            hint = "copy the folder again"
            raise BytesError("POOL_WRONG_DIGEST", msg, hint=hint, at=str(path))
        out.commit()
