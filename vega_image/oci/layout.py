"""OCI layouts on disk: written whole or not at all, read believing only digests."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

from vega_image.digest import PREFIX, Json, canonical, hex_of
from vega_image.errors import BytesError, UsageError
from vega_image.oci.documents import Config, Descriptor, Index, Manifest, decode
from vega_image.oci.image import LAYER_BYTES, LAYER_CODEC, LAYER_NAME, MANIFEST_TYPE
from vega_image.store import Store, disk_errors, write_atomic

REF_NAME: Final = "org.opencontainers.image.ref.name"
CONTAINERD_NAME: Final = "io.containerd.image.name"
_MARK: Final = "oci-layout"
_VERSION: Final = b'{"imageLayoutVersion":"1.0.0"}'
_DOCUMENT_LIMIT: Final = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBlob:
    """A layer as a layout has it; `uncompressed` is null where the image does not say it."""

    name: str
    digest: str
    size: int
    media_type: str
    diff_id: str
    uncompressed: int | None
    compression: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """An image in a folder, its documents read and checked; `config` is the exact bytes."""

    folder: Path
    tag: str
    digest: str
    config: bytes
    config_digest: str
    layers: tuple[LayerBlob, ...]
    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def compressed_bytes(self) -> int:
        """Bytes of all layers as they are transferred."""
        return sum(layer.size for layer in self.layers)

    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of the layers' tars, of those layers that say it."""
        return sum(layer.uncompressed or 0 for layer in self.layers)

    def blob(self, digest: str) -> Path:
        """Where a blob lies."""
        return _blob(self.folder, digest)


def write_layout(folder: Path, store: Store, *, manifest: str, name: str, tag: str) -> Layout:
    """Write the image whose manifest is the store object `manifest` as an OCI layout.

    Blobs are hard links into the store where the disk allows it. A layout that is there
    already is replaced in one rename; any other folder is refused (UsageError
    FOLDER_IN_USE). Raises BytesError for a blob that is gone or not what it was.
    """
    known = _present(folder)
    if known and (known.digest, known.tag) == (manifest, tag):
        return known
    path = store.verify(manifest, what=f"manifest of {name}")
    data = path.read_bytes()
    parts = decode(Manifest, data, at=f"manifest of {name}")
    with _new_folder(folder, near=store.tmp) as draft:
        _link(path, _blob(draft, manifest))
        for part in (parts.config, *parts.layers):
            _link(store.verify(part.digest, what=f"blob of {name}"), _blob(draft, part.digest))
        write_atomic(draft / _MARK, _VERSION)
        entry: Json = {
            "mediaType": MANIFEST_TYPE,
            "digest": manifest,
            "size": len(data),
            "annotations": {
                REF_NAME: tag,
                CONTAINERD_NAME: f"localhost/{name}:{tag}",
            },
        }
        index = canonical({"schemaVersion": 2, "manifests": [entry]})
        write_atomic(draft / "index.json", index)
    return read_layout(folder, verify_layers=False)


def _present(folder: Path) -> Layout | None:
    try:
        return read_layout(folder)
    except (BytesError, UsageError):
        return None


def export_layout(layout: Layout, folder: Path) -> Layout:
    """Copy a layout to a folder of the user's; nothing in it is shared with the store."""
    with _new_folder(folder, near=folder.parent) as draft:
        names = [layout.digest, layout.config_digest, *(part.digest for part in layout.layers)]
        for name in names:
            target = _blob(draft, name)
            with disk_errors(target):
                shutil.copyfile(layout.blob(name), target)
        for name in (_MARK, "index.json"):
            shutil.copyfile(layout.folder / name, draft / name)
    return read_layout(folder)


def read_layout(folder: Path, *, tag: str | None = None, verify_layers: bool = True) -> Layout:
    """Read a layout and check every digest and size in it.

    Raises BytesError NOT_A_LAYOUT, LAYOUT_DAMAGED, BLOB_GONE or BLOB_DIFFERS, and UsageError
    TAG_UNKNOWN when it holds several images or not the one wanted.
    """
    _check_mark(folder)
    index = decode(Index, _document(folder / "index.json"), at=str(folder / "index.json"))
    entry = _chosen(index, tag, folder)
    manifest = decode(Manifest, _read(folder, entry), at=entry.digest)
    config_bytes = _read(folder, manifest.config)
    config = decode(Config, config_bytes, at=manifest.config.digest)
    if len(config.rootfs.diff_ids) != len(manifest.layers):
        msg = f"{folder}: {len(manifest.layers)} layers, {len(config.rootfs.diff_ids)} diff ids"
        raise BytesError("LAYOUT_DAMAGED", msg, at=str(folder))
    if verify_layers:
        for layer in manifest.layers:
            _verify(folder, layer)
    return Layout(
        folder=folder,
        tag=(entry.annotations or {}).get(REF_NAME, ""),
        digest=entry.digest,
        config=config_bytes,
        config_digest=manifest.config.digest,
        layers=tuple(map(_layer, manifest.layers, config.rootfs.diff_ids)),
        labels=config.config.labels or {},
        annotations=manifest.annotations or {},
    )


