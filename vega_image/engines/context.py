"""The build context as a tar stream, the same bytes for the same files."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from vega_image.errors import UsageError

CHUNK = 1 << 20


def context_tar(
    files: Mapping[str, bytes], objects: Mapping[str, Path], *, epoch: int
) -> Iterator[bytes]:
    """Yield a tar of `files` (path -> bytes) and `objects` (path -> file of the store).

    Scripts (`#!`) are executable. Raises UsageError CONTEXT_PATH for a path that leaves the
    context or is given twice.
    """
    twice = files.keys() & objects.keys()
    for path in (*files, *objects):
        _check(path, given_twice=path in twice)
    for path in sorted((*files, *objects)):
        if path in files:
            data = files[path]
            yield _header(path, len(data), epoch, executable=data.startswith(b"#!"))
            yield data + bytes(-len(data) % tarfile.BLOCKSIZE)
        else:
            yield from _object(path, objects[path], epoch)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _object(path: str, source: Path, epoch: int) -> Iterator[bytes]:
    size = source.stat().st_size
    yield _header(path, size, epoch, executable=False)
    with source.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
    yield bytes(-size % tarfile.BLOCKSIZE)


def _header(path: str, size: int, epoch: int, *, executable: bool) -> bytes:
    info = tarfile.TarInfo(path)
    info.size = size
    info.mtime = epoch
    info.mode = 0o755 if executable else 0o644
    return info.tobuf(tarfile.PAX_FORMAT)


def _check(path: str, *, given_twice: bool) -> None:
    clean = PurePosixPath(path).as_posix() == path and path != "."
    hostile = path.startswith("/") or ".." in path.split("/") or not path.isprintable()
    if not path or not clean or hostile or given_twice:
        why = "given twice" if given_twice else "not a plain path inside the context"
        msg = f"stage context: {path!r}: {why}"
        raise UsageError("CONTEXT_PATH", msg, at=path)


class Reader(io.RawIOBase):
    """A stream of byte chunks as a file to read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Say yes."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, b"" at the end; `size` < 0 reads all."""
        if size < 0:
            rest, self._rest = bytes(self._rest), memoryview(b"")
            return rest + b"".join(self._chunks)
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._rest = memoryview(chunk)
        part, self._rest = self._rest[:size], self._rest[size:]
        return bytes(part)
