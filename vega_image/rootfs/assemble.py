"""Put what several archives give into one tree; no entry silently wins over another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vega_image.errors import StageError
from vega_image.rootfs.collect import through_files
from vega_image.rootfs.tree import Entry, Kind, Tree


def assemble(entries: Iterable[Entry]) -> Tree:
    """Join entries of different owners.

    Folders are shared and belong to the first owner by name; the same symlink may come
    twice. Raises StageError PACKAGE_CONFLICT naming both owners for anything else.
    """
    found: dict[str, Entry] = {}
    for entry in sorted(entries, key=lambda entry: (entry.path, entry.owner)):
        known = found.setdefault(entry.path, entry)
        if known is not entry and not _shared(known, entry):
            raise _conflict(entry.path, known, entry)
    for path, through in through_files(found.values()):
        raise _conflict(path, found[through], found[path])
    return Tree.of(found.values())


def merge(base: Tree, top: Tree) -> Tree:
    """Lay `top` over `base`: of two files, links or folders of one path, `top`'s stays.

    Raises StageError PACKAGE_CONFLICT rather than lose what lies below a path.
    """
    joined = base.by_path() | top.by_path()
    for path, through in through_files(joined.values()):
        raise _conflict(path, joined[through], joined[path])
    return Tree.of(joined.values())


def _shared(one: Entry, other: Entry) -> bool:
    """Folders and symlinks may be given twice when nothing but the owner differs."""
    return one.kind is not Kind.FILE and one == replace(other, owner=one.owner)


def _conflict(path: str, one: Entry, other: Entry) -> StageError:
    msg = (
        f"{path}: {one.owner} has a {one.kind} with mode {one.mode:o} at {one.path}, "
        f"{other.owner} a {other.kind} with mode {other.mode:o}"
    )
    hint = "leave one of them out with root.omit or root.exclude"
    return StageError("PACKAGE_CONFLICT", msg, at=path, hint=hint)
