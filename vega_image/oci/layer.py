"""Split a tree into layers by owner, and write each as a normalised tar.

A layer's bytes depend on its own entries only: sorted by path, one time for all, ids from
the entries, and every folder above an entry repeated in the layer. Without that repetition
Docker and podman make the missing folder themselves, 0755 and root, hiding the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from threading import Lock
from typing import Final

from vega_image.digest import Json
from vega_image.errors import StageError
from vega_image.oci.tarwrite import END, header, padding
from vega_image.rootfs.collect import parents
from vega_image.rootfs.content import Contents
from vega_image.rootfs.tree import Entry, Kind, Tree
from vega_image.spec import Layer
from vega_image.store import Store

_PARALLEL: Final = 2


@dataclass(frozen=True, slots=True)
class TarLayer:
    """An uncompressed layer in the store: `diff_id` is its object, `size` its bytes."""

    name: str
    diff_id: str
    size: int

    def to_json(self) -> Json:
        """Encode for the store."""
        return {"name": self.name, "diff_id": self.diff_id, "size": self.size}


def split(tree: Tree, layers: Sequence[Layer]) -> dict[str, Tree]:
    """Give every entry to the first layer that names its owner, else to the `rest` layer.

    Layers keep their order; a `rest` layer with nothing in it is left out. Raises StageError
    NO_LAYER for an owner no layer takes, EMPTY_LAYER for a layer whose globs match nothing.
    """
    held: dict[str, list[Entry]] = {layer.name: [] for layer in layers}
    for entry in tree.entries:
        held[_layer_of(entry, layers)].append(entry)
    known = tree.by_path()
    for layer in layers:
        if not held[layer.name] and not layer.rest:
            msg = f"layer {layer.name}: no package matches {', '.join(layer.packages)}"
            hint = "correct layers in the spec, or leave this one out"
            raise StageError("EMPTY_LAYER", msg, at=layer.name, hint=hint)
    return {name: _with_parents(rows, known) for name, rows in held.items() if rows}


def write_layers(
    layers: Mapping[str, Tree],
    store: Store,
    *,
    epoch: int,
    progress: Callable[[int, int], None],
) -> tuple[TarLayer, ...]:
    """Write each layer as a tar object; `progress` counts bytes of content.

    Every object read is verified first. Raises BytesError STORE_TAMPERED or OBJECT_GONE.
    """
    writer = _Writer(store, epoch, progress, content_bytes(layers.values()))
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="layer") as pool:
        list(pool.map(writer.verify, content_objects(layers.values())))
        return tuple(pool.map(writer.write, layers, layers.values()))


def tar_of(
    tree: Tree, contents: Contents, epoch: int, told: Callable[[int], None]
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a tree's tar; `told` hears the size of each file that is through."""
    for entry in tree.entries:
        yield header(entry, mtime=epoch)
        if entry.content:
            yield from contents.chunks(entry.content)
            yield padding(entry.content.size)
            told(entry.content.size)
    yield END


class _Writer:
    def __init__(
        self, store: Store, epoch: int, progress: Callable[[int, int], None], total: int
    ) -> None:
        self._store = store
        self._epoch = epoch
        self._progress = progress
        self._total = total
        self._done = 0
        self._told = Lock()

    def verify(self, name: str) -> None:
        self._store.verify(name, what="content of the image")

    def write(self, name: str, tree: Tree) -> TarLayer:
        with self._store.writer() as out:
            for data in tar_of(tree, Contents(self._store), self._epoch, self._report):
                out.write(data)
            return TarLayer(name, out.commit(), out.size)

    def _report(self, size: int) -> None:
        with self._told:
            self._done += size
            self._progress(self._done, self._total)


def _layer_of(entry: Entry, layers: Sequence[Layer]) -> str:
    for layer in layers:
        if any(fnmatchcase(entry.owner, glob) for glob in layer.packages):
            return layer.name
    for layer in layers:
        if layer.rest:
            return layer.name
    msg = f"no layer takes {entry.owner} ({entry.path})"
    raise StageError("NO_LAYER", msg, at=entry.owner, hint="give one layer `rest: true`")


def _with_parents(entries: Sequence[Entry], known: Mapping[str, Entry]) -> Tree:
    """Keep what is not a folder and the folders above it; other folders only when empty."""
    rows = {entry.path: entry for entry in entries if entry.kind is not Kind.DIR}
    inner = {parent for path in known for parent in parents(path)}
    rows |= {entry.path: entry for entry in entries if entry.path not in inner}
    for entry in list(rows.values()):
        for path in parents(entry.path):
            rows[path] = known.get(path) or _folder(path, entry.owner)
    return Tree.of(rows.values())


def _folder(path: str, owner: str) -> Entry:
    return Entry(path=path, kind=Kind.DIR, mode=0o755, owner=owner)


def content_bytes(trees: Iterable[Tree]) -> int:
    """Count the bytes of all regular files."""
    return sum(entry.content.size for tree in trees for entry in tree.entries if entry.content)


def content_objects(trees: Iterable[Tree]) -> list[str]:
    """List the store objects that hold them, sorted."""
    return sorted(
        {
            entry.content.object
            for tree in trees
            for entry in tree.entries
            if entry.content and entry.content.size
        }
    )
