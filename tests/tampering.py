"""A well-formed forgery: an OCI layout with one thing changed and every digest made right."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import zstandard

Change = Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None]
"""What a member becomes; None takes it out."""


def forge_files(layout: Path, change: Change) -> None:
    """Rewrite the layers of a zstd layout with `change` applied to every member."""
    manifest, config = documents(layout)
    for number, layer in enumerate(manifest["layers"]):
        plain = _plain(_blob(layout, layer["digest"]).read_bytes())
        data = _rewritten(plain, change)
        if data == plain:
            continue
        config["rootfs"]["diff_ids"][number] = f"sha256:{sha256(data).hexdigest()}"
        layer["annotations"]["io.vega-image.layer.uncompressed-bytes"] = str(len(data))
        blob = zstandard.ZstdCompressor(level=1).compress(data)
        layer["size"], layer["digest"] = len(blob), _put(layout, blob)
    forge_documents(layout, manifest, config)


def forge_documents(layout: Path, manifest: Any, config: Any) -> None:
    """Make a changed manifest and configuration the layout's own."""
    data = _encoded(config)
    manifest["config"]["size"], manifest["config"]["digest"] = len(data), _put(layout, data)
    index = json.loads((layout / "index.json").read_text())
    data = _encoded(manifest)
    entry = index["manifests"][0]
    entry["size"], entry["digest"] = len(data), _put(layout, data)
    (layout / "index.json").write_bytes(_encoded(index))


def documents(layout: Path) -> tuple[Any, Any]:
    """Manifest and configuration."""
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(_blob(layout, index["manifests"][0]["digest"]).read_text())
    return manifest, json.loads(_blob(layout, manifest["config"]["digest"]).read_text())


def _rewritten(plain: bytes, change: Change) -> bytes:
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(plain)) as old,
        tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as new,
    ):
        touched = False
        for info in old:
            file = old.extractfile(info) if info.isreg() else None
            data = file.read() if file else b""
            became = change(info, data)
            touched = touched or became != (info, data)
            if became is not None:
                became[0].size = len(became[1])
                new.addfile(became[0], io.BytesIO(became[1]))
    return out.getvalue() if touched else plain


def _plain(blob: bytes) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(blob) as reader:
        return reader.read()


def _encoded(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _put(layout: Path, data: bytes) -> str:
    digest = f"sha256:{sha256(data).hexdigest()}"
    _blob(layout, digest).write_bytes(data)
    return digest


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs/sha256" / digest.partition(":")[2]
