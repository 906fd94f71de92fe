"""Where two images differ first: a file, else the documents, else the compression."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, cast

from vega_image.digest import Json
from vega_image.oci.layout import LayerBlob, Layout
from vega_image.oci.unpack import ImageFile, image_files
from vega_image.rootfs.content import Contents
from vega_image.store import Store

_TYPES: Final = {
    "0": "file",
    "1": "hard link",
    "2": "symlink",
    "3": "device",
    "4": "device",
    "5": "folder",
    "6": "fifo",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: `where` is a path of the image or a document's key."""

    where: str
    what: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what} {self.left} became {self.right}"

    def to_json(self) -> Json:
        """Encode for `--json`."""
        return {
            "where": self.where,
            "what": self.what,
            "left": self.left,
            "right": self.right,
        }


def first_difference(left: Layout, right: Layout, store: Store) -> Difference | None:
    """Return the first difference of two images, or None when their digests are equal."""
    if left.digest == right.digest:
        return None
    return next(differences(left, right, store))


def differences(left: Layout, right: Layout, store: Store) -> Iterator[Difference]:
    """Yield what differs: files by path, then configuration, manifest and layers."""
    if [layer.diff_id for layer in left.layers] != [layer.diff_id for layer in right.layers]:
        yield from file_differences(image_files(left, store), image_files(right, store), store)
    yield from _keys("config", json.loads(left.config), json.loads(right.config))
    yield from _keys("annotation", left.annotations, right.annotations)
    for number, pair in enumerate(zip_longest(left.layers, right.layers)):
        yield from _layers(number, *pair)
    if left.digest != right.digest:
        yield Difference("manifest", "digest", left.digest, right.digest)


def file_differences(
    left: Sequence[ImageFile], right: Sequence[ImageFile], store: Store
) -> Iterator[Difference]:
    """Yield the files that differ, sorted by path, each with the first thing that does."""
    contents = Contents(store)
    old = {file.path: file for file in left}
    new = {file.path: file for file in right}
    for path in sorted(old.keys() | new.keys()):
        if path not in old or path not in new:
            yield Difference(path, "presence", _there(path in old), _there(path in new))
            continue
        found = _file(old[path], new[path], contents)
        if found:
            yield found


def _file(left: ImageFile, right: ImageFile, contents: Contents) -> Difference | None:
    pairs = [
        ("type", _TYPES.get(left.type, left.type), _TYPES.get(right.type, right.type)),
        ("mode", f"{left.mode:04o}", f"{right.mode:04o}"),
        ("owner", f"{left.uid}:{left.gid}", f"{right.uid}:{right.gid}"),
        ("link target", left.link, right.link),
        ("time", str(left.mtime), str(right.mtime)),
        ("layer", str(left.layer), str(right.layer)),
    ]
    for what, one, other in pairs:
        if one != other:
            return Difference(left.path, what, one, other)
    if left.content == right.content:
        return None
    one, other = _sha256(left, contents), _sha256(right, contents)
    return Difference(left.path, "content", one, other) if one != other else None


def _sha256(file: ImageFile, contents: Contents) -> str:
    data = contents.view(file.content) if file.content else b""
    return f"sha256:{hashlib.sha256(data).hexdigest()} ({len(data)} bytes)"


def _there(present: bool) -> str:  # noqa: FBT001 - a word for a truth value
    return "there" if present else "absent"


def _layers(
    number: int, left: LayerBlob | None, right: LayerBlob | None
) -> Iterator[Difference]:
    where = f"layer {number}"
    if left is None or right is None:
        yield Difference(where, "presence", _there(left is not None), _there(right is not None))
        return
    for what in ("diff_id", "media_type", "name", "digest"):
        one, other = getattr(left, what), getattr(right, what)
        if one != other:
            yield Difference(where, what.replace("digest", "compressed bytes"), one, other)
            return


def _keys(where: str, left: object, right: object) -> Iterator[Difference]:
    if isinstance(left, dict) and isinstance(right, dict):
        old, new = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        for key in sorted(old.keys() | new.keys()):
            if not (where == "config" and key == "rootfs"):
                yield from _keys(f"{where}.{key}", old.get(key), new.get(key))
    elif left != right:
        yield Difference(where, "value", json.dumps(left), json.dumps(right))
