"""Read a .wsl archive back from its bytes: for the gate, `inspect` and `reproduce`."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Final

from vega_image.errors import BytesError, StageError
from vega_image.oci.layout import open_plain
from vega_image.rootfs.tarread import ByteSource, Member, TarStream
from vega_image.store import CHUNK
from vega_image.wsl.checks import Listing, Node, check_archive

SMALL: Final = 8 << 20
_KEPT: Final = ("etc/", "usr/share/vega-image/")
_HEADER: Final = 10


@dataclass(slots=True)
class _Inflated:
    """The tar inside a gzip file; exactly one member, checked to its end."""

    file: BufferedReader
    what: str
    _coder: zlib._Decompress = field(
        default_factory=lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), init=False
    )
    _ready: bytes = field(default=b"", init=False)

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; raises BytesError NOT_AN_ARCHIVE."""
        while not self._ready:
            if self._coder.eof:
                if self._coder.unused_data or self.file.read(1):
                    raise _broken(self.what, "bytes after its end")
                return b""
            data = self._coder.unconsumed_tail or self.file.read(CHUNK)
            if not data:
                raise _broken(self.what, "it ends too early")
            try:
                self._ready = self._coder.decompress(data, CHUNK)
            except zlib.error as error:
                raise _broken(self.what, str(error)) from None
        out, self._ready = self._ready[:size], self._ready[size:]
        return out


@contextmanager
def inflated(path: Path) -> Iterator[ByteSource]:
    """Open the tar inside an archive; raises BytesError NOT_AN_ARCHIVE, BLOB_GONE."""
    with open_plain(path) as file:
        yield _Inflated(file, path.name)


@contextmanager
def opened(path: Path) -> Iterator[TarStream]:
    """Open an archive member by member; raises BytesError NOT_AN_ARCHIVE, BLOB_GONE."""
    with inflated(path) as source:
        yield TarStream(source, path.name)


def list_archive(path: Path) -> Listing:
    """Read the whole archive.

    Raises BytesError NOT_AN_ARCHIVE, StageError BROKEN_TAR or HOSTILE_TAR.
    """
    with open_plain(path) as file:
        header = file.read(_HEADER)
    with opened(path) as tar:
        return Listing(header, [_node(member, tar) for member in tar])


def refuse_broken(path: Path, *, epoch: int, name: str) -> None:
    """Hold an archive against every rule; raises StageError WSL_ARCHIVE_REFUSED."""
    found = check_archive(list_archive(path), epoch=epoch)
    if found:
        lines = "\n".join(finding.text() for finding in found)
        msg = f"{name}: the archive breaks {len(found)} rules\n{lines}"
        hint = f"change images/{name}.yaml or what its packages bring, then build again"
        raise StageError("WSL_ARCHIVE_REFUSED", msg, hint=hint, at=found[0].path)


def small_files(listing: Listing) -> dict[str, bytes]:
    """Return the files whose bytes a listing holds."""
    return {node.path: node.data for node in listing.nodes if node.data is not None}


def _node(member: Member, tar: TarStream) -> Node:
    kept = member.type in "07" and member.size <= SMALL and member.path.startswith(_KEPT)
    return Node(
        path=member.path,
        type=member.type,
        mode=member.mode,
        uid=member.uid,
        gid=member.gid,
        size=member.size,
        mtime=member.mtime,
        link=member.link,
        names=member.names,
        data=b"".join(tar.chunks()) if kept else None,
    )


def _broken(what: str, why: str) -> BytesError:
    msg = f"{what}: not a .wsl archive: {why}"
    hint = "build it again, or copy it again"
    return BytesError("NOT_AN_ARCHIVE", msg, at=what, hint=hint)
