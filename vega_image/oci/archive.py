"""A docker-archive stream: what `docker load` and `podman load` of any age accept.

Docker 20.10 reads neither OCI layouts nor zstd layers; this stream carries the plain tars,
and the image id comes out the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from vega_image.digest import canonical, hex_of
from vega_image.oci.layout import Layout
from vega_image.oci.tarwrite import END, header, padding
from vega_image.oci.unpack import plain_layers
from vega_image.rootfs.tree import Content, Entry, Kind
from vega_image.store import CHUNK, Store


def docker_archive(layout: Layout, store: Store, *, tag: str) -> Iterator[bytes]:
    """Yield the archive of an image in pieces, loadable as `tag` (`localhost/name:version`).

    Raises BytesError as `oci.unpack.plain_layers`, and for a layer whose stored tar changed.
    """
    diff_ids = plain_layers(layout, store)
    config = f"{hex_of(layout.config_digest)}.json"
    names = [f"{hex_of(diff_id)}.tar" for diff_id in diff_ids]
    index = canonical([{"Config": config, "RepoTags": [tag], "Layers": names}])
    yield _whole(config, layout.config)
    for diff_id, name in dict(zip(diff_ids, names, strict=True)).items():
        yield from _stored(store, diff_id, name)
    yield _whole("manifest.json", index)
    yield END


def _whole(name: str, data: bytes) -> bytes:
    return _header(name, len(data)) + data + padding(len(data))


def _stored(store: Store, digest: str, name: str) -> Iterator[bytes]:
    path = store.verify(digest, what=f"layer {name}")
    size = path.stat().st_size
    yield _header(name, size)
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            yield data
    yield padding(size)


def _header(name: str, size: int) -> bytes:
    content = Content("", 0, size)
    entry = Entry(path=name, kind=Kind.FILE, mode=0o644, content=content, owner="")
    return header(entry, mtime=0)
