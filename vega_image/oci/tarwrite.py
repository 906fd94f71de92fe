"""Tar headers as bytes, by our own hand: Python's tarfile has changed what it writes before.

Format: POSIX ustar; a PAX header only where ustar cannot say it (a long or non-ASCII name,
a huge number). No user or group names, no xattrs, no access or change times.
"""

from __future__ import annotations

from typing import Final

from vega_image.rootfs.tree import Entry, Kind

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
_TYPE: Final = {Kind.FILE: b"0", Kind.SYMLINK: b"2", Kind.DIR: b"5"}
_NAME, _PREFIX, _LINK = 100, 155, 100
_MAX_ID: Final = 0o7777777
_MAX_SIZE: Final = 0o77777777777


def header(entry: Entry, *, mtime: int) -> bytes:
    """Encode an entry's header, with its PAX header before it where one is needed.

    `mtime` is in seconds since 1970, 0 <= mtime < 2**33.
    """
    size = entry.content.size if entry.content else 0
    name = entry.path + ("/" if entry.kind is Kind.DIR else "")
    records: dict[str, str] = {}
    prefix, short = _fit(name, records)
    if not entry.target.isascii() or len(entry.target) > _LINK:
        records["linkpath"] = entry.target
    if entry.uid > _MAX_ID:
        records["uid"] = str(entry.uid)
    if entry.gid > _MAX_ID:
        records["gid"] = str(entry.gid)
    if size > _MAX_SIZE:
        records["size"] = str(size)
    block = _block(
        (short, prefix, b"" if "linkpath" in records else entry.target.encode()),
        (entry.mode, entry.uid, entry.gid, size, mtime),
        _TYPE[entry.kind],
    )
    return _pax(records, mtime) + block


def padding(size: int) -> bytes:
    """Return the zeros that follow `size` bytes of content."""
    return bytes(-size % BLOCK)


def _fit(name: str, records: dict[str, str]) -> tuple[bytes, bytes]:
    """Split a name into ustar's (prefix, name); if it does not fit, record it for PAX."""
    raw = name.encode()
    if name.isascii():
        if len(raw) <= _NAME:
            return b"", raw
        cut = raw.find(b"/", len(raw) - _NAME - 1)
        if 0 < cut <= _PREFIX and cut < len(raw) - 1:
            return raw[:cut], raw[cut + 1 :]
    records["path"] = name
    return b"", b"PaxPath"


def _pax(records: dict[str, str], mtime: int) -> bytes:
    if not records:
        return b""
    data = b"".join(_record(key, records[key]) for key in sorted(records))
    block = _block((b"PaxHeader", b"", b""), (0o644, 0, 0, len(data), mtime), b"x")
    return block + data + padding(len(data))


def _record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    size = len(body)
    while len(str(size)) + len(body) != size:
        size = len(str(size)) + len(body)
    return str(size).encode() + body


def _block(
    names: tuple[bytes, bytes, bytes], numbers: tuple[int, int, int, int, int], kind: bytes
) -> bytes:
    name, prefix, link = names
    mode, uid, gid, size, mtime = numbers
    fields = [
        name.ljust(100, b"\0"),
        _octal(mode, 8),
        _octal(uid if uid <= _MAX_ID else 0, 8),
        _octal(gid if gid <= _MAX_ID else 0, 8),
        _octal(size if size <= _MAX_SIZE else 0, 12),
        _octal(mtime, 12),
        b" " * 8,
        kind,
        link.ljust(100, b"\0"),
        b"ustar\x0000",
        bytes(64),
        _octal(0, 8) * 2,
        prefix.ljust(155, b"\0"),
        bytes(12),
    ]
    block = b"".join(fields)
    checksum = b"%06o\0 " % sum(block)
    return block[:148] + checksum + block[156:]


def _octal(number: int, width: int) -> bytes:
    return b"%0*o\0" % (width - 1, number)
