"""Find-dbs from the disk: what is plainly something else is refused with a reason."""

from __future__ import annotations

import stat
from pathlib import Path

from vega_image.errors import UsageError
from vega_image.finddb.perfdb import is_perf_line
from vega_image.finddb.text import FindDb

LARGEST = 512 << 20
LONGEST_LINE = 1 << 20
LOOKED_AT = 4096
MAGIC = (
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ", "xz", "unxz"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
)
SQLITE = b"SQLite format 3\0"


def open_db(path: Path) -> FindDb:
    """Read a find-db.

    Raises UsageError: FINDDB_ABSENT, FINDDB_UNREADABLE, FINDDB_NOT_A_FILE, FINDDB_TOO_LARGE,
    FINDDB_PACKED, FINDDB_SQLITE, FINDDB_IS_PERFDB, FINDDB_BINARY or FINDDB_LINE_TOO_LONG.
    """
    data = read_bytes(path, absent="; for MIOpen every problem is then a miss")
    if data.startswith(SQLITE):
        msg = f"{path} is an SQLite database: a perf-db or a cache of kernels, not a find-db"
        hint = f"vega-image finddb perfdb {path}"
        raise UsageError("FINDDB_SQLITE", msg, at=str(path), hint=hint)
    refuse_binary(data, path)
    if is_perf_line(data):
        msg = f"{path} is a perf-db, not a find-db"
        hint = f"vega-image finddb perfdb {path}"
        raise UsageError("FINDDB_IS_PERFDB", msg, at=str(path), hint=hint)
    db = FindDb(data, str(path))
    _refuse_long_lines(db, path)
    return db


def read_bytes(path: Path, *, absent: str = "") -> bytes:
    """Read a regular file of a size that a database may have.

    `absent` is what follows from there being none. Raises UsageError FINDDB_ABSENT,
    FINDDB_NOT_A_FILE, FINDDB_TOO_LARGE, FINDDB_UNREADABLE.
    """
    try:
        info = path.stat()
        # Looked at before opening: a pipe without a writer would wait for ever.
        if not stat.S_ISREG(info.st_mode):
            kind = "a folder" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            msg = f"{path} is {kind}"
            raise UsageError("FINDDB_NOT_A_FILE", msg, at=str(path), hint="name a file")
        if info.st_size > LARGEST:
            msg = f"{path} has {info.st_size} bytes; no find-db has more than {LARGEST}"
            raise UsageError("FINDDB_TOO_LARGE", msg, at=str(path))
        return path.read_bytes()
    except FileNotFoundError as error:
        msg = f"there is no file {path}{absent}"
        where = "docs/finddb.md says where upstream's is" if absent else None
        raise UsageError("FINDDB_ABSENT", msg, at=str(path), hint=where) from error
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror}"
        raise UsageError("FINDDB_UNREADABLE", msg, at=str(path)) from error


def refuse_binary(data: bytes, path: Path) -> None:
    """Raise UsageError for a packed file, or one that begins with no text at all."""
    for magic, name, program in MAGIC:
        if data.startswith(magic):
            msg = f"{path} is packed with {name}; MIOpen reads only text"
            raise UsageError("FINDDB_PACKED", msg, at=str(path), hint=f"{program} -k {path}")
    begin = data[:LOOKED_AT]
    strange = sum(byte < 9 or byte > 126 for byte in begin)  # noqa: PLR2004 - tab and tilde
    if strange * 4 > len(begin):
        msg = f"{path} is no text: {strange} of its first {len(begin)} bytes are no characters"
        hint = "name a find-db, as gfx906_60.HIP.fdb.txt"
        raise UsageError("FINDDB_BINARY", msg, at=str(path), hint=hint)


def _refuse_long_lines(db: FindDb, path: Path) -> None:
    longest = max(map(len, db.lines))
    if longest > LONGEST_LINE:
        number = next(n for n, line in enumerate(db.lines) if len(line) == longest)
        msg = f"{path}: line {number + 1} has {longest} bytes; no record is that long"
        raise UsageError("FINDDB_LINE_TOO_LONG", msg, at=f"{path}:{number + 1}")
