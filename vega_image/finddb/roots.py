"""File systems to look into: a folder taken as a root, or the files of an image."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vega_image.finddb.probe.library import LINKS_AT_MOST, inside
from vega_image.oci.unpack import ImageFile
from vega_image.store import Store

LARGEST = 512 << 20
CHUNK = 1 << 20


class Root(Protocol):
    """Paths are relative and POSIX; links are followed within the root."""

    def read(self, path: str) -> bytes | None:
        """Return a regular file's bytes; None without one, or one too large for a text."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none without one."""

    def holds(self, path: str, words: tuple[str, ...]) -> tuple[str, frozenset[str]] | None:
        """Return a file's SHA-256 and which words its bytes hold; None without a file."""


@dataclass(frozen=True, slots=True)
class FolderRoot:
    """A folder as a root."""

    folder: Path

    def read(self, path: str) -> bytes | None:
        """Return a regular file's bytes."""
        found = inside(self.folder, path)
        if found is None or not found.is_file() or found.stat().st_size > LARGEST:
            return None
        return found.read_bytes()

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        found = inside(self.folder, folder)
        if found is None or not found.is_dir():
            return []
        return sorted(path.name for path in found.iterdir())

    def holds(self, path: str, words: tuple[str, ...]) -> tuple[str, frozenset[str]] | None:
        """Return a file's SHA-256 and which words it holds."""
        found = inside(self.folder, path)
        if found is None or not found.is_file():
            return None
        with found.open("rb") as file:
            return _scan(iter(lambda: file.read(CHUNK), b""), words)


@dataclass(frozen=True, slots=True)
class ImageRoot:
    """The files that an image shows."""

    files: Mapping[str, ImageFile]
    store: Store

    def read(self, path: str) -> bytes | None:
        """Return a regular file's bytes."""
        file = self._file(path)
        if file is None or file.content is None or file.content.size > LARGEST:
            return None
        return b"".join(self._chunks(file))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        prefix = f"{self._real(folder)}/"
        below = {
            path.removeprefix(prefix).partition("/")[0]
            for path in self.files
            if path.startswith(prefix)
        }
        return sorted(below)

    def holds(self, path: str, words: tuple[str, ...]) -> tuple[str, frozenset[str]] | None:
        """Return a file's SHA-256 and which words it holds."""
        file = self._file(path)
        return (
            None if file is None or file.content is None else _scan(self._chunks(file), words)
        )

    def _chunks(self, file: ImageFile) -> Iterator[bytes]:
        assert file.content is not None
        with self.store.path(file.content.object).open("rb") as stream:
            stream.seek(file.content.offset)
            left = file.content.size
            while left and (data := stream.read(min(CHUNK, left))):
                left -= len(data)
                yield data

    def _file(self, path: str) -> ImageFile | None:
        return self.files.get(self._real(path))

    def _real(self, path: str) -> str:
        """Follow links, part by part."""
        parts = [part for part in reversed(path.split("/")) if part not in {"", "."}]
        here: list[str] = []
        links = 0
        while parts and links < LINKS_AT_MOST:
            part = parts.pop()
            if part == "..":
                here = here[:-1]
                continue
            file = self.files.get("/".join([*here, part]))
            if file is None or file.type != "2":
                here.append(part)
                continue
            links += 1
            here = [] if file.link.startswith("/") else here
            parts += [one for one in reversed(file.link.split("/")) if one not in {"", "."}]
        return "/".join(here)


def _scan(chunks: Iterator[bytes], words: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """Hash and search at once; a word may lie across two chunks."""
    digest = hashlib.sha256()
    wanted = {word.encode() for word in words}
    keep = max(map(len, wanted), default=1)
    found: set[bytes] = set()
    tail = b""
    for chunk in chunks:
        digest.update(chunk)
        window = tail + chunk
        found |= {word for word in wanted - found if word in window}
        tail = window[-keep:]
    return digest.hexdigest(), frozenset(word.decode() for word in found)
