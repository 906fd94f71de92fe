"""A tree of files as a value: what goes into an image, and where its bytes lie.

Nothing is unpacked to a file system: regular files point into store objects (usually plain
tars), so umask, owner, xattrs and time of the build host cannot leak into an image.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, cast

from vega_image.digest import Json


class Kind(StrEnum):
    """What an entry is; device nodes and sockets have no place in an image."""

    FILE = "file"
    DIR = "dir"
    SYMLINK = "symlink"


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes of a regular file: `size` bytes at `offset` of the store object `object`."""

    object: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path. `path` is relative, POSIX, normalised, without a leading `./`.

    `owner` is the package it came from, `stage:NAME`, or `vega-image` for files we write;
    layers are split by it.
    """

    path: str
    kind: Kind
    mode: int
    uid: int = 0
    gid: int = 0
    target: str = ""
    content: Content | None = None
    owner: str


@dataclass(frozen=True, slots=True)
class Tree:
    """All entries, sorted by path, each path once."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Tree:
        """Sort; raises ValueError on a path given twice."""
        ordered = sorted(entries, key=lambda entry: entry.path)
        for before, after in pairwise(ordered):
            if before.path == after.path:
                msg = f"{after.path}: in {before.owner} and in {after.owner}"
                raise ValueError(msg)
        return cls(tuple(ordered))

    def by_path(self) -> dict[str, Entry]:
        """Index by path."""
        return {entry.path: entry for entry in self.entries}

    def to_json(self) -> Json:
        """Encode for the store."""
        return {"schema": 1, "entries": [_encode(entry) for entry in self.entries]}

    @classmethod
    def from_json(cls, value: Json) -> Tree:
        """Decode what `to_json` wrote."""
        rows = cast("list[dict[str, Any]]", cast("dict[str, Any]", value)["entries"])
        return cls(tuple(_decode(row) for row in rows))


def _encode(entry: Entry) -> dict[str, Json]:
    row = cast("dict[str, Json]", asdict(entry))
    return {key: value for key, value in row.items() if value not in (None, "")}


def _decode(row: dict[str, Any]) -> Entry:
    content = row.pop("content", None)
    kind = Kind(row.pop("kind"))
    return Entry(kind=kind, content=Content(**content) if content else None, **row)
