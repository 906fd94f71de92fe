"""The libMIOpen a process has really loaded, and the find-db it is given."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

UNREAD = "not available"
NONE = "none"
MAPS = Path("/proc/self/maps")
LINE = re.compile(r"\S+ \S+ \S+ \S+ ([0-9]+) +(/.*)")
NAME = re.compile(r"libMIOpen\.so(\.[0-9]+)*")
BLOCK = 1 << 20


@dataclass(frozen=True)
class Loaded:
    """A mapped file: its path and what tells it from another of that path."""

    path: str
    inode: int
    size: int
    mtime_ns: int


def mapped(maps: str) -> tuple[str, int] | None:
    """Return path and inode of the libMIOpen in the text of a maps file.

    >>> mapped("7f00-7f01 r-xp 0 fe:00 42    /opt/lib/libMIOpen.so.1.0")
    ('/opt/lib/libMIOpen.so.1.0', 42)
    """
    for line in maps.splitlines():
        match = LINE.fullmatch(line)
        if match and NAME.fullmatch(match.group(2).rpartition("/")[2]):
            return match.group(2), int(match.group(1))
    return None


def loaded(maps: Path = MAPS) -> Loaded | None:
    """Return the libMIOpen of this process; None without one, or if its file has gone."""
    try:
        found = mapped(maps.read_text(encoding="utf-8", errors="replace"))
        if found is None:
            return None
        status = os.stat(found[0])  # noqa: PTH116 - pairs with the inode below
    except OSError:
        return None
    if status.st_ino != found[1]:
        # Replaced since it was loaded: its bytes cannot be had any more.
        return None
    return Loaded(found[0], status.st_ino, status.st_size, status.st_mtime_ns)


def note(library: Loaded | None) -> str:
    """Write down what is loaded, for another process to read."""
    return json.dumps(asdict(library)) if library else ""


def noted(text: str) -> Loaded | None:
    """Read what `note` wrote; None for anything else."""
    try:
        return Loaded(**json.loads(text))
    except (ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Digests:
    """SHA-256 of libraries, each computed once: one may have a gigabyte."""

    known: dict[Loaded, str] = field(default_factory=dict)

    def of(self, library: Loaded | None) -> str:
        """Return the digest; `not available` where the file is not what was loaded."""
        if library is None:
            return UNREAD
        if library not in self.known:
            self.known[library] = _digest(library)
        return self.known[library]


def _digest(library: Loaded) -> str:
    sha = hashlib.sha256()
    try:
        with Path(library.path).open("rb") as file:
            status = os.fstat(file.fileno())
            same = (library.inode, library.size, library.mtime_ns)
            if (status.st_ino, status.st_size, status.st_mtime_ns) != same:
                return UNREAD
            while block := file.read(BLOCK):
                sha.update(block)
    except OSError:
        return UNREAD
    return sha.hexdigest()


def find_db_digest(folder: Path) -> str:
    """Return the SHA-256 over the system find-dbs in a folder; `none` if it holds none."""
    files: Iterable[Path] = sorted(folder.glob("*.fdb.txt"))
    texts = [path.read_bytes() for path in files]
    return hashlib.sha256(b"".join(texts)).hexdigest() if texts else NONE
