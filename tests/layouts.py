"""An OCI layout folder as the docker-archive stream any engine loads."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import zstandard


def docker_archive(layout: Path, target: Path) -> Iterator[bytes]:
    """Write the archive to `target` (uncompressed layers) and yield its bytes."""
    manifest = _json(layout, json.loads((layout / "index.json").read_text())["manifests"][0])
    config = _blob(layout, manifest["config"]["digest"]).read_bytes()
    names = []
    with tarfile.open(target, "w") as archive:
        for number, layer in enumerate(manifest["layers"]):
            names.append(f"{number}.tar")
            _add(archive, names[-1], _plain(_blob(layout, layer["digest"])))
        name = manifest["config"]["digest"].split(":")[1] + ".json"
        _add(archive, name, config)
        listed = [{"Config": name, "RepoTags": None, "Layers": names}]
        _add(archive, "manifest.json", json.dumps(listed).encode())
    with target.open("rb") as file:
        yield from iter(lambda: file.read(1 << 20), b"")


def _plain(blob: Path) -> bytes:
    data = blob.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            return reader.read()
    return data


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    file: IO[bytes] = io.BytesIO(data)
    archive.addfile(info, file)


def _json(layout: Path, descriptor: Any) -> Any:
    return json.loads(_blob(layout, descriptor["digest"]).read_bytes())


def _blob(layout: Path, digest: str) -> Path:
    algorithm, _, digits = digest.partition(":")
    return layout / "blobs" / algorithm / digits
