"""Read a tar stream member by member, believing nothing in it.

Python's tarfile takes a damaged header for the end of the archive and cuts names at NUL;
here both are refused. Formats: ustar, GNU (long names, base-256 numbers), PAX.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from vega_image.errors import StageError, VegaError

BLOCK: Final = 512
CHUNK: Final = 1 << 20
_META_LIMIT: Final = 1 << 20
_ZERO: Final = bytes(BLOCK)
_DIGITS: Final = 20
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNDERSTOOD: Final = frozenset("01234567")
_FILES: Final = frozenset("07")


class ByteSource(Protocol):
    """Anything with a blocking `read`: a pipe, a file, a decompressor."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, and b"" only at the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One tar member, its `path` normalised; `offset` is where its bytes start in the stream.

    `type` is the tar type flag: 0 file, 1 hard link, 2 symlink, 3 and 4 devices, 5 directory,
    6 fifo. `link` is the target of a link as written. `mode` holds the low twelve bits. `names`
    are user and group as text, "" where the archive has numbers only.
    """

    path: str
    type: str
    mode: int
    uid: int
    gid: int
    mtime: int
    size: int
    link: str
    offset: int
    names: str = ""


@dataclass(slots=True)
class TarStream:
    """A tar being read once, front to back. `what` names it in errors."""

    source: ByteSource
    what: str
    position: int = 0
    ended: bool = False
    _left: int = field(default=0, init=False)
    _padding: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Member]:
        """Yield members; what the caller leaves unread of one is skipped.

        Raises StageError BROKEN_TAR for a damaged or cut archive, HOSTILE_TAR for a name no
        image may hold.
        """
        pax: dict[str, str] = {}
        for header in self._headers():
            if header.type in {b"x", b"L", b"K"}:
                pax |= _extension(header, self._payload(header.size), self)
                continue
            if header.type == b"g":
                self._payload(header.size)
                continue
            member = _member(header, pax, self)
            pax = {}
            self._left, self._padding = member.size, -member.size % BLOCK
            yield member
            self._skip()

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the current member."""
        while self._left:
            data = self._read(min(CHUNK, self._left))
            self._left -= len(data)
            yield data

    def broken(self, why: str) -> StageError:
        """Make the error for an archive that cannot be what it says."""
        msg = f"{self.what}: broken tar at byte {self.position}: {why}"
        return StageError("BROKEN_TAR", msg, at=self.what)

    def hostile(self, path: str, why: str) -> StageError:
        """Make the error for a member no image may hold, naming it."""
        return hostile(self.what, path, why)

    def _headers(self) -> Iterator[tarfile.TarInfo]:
        while True:
            block = self._exactly(BLOCK)
            if block == _ZERO:
                self._expect_end()
                return
            if block[:100].partition(b"\0")[2].strip(b"\0"):
                raise self.hostile(repr(block[:100]), "bytes hidden behind a NUL in the name")
            try:
                yield tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise self.broken(str(error)) from error

    def _expect_end(self) -> None:
        while data := self.source.read(CHUNK):
            if data.strip(b"\0"):
                why = "data after the end mark"
                raise self.broken(why)
            self.position += len(data)
        self.ended = True

    def _payload(self, size: int) -> bytes:
        if not 0 <= size <= _META_LIMIT:
            why = f"an extended header of {size} bytes"
            raise self.broken(why)
        data = self._exactly(size)
        self._exactly(-size % BLOCK)
        return data

    def _skip(self) -> None:
        self._left += self._padding
        self._padding = 0
        for _data in self.chunks():
            pass

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._read(size - len(data))
        return data

    def _read(self, size: int) -> bytes:
        data = self.source.read(size)
        if not data:
            self.ended = True
            why = "it ends too early"
            raise self.broken(why)
        self.position += len(data)
        return data


def hostile(what: str, path: str, why: str) -> StageError:
    """Make the error for a member no image may hold: `what` is the package or archive."""
    msg = f"{what}: hostile tar member {path!r}: {why}"
    return StageError("HOSTILE_TAR", msg, at=f"{what}: {path!r}")


def safe_path(raw: str, refuse: Callable[[str, str], VegaError]) -> str:
    """Normalise a member's name to `a/b/c`, "" for the root itself.

    Raises what `refuse(name, why)` makes for a name that is absolute, climbs, hides a
    control character, or is not UTF-8.
    """
    if not raw or raw.startswith("/"):
        raise refuse(raw, "absolute or empty name")
    if _UNPRINTABLE.search(raw):
        raise refuse(raw, "control character or bad UTF-8 in the name")
    parts = raw.removeprefix("./").rstrip("/").split("/")
    if parts in ([""], ["."]):
        return ""
    if {"", ".", ".."} & set(parts):
        raise refuse(raw, "`..`, `.` or nothing between slashes")
    return "/".join(parts)


def _member(header: tarfile.TarInfo, pax: dict[str, str], stream: TarStream) -> Member:
    kind = header.type.decode("latin-1").replace("\0", "0")
    raw = pax.get("path", header.name)
    if kind not in _UNDERSTOOD or any(key.startswith("GNU.sparse") for key in pax):
        raise stream.hostile(raw, f"member type {kind!r}")
    size = _number(pax.get("size", header.size), stream)
    if size and kind not in _FILES:
        raise stream.hostile(raw, "bytes behind a member that is no file")
    return Member(
        path=safe_path(raw, stream.hostile),
        type=kind,
        mode=header.mode & 0o7777,
        uid=_number(pax.get("uid", header.uid), stream),
        gid=_number(pax.get("gid", header.gid), stream),
        mtime=int(header.mtime),
        size=size,
        link=_link(pax.get("linkpath", header.linkname), raw, stream),
        offset=stream.position,
        names=" ".join(filter(None, (header.uname, header.gname))),
    )


def _link(target: str, path: str, stream: TarStream) -> str:
    if _UNPRINTABLE.search(target):
        raise stream.hostile(path, "control character or bad UTF-8 in a link target")
    return target


def _number(value: str | int, stream: TarStream) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) < _DIGITS):
        why = f"not a plain number: {text[:40]!r}"
        raise stream.broken(why)
    return int(text)


def _extension(header: tarfile.TarInfo, data: bytes, stream: TarStream) -> dict[str, str]:
    if header.type in {b"L", b"K"}:
        name = data.removesuffix(b"\0").decode("utf-8", "surrogateescape")
        return {"path" if header.type == b"L" else "linkpath": name}
    records: dict[str, str] = {}
    why = "bad PAX record"
    while data:
        size, space, rest = data.partition(b" ")
        if not (space and size.isdigit() and len(size) < _DIGITS):
            raise stream.broken(why)
        end = int(size) - len(size) - 1
        key, equals, value = rest[:end].partition(b"=")
        if not (0 < end <= len(rest) and equals and value.endswith(b"\n")):
            raise stream.broken(why)
        text = value[:-1].decode("utf-8", "surrogateescape")
        records[key.decode("utf-8", "surrogateescape")] = text
        data = rest[end:]
    return records