def _layer(part: Descriptor, diff_id: str) -> LayerBlob:
    notes = part.annotations or {}
    size = notes.get(LAYER_BYTES, "")
    return LayerBlob(
        name=notes.get(LAYER_NAME, ""),
        digest=part.digest,
        size=part.size,
        media_type=part.media_type,
        diff_id=diff_id,
        uncompressed=int(size) if re.fullmatch("[0-9]{1,18}", size) else None,
        compression=notes.get(LAYER_CODEC, ""),
    )


def _check_mark(folder: Path) -> None:
    try:
        version = json.loads(_document(folder / _MARK))["imageLayoutVersion"]
    except (BytesError, ValueError, TypeError, KeyError) as error:
        msg = f"{folder}: not an OCI layout (no readable {_MARK})"
        raise BytesError("NOT_A_LAYOUT", msg, at=str(folder)) from error
    if version != "1.0.0":
        msg = f"{folder}: OCI layout version {version!r}, known is 1.0.0"
        raise BytesError("NOT_A_LAYOUT", msg, at=str(folder))


def _chosen(index: Index, tag: str | None, folder: Path) -> Descriptor:
    tags = [(entry.annotations or {}).get(REF_NAME, "") for entry in index.manifests]
    found = [
        entry
        for entry, name in zip(index.manifests, tags, strict=True)
        if tag is None or name == tag
    ]
    if len(found) != 1:
        msg = f"{folder}: {len(found)} images match; its tags: {', '.join(tags) or 'none'}"
        raise UsageError("TAG_UNKNOWN", msg, at=str(folder))
    if found[0].media_type != MANIFEST_TYPE:
        msg = f"{folder}: {found[0].media_type} is no single image"
        raise BytesError("LAYOUT_DAMAGED", msg, at=str(folder))
    return found[0]


def _blob(folder: Path, digest: str) -> Path:
    return folder / "blobs" / "sha256" / hex_of(digest)


def _read(folder: Path, part: Descriptor) -> bytes:
    if part.size > _DOCUMENT_LIMIT:
        msg = f"{part.digest}: a document of {part.size} bytes"
        raise BytesError("LAYOUT_DAMAGED", msg, at=str(folder))
    _verify(folder, part)
    return _document(_blob(folder, part.digest))


def _verify(folder: Path, part: Descriptor) -> None:
    path = _blob(folder, part.digest)
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        found = f"{size} bytes, not {part.size}"
        if size == part.size:
            found = PREFIX + hashlib.file_digest(file, "sha256").hexdigest()
    if found != part.digest:
        msg = f"{path}: promised {part.digest}, found {found}"
        raise BytesError("BLOB_DIFFERS", msg, at=str(path))


def _document(path: Path) -> bytes:
    with open_plain(path) as file:
        data = file.read(_DOCUMENT_LIMIT + 1)
    if len(data) > _DOCUMENT_LIMIT:
        msg = f"{path}: more than {_DOCUMENT_LIMIT} bytes"
        raise BytesError("LAYOUT_DAMAGED", msg, at=str(path))
    return data


@contextmanager
def open_plain(path: Path) -> Iterator[BufferedReader]:
    """Open a file of somebody else's folder; a symlink, pipe or device is not followed.

    Raises BytesError BLOB_GONE.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise BytesError("BLOB_GONE", msg, at=str(path)) from error
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            msg = f"{path}: not a regular file"
            raise BytesError("BLOB_GONE", msg, at=str(path))
        yield file


def _link(source: Path, target: Path) -> None:
    with disk_errors(target):
        try:
            os.link(source, target)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
                raise
            shutil.copyfile(source, target)


def refuse_used(folder: Path, *, name: str | None = None) -> None:
    """Raise UsageError FOLDER_IN_USE for a folder whose content a layout must not replace.

    With `name` also a layout that holds an image of another name is refused.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if (folder / _MARK).is_file() and (name is None or _holds_only(folder, name)):
        return
    kind = "layout of another image" if (folder / _MARK).is_file() else "no OCI layout"
    msg = f"{folder} is there and is {kind}; nothing was written"
    raise UsageError("FOLDER_IN_USE", msg, at=str(folder), hint="choose another folder")


def _holds_only(folder: Path, name: str) -> bool:
    try:
        index = decode(Index, _document(folder / "index.json"), at=str(folder))
    except (BytesError, UsageError):
        return False
    names = [(entry.annotations or {}).get(CONTAINERD_NAME, "") for entry in index.manifests]
    return all(found.startswith(f"localhost/{name}:") for found in names)


@contextmanager
def _new_folder(folder: Path, *, near: Path) -> Iterator[Path]:
    """Fill a folder in `near`, on the same disk, then let it take that name."""
    refuse_used(folder)
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        outer = Path(tempfile.mkdtemp(dir=near, prefix=f".{folder.name}."))
    try:
        draft = outer / "new"
        (draft / "blobs" / "sha256").mkdir(parents=True)
        with disk_errors(folder):
            yield draft
            if folder.exists():
                folder.replace(outer / "old")
            draft.replace(folder)
    finally:
        shutil.rmtree(outer, ignore_errors=True)
