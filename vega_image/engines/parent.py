"""The tree a stage starts from, as an image the engine can load: one layer, one stream."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vega_image.digest import PREFIX, Json, canonical, digest_bytes, hex_of
from vega_image.oci.tarwrite import END, header, padding
from vega_image.rootfs.content import Contents
from vega_image.rootfs.tree import Tree
from vega_image.store import Store

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LAYER = "layer.tar"


@dataclass(slots=True, kw_only=True)
class ParentImage:
    """A docker-archive; `image_id` and `diff_id` hold once `stream` has ended.

    The image's labels are inherited by every container and image made from it, which is how
    leftovers are found.
    """

    tree: Tree
    store: Store
    labels: Mapping[str, str]
    epoch: int
    image_id: str = ""
    diff_id: str = ""

    def size(self) -> int:
        """Bytes of the layer."""
        return sum(len(part) for part in self._headers()) + self._content_size() + len(END)

    def stream(self) -> Iterator[bytes]:
        """Yield the archive; the layer first, so that it is read once."""
        yield _member(_LAYER, self.size())
        digest = hashlib.sha256()
        for chunk in self._layer():
            digest.update(chunk)
            yield bytes(chunk)
        yield padding(self.size())
        self.diff_id = PREFIX + digest.hexdigest()
        config = canonical(self._config())
        self.image_id = digest_bytes(config)
        name = f"{hex_of(self.image_id)}.json"
        manifest: Json = [{"Config": name, "RepoTags": None, "Layers": [_LAYER]}]
        for path, data in ((name, config), ("manifest.json", canonical(manifest))):
            yield _member(path, len(data)) + data + padding(len(data))
        yield END

    def _layer(self) -> Iterator[bytes | memoryview]:
        contents = Contents(self.store)
        for entry in self.tree.entries:
            yield header(entry, mtime=self.epoch)
            if entry.content:
                yield from contents.chunks(entry.content)
                yield padding(entry.content.size)
        yield END

    def _headers(self) -> Iterator[bytes]:
        return (header(entry, mtime=self.epoch) for entry in self.tree.entries)

    def _content_size(self) -> int:
        sizes = (entry.content.size for entry in self.tree.entries if entry.content)
        return sum(size + len(padding(size)) for size in sizes)

    def _config(self) -> Json:
        return {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": [
                    f"PATH={PATH}",
                    f"SOURCE_DATE_EPOCH={self.epoch}",
                    "LC_ALL=C",
                    "TZ=UTC",
                ],
                "Labels": dict(self.labels),
            },
            "rootfs": {"type": "layers", "diff_ids": [self.diff_id]},
            "history": [{"created_by": "vega-image"}],
        }


def _member(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)
