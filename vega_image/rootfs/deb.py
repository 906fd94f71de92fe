"""What one .deb gives to a tree: its kept files in the store, and what its control part says.

dpkg-deb only ever writes to a pipe; nothing is unpacked onto a file system.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, cast

from vega_image.digest import Json
from vega_image.errors import StageError
from vega_image.lock import PackageFile
from vega_image.process import output_of
from vega_image.rootfs.collect import Collector
from vega_image.rootfs.selection import canonical
from vega_image.rootfs.tarread import TarStream
from vega_image.rootfs.tree import Content, Entry, Kind, Tree
from vega_image.store import ObjectWriter, Store

# A file of this size gets an object of its own: a later step then verifies and maps it alone.
OWN_OBJECT_BYTES: Final = 16 << 20
_CONTROL_LIMIT: Final = 16 << 20
_CONTROL_FILES: Final = frozenset({"control", "md5sums", "conffiles"})
_PACKAGE_BYTES: Final = "(bytes of this package)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """One package's part of the tree; `control` maps control file names to their text."""

    package: str
    entries: tuple[Entry, ...]
    control: Mapping[str, str]
    notes: tuple[str, ...]

    def to_json(self) -> Json:
        """Encode for the store."""
        return {
            "package": self.package,
            "tree": Tree(self.entries).to_json(),
            "control": self.control,
            "notes": self.notes,
        }

    @classmethod
    def from_json(cls, value: Json) -> Extracted:
        """Decode what `to_json` wrote."""
        row = cast("Mapping[str, Json]", value)
        return cls(
            package=cast("str", row["package"]),
            entries=Tree.from_json(row["tree"]).entries,
            control=cast("Mapping[str, str]", row["control"]),
            notes=tuple(cast("list[str]", row["notes"])),
        )

    def objects(self) -> list[str]:
        """List the store objects that hold its files, sorted."""
        return sorted({entry.content.object for entry in self.entries if entry.content})


@dataclass(frozen=True, slots=True, kw_only=True)
class DebReader:
    """How to read .debs: where bytes go, and what is told on the way.

    `tick` is called with the bytes of package content read so far; it may raise to stop.
    """

    store: Store
    scratch: Path
    tick: Callable[[int], None]

    def read(self, package: PackageFile, deb: Path, collector: Collector) -> Extracted:
        """Put the kept files of a verified .deb into the store.

        Raises StageError HOSTILE_TAR, BROKEN_TAR or BROKEN_PACKAGE naming the package.
        """
        control = self._control(deb, collector.what)
        with self.store.writer() as shared:
            with self._tar(deb, "--fsys-tarfile", collector.what) as tar:
                for member in tar:
                    collector.add(member, partial(self._keep, tar, member.size, shared))
                    self.tick(tar.position)
            entries = collector.entries()
            shared.commit()
        placed = (_placed(entry, shared.digest) for entry in entries)
        control["md5sums"] = _kept_sums(control.get("md5sums", ""), entries, collector.links)
        return Extracted(
            package=package.package,
            entries=Tree.of(placed).entries,
            control=control,
            notes=tuple(collector.notes),
        )

    def _keep(self, tar: TarStream, size: int, shared: ObjectWriter) -> Content:
        if size < OWN_OBJECT_BYTES:
            start = shared.size
            self._copy(tar, shared)
            return Content(_PACKAGE_BYTES, start, size)
        with self.store.writer() as own:
            self._copy(tar, own)
            return Content(own.commit(), 0, size)

    def _copy(self, tar: TarStream, out: ObjectWriter) -> None:
        for data in tar.chunks():
            out.write(data)
            self.tick(tar.position)

    def _control(self, deb: Path, what: str) -> dict[str, str]:
        found: dict[str, str] = {}
        with self._tar(deb, "--ctrl-tarfile", what) as tar:
            for member in tar:
                if member.path in _CONTROL_FILES and member.size <= _CONTROL_LIMIT:
                    found[member.path] = b"".join(tar.chunks()).decode(errors="replace")
        if "control" not in found:
            msg = f"{what}: no control file in the package"
            raise StageError("BROKEN_PACKAGE", msg, at=what)
        return found

    @contextmanager
    def _tar(self, deb: Path, part: str, what: str) -> Iterator[TarStream]:
        argv = ["dpkg-deb", part, str(deb)]
        with (
            tempfile.TemporaryFile(dir=self.scratch) as complaints,
            output_of(argv, stderr=complaints) as child,
        ):
            assert child.stdout is not None
            tar = TarStream(child.stdout, what)
            try:
                yield tar
            except StageError:
                # Only a child whose output has ended can be waited for.
                if not tar.ended or child.wait() == 0:
                    raise
            if child.wait() != 0:
                complaints.seek(0)
                said = complaints.read(2000).decode(errors="replace").strip()
                msg = f"{what}: dpkg-deb {part} failed ({child.returncode}): {said}"
                raise StageError("BROKEN_PACKAGE", msg, at=what)


def _placed(entry: Entry, shared: str) -> Entry:
    content = entry.content
    if content is None or content.object != _PACKAGE_BYTES:
        return entry
    return replace(entry, content=replace(content, object=shared))


def _kept_sums(text: str, entries: Sequence[Entry], links: Mapping[str, str]) -> str:
    """Reduce a package's md5sums to its kept files, named as the image names them."""
    kept = {entry.path for entry in entries if entry.kind is Kind.FILE}
    rows = [line.partition("  ") for line in text.splitlines()]
    named = sorted((canonical(path, links), md5) for md5, _, path in rows)
    return "".join(f"{md5}  {path}\n" for path, md5 in named if path in kept)
