"""Write the .wsl archive: a gzip tar whose root is the root of the distribution.

Sorted by path, numeric owners, one time for all, a gzip header that says nothing: the same
tree gives the same bytes. It goes through the compressor as it is made; no plain tar is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from vega_image.digest import Json
from vega_image.oci.compress import Gzip
from vega_image.oci.layer import content_bytes, content_objects, tar_of
from vega_image.rootfs.assemble import merge
from vega_image.rootfs.content import Contents
from vega_image.rootfs.generated import OWNER, Provenance, generated, placed
from vega_image.rootfs.tree import Entry, Kind, Tree
from vega_image.store import Store
from vega_image.wsl import places

_NULL: Final = "/dev/null"


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive in the store: its object, its bytes, and those of the tar inside it."""

    digest: str
    size: int
    uncompressed: int

    def to_json(self) -> Json:
        """Encode for the store."""
        row: Json = {
            "schema": 1,
            "digest": self.digest,
            "bytes": self.size,
            "uncompressed_bytes": self.uncompressed,
        }
        return row

    @classmethod
    def from_json(cls, value: Json) -> Archive:
        """Decode what `to_json` wrote."""
        row = cast("Mapping[str, Json]", value)
        size, tar = cast("int", row["bytes"]), cast("int", row["uncompressed_bytes"])
        return cls(cast("str", row["digest"]), size, tar)


def archive_tree(
    root: Tree, provenance: Provenance, files: Mapping[str, bytes], store: Store
) -> Tree:
    """Lay over an installed root what vega-image adds: `files`, masks, records.

    Raises UsageError GENERATED_TWICE, StageError PACKAGE_CONFLICT.
    """
    added = [
        replace(entry, mode=0o755) if entry.path in places.EXECUTABLE else entry
        for entry in placed(files.items(), store)
    ]
    added += [_entry(f"{places.MASKS}/{unit}", target=_NULL) for unit in places.MASKED]
    added += [
        _entry(f"{places.MASKS}/{link}", target=f"/{places.UNITS}/{unit}")
        for link, unit in places.ENABLED.items()
    ]
    tree = merge(root, generated(provenance, store))
    tree = merge(tree, Tree.of([*added, _entry(places.STATE)]))
    return _with_folders(tree)


def write_archive(
    tree: Tree,
    store: Store,
    *,
    level: int,
    epoch: int,
    progress: Callable[[int, int], None],
) -> Archive:
    """Write the archive as a store object; every object read is verified first.

    `progress` counts bytes of content. Raises BytesError STORE_TAMPERED or OBJECT_GONE.
    """
    for name in content_objects([tree]):
        store.verify(name, what="content of the archive")
    total, done, tar = content_bytes([tree]), 0, 0

    def told(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    coder = Gzip(level)
    with store.writer() as out:
        for data in tar_of(tree, Contents(store), epoch, told):
            tar += len(data)
            out.write(coder.compress(data))
        out.write(coder.flush())
        return Archive(out.commit(), out.size, tar)


def _with_folders(tree: Tree) -> Tree:
    """Give every path the folders above it, where no package has them."""
    known = tree.by_path()
    for path in list(known):
        folder = path.rpartition("/")[0]
        while folder and folder not in known:
            known[folder] = _entry(folder)
            folder = folder.rpartition("/")[0]
    return Tree.of(known.values())


def _entry(path: str, *, target: str = "") -> Entry:
    kind = Kind.SYMLINK if target else Kind.DIR
    mode = 0o777 if target else 0o755
    return Entry(path=path, kind=kind, mode=mode, target=target, owner=OWNER)
