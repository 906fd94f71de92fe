"""Which libMIOpen a process has loaded, and what its digest is worth."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path

from vega_image.selftest.miopen.library import (
    UNREAD,
    Digests,
    find_db_digest,
    loaded,
    mapped,
    note,
    noted,
)


def maps(tmp_path: Path, library: Path, inode: int | None = None) -> Path:
    number = library.stat().st_ino if inode is None else inode
    text = f"55-56 r-xp 0 fe:00 1   /usr/bin/python3\n7f-80 r-xp 0 fe:00 {number}  {library}\n"
    (tmp_path / "maps").write_text(text)
    return tmp_path / "maps"


def test_only_libmiopen_is_meant() -> None:
    line = "7f00-7f01 r--p 00000000 fe:00 7    /opt/{}"
    assert mapped(line.format("libMIOpen.so.1.0")) == ("/opt/libMIOpen.so.1.0", 7)
    assert mapped(line.format("my lib/libMIOpen.so")) == ("/opt/my lib/libMIOpen.so", 7)
    assert mapped(line.format("libMIOpenDriver.so")) is None
    assert mapped(line.format("libMIOpen.so.1.0 (deleted)")) is None
    assert mapped("garbage\n\n") is None


def test_a_library_that_is_really_mapped_is_found_and_hashed(tmp_path: Path) -> None:
    library = tmp_path / "libMIOpen.so.1.0"
    library.write_bytes(b"bytes of a library")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        found = loaded()
    assert found is not None
    assert noted(note(found)) == found
    assert Digests().of(found) == hashlib.sha256(b"bytes of a library").hexdigest()


def test_a_file_replaced_since_has_no_digest(tmp_path: Path) -> None:
    library = tmp_path / "libMIOpen.so.1"
    library.write_bytes(b"old")
    found = loaded(maps(tmp_path, library))
    assert found is not None
    library.write_bytes(b"new and longer")
    assert Digests().of(found) == UNREAD
    assert loaded(maps(tmp_path, library, inode=1)) is None
    library.unlink()
    assert Digests().of(found) == UNREAD
    assert Digests().of(None) == UNREAD


def test_notes_that_are_none() -> None:
    assert noted("") is None
    assert noted("{}") is None
    assert noted("[1]") is None


def test_the_find_db_in_effect(tmp_path: Path) -> None:
    assert find_db_digest(tmp_path) == "none"
    (tmp_path / "gfx906_60.HIP.3_5_1_.ufdb.txt").write_bytes(b"user")
    assert find_db_digest(tmp_path) == "none"
    (tmp_path / "gfx906_60.HIP.fdb.txt").write_bytes(b"system")
    assert find_db_digest(tmp_path) == hashlib.sha256(b"system").hexdigest()
