"""A two-layer image in a store, made with the product's own parts from any small tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vega_image.oci.compress import compress, media_type
from vega_image.oci.image import ImageLayer, make_image
from vega_image.oci.layer import split, write_layers
from vega_image.oci.layout import Layout, write_layout
from vega_image.rootfs.tree import Content, Entry, Kind, Tree
from vega_image.spec import Codec, Compression, ImageConfig, Layer
from vega_image.store import Store

EPOCH = 1764460800
LAYERS = (Layer(name="base", rest=True), Layer(name="app", packages=("app",)))


@dataclass(frozen=True)
class SmallImage:
    """Makes layouts in `store` of trees given as path -> text, link target or mode."""

    store: Store

    def layout(
        self, folder: Path, tree: Tree, *, codec: Codec = Codec.ZSTD, note: str = "x"
    ) -> Layout:
        """Build and lay out; `note` goes into a label."""
        options = Compression(codec=codec, level=3)
        layers = []
        tars = write_layers(
            split(tree, LAYERS), self.store, epoch=EPOCH, progress=lambda *_: None
        )
        for tar in tars:
            blob = compress(tar.diff_id, options, self.store)
            layers.append(
                ImageLayer(
                    name=tar.name,
                    diff_id=tar.diff_id,
                    size=tar.size,
                    blob=blob.digest,
                    blob_size=blob.size,
                    media_type=media_type(codec),
                )
            )
        config = ImageConfig(user="10001:10001", entrypoint=("/bin/app",), env={"PATH": "/bin"})
        image = make_image(layers, config, labels={"io.vega-image.note": note}, epoch=EPOCH)
        self.store.put(image.config)
        manifest = self.store.put(image.manifest)
        return write_layout(folder, self.store, manifest=manifest, name="small", tag="1")

    def file(self, path: str, text: str, owner: str = "app", *, mode: int = 0o644) -> Entry:
        """A regular file."""
        data = text.encode()
        content = Content(self.store.put(data), 0, len(data))
        return Entry(path=path, kind=Kind.FILE, mode=mode, content=content, owner=owner)

    def tree(self, text: str = "hello") -> Tree:
        """A folder only its user may enter, a file in each layer, a link."""
        return Tree.of(
            [
                Entry(path="srv", kind=Kind.DIR, mode=0o750, uid=7, gid=8, owner="base"),
                Entry(path="tmp", kind=Kind.DIR, mode=0o1777, owner="base"),
                self.file("srv/base", "base", "base"),
                self.file("srv/app", text),
                Entry(
                    path="srv/link", kind=Kind.SYMLINK, mode=0o777, target="app", owner="app"
                ),
            ]
        )
