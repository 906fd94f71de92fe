"""Look into an image: its layers as plain tars in the store, and the files they add up to."""

from __future__ import annotations

import gzip
import zlib
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from vega_image.errors import BytesError
from vega_image.oci.layout import LayerBlob, Layout, open_plain
from vega_image.rootfs.tarread import ByteSource, Member, TarStream, hostile, safe_path
from vega_image.rootfs.tree import Content
from vega_image.store import CHUNK, Store

WHITEOUT: Final = ".wh."
OPAQUE: Final = ".wh..wh..opq"
# More than any image of ours by far; a decompression bomb ends here.
_LIMIT: Final = 1 << 36
_MAX_WINDOW: Final = 1 << 27


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFile:
    """One path of an image as its layers leave it; `type` is the tar type flag.

    `content` is set for regular files and hard links and points into a plain tar in the
    store; `layer` counts from 0, the lowest.
    """

    path: str
    type: str
    mode: int
    uid: int
    gid: int
    mtime: int
    link: str
    layer: int
    content: Content | None


def plain_layers(layout: Layout, store: Store) -> tuple[str, ...]:
    """Bring every layer into the store as a plain tar and return the tars' digests.

    Layers built here are there already. Raises BytesError BLOB_BROKEN, DIFF_ID_DIFFERS,
    TOO_LARGE.
    """
    for layer in layout.layers:
        if not store.has(layer.diff_id):
            _decompress(layout, layer, store)
    return tuple(layer.diff_id for layer in layout.layers)


def image_files(layout: Layout, store: Store) -> tuple[ImageFile, ...]:
    """Return the files an image shows, sorted by path, whiteouts honoured.

    Read their bytes with `rootfs.content.Contents(store)`. Raises BytesError as
    `plain_layers`, StageError HOSTILE_TAR or BROKEN_TAR naming layer and path.
    """
    files: dict[str, ImageFile] = {}
    for number, diff_id in enumerate(plain_layers(layout, store)):
        what = f"layer {number} of {layout.folder}"
        files = _laid(files, _Layer(store, diff_id, number, what))
    return tuple(files[path] for path in sorted(files))


@dataclass(frozen=True, slots=True)
class _Layer:
    store: Store
    diff_id: str
    number: int
    what: str

    def members(self) -> Iterator[Member]:
        with self.store.verify(self.diff_id, what=self.what).open("rb") as file:
            yield from TarStream(file, self.what)

    def file(self, member: Member, files: Mapping[str, ImageFile]) -> ImageFile:
        content = None
        if member.type in {"0", "7"}:
            content = Content(self.diff_id, member.offset, member.size)
        if member.type == "1":
            content = self._linked(member, files)
        return ImageFile(
            path=member.path,
            type="0" if content else member.type,
            mode=member.mode,
            uid=member.uid,
            gid=member.gid,
            mtime=member.mtime,
            link="" if content else member.link,
            layer=self.number,
            content=content,
        )

    def _linked(self, member: Member, files: Mapping[str, ImageFile]) -> Content:
        target = safe_path(member.link, lambda path, why: hostile(self.what, path, why))
        original = files.get(target)
        if original is None or original.content is None:
            raise hostile(self.what, member.path, f"hard link to {member.link!r}, no file")
        return original.content


def _laid(lower: dict[str, ImageFile], layer: _Layer) -> dict[str, ImageFile]:
    kept = dict(lower)
    added: dict[str, ImageFile] = {}
    known = ChainMap(added, lower)
    for member in layer.members():
        folder, _, name = member.path.rpartition("/")
        if name == OPAQUE:
            _drop_below(kept, folder)
        elif name.startswith(WHITEOUT):
            victim = str(PurePosixPath(folder, name.removeprefix(WHITEOUT)))
            kept.pop(victim, None)
            _drop_below(kept, victim)
        elif member.path:
            added[member.path] = layer.file(member, known)
    for path, file in added.items():
        if file.type != "5":
            _drop_below(kept, path)
    return kept | added


def _drop_below(files: dict[str, ImageFile], folder: str) -> None:
    prefix = f"{folder}/" if folder else ""
    for path in [path for path in files if path.startswith(prefix)]:
        del files[path]


def _decompress(layout: Layout, layer: LayerBlob, store: Store) -> None:
    at = str(layout.blob(layer.digest))
    try:
        with _plain(layout, layer) as stream, store.writer() as out:
            while data := stream.read(CHUNK):
                out.write(data)
                if out.size > _LIMIT:
                    msg = f"{at}: more than {_LIMIT >> 30} GiB when decompressed"
                    raise BytesError("TOO_LARGE", msg, at=at)
            found = out.commit()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{at}: cannot be decompressed: {error}"
        raise BytesError("BLOB_BROKEN", msg, at=at) from error
    if found != layer.diff_id:
        msg = f"{at}: decompressed it is {found}, promised was {layer.diff_id}"
        raise BytesError("DIFF_ID_DIFFERS", msg, at=at)


@contextmanager
def _plain(layout: Layout, layer: LayerBlob) -> Iterator[ByteSource]:
    with open_plain(layout.blob(layer.digest)) as file:
        if layer.media_type.endswith("zstd"):
            import zstandard  # noqa: PLC0415 - keeps `--help` fast

            reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
            try:
                yield reader.stream_reader(file, read_across_frames=True)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
        elif layer.media_type.endswith("gzip"):
            yield gzip.GzipFile(fileobj=file)
        else:
            yield file
