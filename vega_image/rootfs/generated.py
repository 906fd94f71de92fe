"""The files of an image that come from no package: links, users, records of what is inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from vega_image.digest import Json, canonical
from vega_image.errors import UsageError
from vega_image.lock import Lock, LockedDebian, PackageFile
from vega_image.rootfs.collect import through_files
from vega_image.rootfs.deb import Extracted
from vega_image.rootfs.dpkgdb import dpkg_files
from vega_image.rootfs.tarread import safe_path
from vega_image.rootfs.tree import Content, Entry, Kind, Tree
from vega_image.spec import Root, RootMethod, Target, User
from vega_image.store import Store

OWNER: Final = "vega-image"
RECORDS: Final = "usr/share/vega-image"
LOCK_PATH: Final = f"{RECORDS}/lock.json"
PACKAGES_PATH: Final = f"{RECORDS}/packages.json"
TARGET_PATH: Final = f"{RECORDS}/target.json"
_FOLDERS: Final = {
    "dev": 0o755,
    "etc": 0o755,
    "proc": 0o555,
    "root": 0o700,
    "run": 0o755,
    "sys": 0o555,
    "tmp": 0o1777,
    "var/tmp": 0o1777,
}
_ROOT: Final = User(name="root", uid=0, home="/root")
_NOBODY: Final = User(name="nobody", uid=65534, home="/nonexistent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What an image says about itself: its target and the exact bytes of its lock."""

    target: Target
    lock: bytes


def generated(provenance: Provenance, store: Store) -> Tree:
    """Return the tree of everything vega-image itself adds; lay it over the packages'.

    An installed root brings its own folders and users, so there only the spec's links and
    files and the records are added. Raises UsageError GENERATED_TWICE.
    """
    root = provenance.target.root
    texts: dict[str, str | bytes] = dict(root.files)
    entries = _skeleton(root)
    if root.method is RootMethod.EXTRACT:
        texts = {**_accounts(root.users), **texts}
        entries += _homes(root.users)
    entries += placed([*texts.items(), *_records(provenance).items()], store)
    _refuse_clashes(entries)
    return Tree.of(entries)


def skeleton(root: Root) -> Tree:
    """Return the spec's links and standard folders: without them no stage finds /bin/sh.

    Raises UsageError GENERATED_TWICE.
    """
    entries = _skeleton(root)
    _refuse_clashes(entries)
    return Tree.of(entries)


def package_records(
    parts: Sequence[Extracted], packages: Sequence[PackageFile], store: Store
) -> list[Entry]:
    """Return dpkg's records of the extracted packages, for a root without dpkg.

    Raises StageError BROKEN_PACKAGE.
    """
    return placed(dpkg_files(parts, packages), store)


def placed(texts: Iterable[tuple[str, str | bytes]], store: Store) -> list[Entry]:
    """Put texts into the store, all in one object, and return their entries."""
    rows = sorted((path, t if isinstance(t, bytes) else t.encode()) for path, t in texts)
    digest = store.put(b"".join(data for _, data in rows))
    starts = accumulate((len(data) for _, data in rows), initial=0)
    return [
        replace(_entry(path, Kind.FILE, 0o644), content=Content(digest, start, len(data)))
        for start, (path, data) in zip(starts, rows, strict=False)
    ]


def _skeleton(root: Root) -> list[Entry]:
    entries = [
        replace(_entry(path, Kind.SYMLINK, 0o777), target=target)
        for path, target in root.links.items()
    ]
    if root.method is RootMethod.EXTRACT:
        entries += [_entry(path, Kind.DIR, mode) for path, mode in _FOLDERS.items()]
    return entries


def _entry(path: str, kind: Kind, mode: int) -> Entry:
    return Entry(path=path, kind=kind, mode=mode, owner=OWNER)


def _homes(users: Sequence[User]) -> Iterator[Entry]:
    for user in users:
        path = safe_path(f"./{user.home.lstrip('/')}", _bad_home)
        if path and path not in _FOLDERS:
            yield replace(_entry(path, Kind.DIR, 0o750), uid=user.uid, gid=user.uid)


def _bad_home(home: str, why: str) -> UsageError:
    return UsageError("BAD_HOME", f"root.users: home {home!r}: {why}", at="root.users")


def _accounts(users: Sequence[User]) -> dict[str, str]:
    """Write passwd and group; `*` and no shadow file: nobody logs in with a password."""
    names, ids = {user.name for user in users}, {user.uid for user in users}
    standard = [u for u in (_ROOT, _NOBODY) if u.name not in names and u.uid not in ids]
    rows = sorted([*users, *standard], key=lambda user: (user.uid, user.name))
    lines = [f"{u.name}:*:{u.uid}:{u.uid}::{u.home}:/usr/sbin/nologin\n" for u in rows]
    groups = [f"{u.name}:*:{u.uid}:\n" for u in rows]
    return {"etc/passwd": "".join(lines), "etc/group": "".join(groups)}


def _records(provenance: Provenance) -> dict[str, str]:
    lock = Lock.model_validate_json(provenance.lock)
    root = provenance.target.root
    source = lock.sources[root.source]
    assert isinstance(source, LockedDebian)
    rows: Json = [_package(package, root) for package in source.packages]
    listing = canonical({"schema": 1, "packages": rows}).decode() + "\n"
    return {
        LOCK_PATH: provenance.lock.decode(),
        PACKAGES_PATH: listing,
        TARGET_PATH: _spec(provenance.target),
    }


def _spec(target: Target) -> str:
    """Write the spec for `reproduce`; compression does not change what layers hold.

    A key that came later is left out where it says nothing: older images keep their digest.
    """
    later = {"finddb": target.finddb, "wsl": target.wsl}
    silent = {key for key, section in later.items() if section is None}
    # A .wsl archive has no label that tells how it was compressed.
    silent |= {"compression"} if target.wsl is None else set()
    value = target.model_dump(mode="json", by_alias=True, exclude=silent)
    return canonical(value).decode() + "\n"


def _package(package: PackageFile, root: Root) -> Mapping[str, Json]:
    row = {
        "package": package.package,
        "version": package.version,
        "architecture": package.architecture,
        "sha256": package.sha256,
        "state": "omitted" if package.package in root.omit else "present",
    }
    why = root.omit.get(package.package)
    return row | {"why": why} if why else row


def _refuse_clashes(entries: Sequence[Entry]) -> None:
    counted = Counter(entry.path for entry in entries)
    twice = [path for path, times in counted.items() if times > 1]
    for path in (*twice, *(path for path, _ in through_files(entries))):
        msg = f"{path}: root.links, root.users and root.files disagree about it"
        raise UsageError("GENERATED_TWICE", msg, at=path)
