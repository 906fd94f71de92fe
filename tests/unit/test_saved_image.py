from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.engines.saved import layers_above
from vega_image.errors import EngineError, StageError

BASE, TOP = b"base layer" * 60, b"top layer" * 60


def sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def archive(
    layers: list[bytes], *, diff_ids: list[str] | None = None, manifest: object = None
) -> bytes:
    """As podman writes it: layers first, a link to each, the manifest last."""
    buffer = io.BytesIO()
    names = [f"{number}.tar" for number in range(len(layers))]
    ids = [sha(layer) for layer in layers] if diff_ids is None else diff_ids
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": ids}}).encode()
    linked = [f"v1-{name}/layer.tar" for name in names]
    listed = [{"Config": "c.json", "RepoTags": None, "Layers": linked}]
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, link, data in zip(names, linked, layers, strict=True):
            add(tar, name, data)
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, f"../{name}"
            tar.addfile(info)
        add(tar, "c.json", config)
        add(tar, "manifest.json", json.dumps(listed if manifest is None else manifest).encode())
    return buffer.getvalue()


def add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def above(data: bytes, folder: Path) -> list[bytes]:
    paths = layers_above(io.BytesIO(data), sha(BASE), scratch=folder)
    return [path.read_bytes() for path in paths]


def test_the_layers_above_the_parents_come_in_order(tmp_path: Path) -> None:
    assert above(archive([BASE, TOP, b"z" * 600]), tmp_path) == [TOP, b"z" * 600]
    assert not any(path.read_bytes() == BASE for path in tmp_path.iterdir())


def test_a_compressed_layer_is_unpacked(tmp_path: Path) -> None:
    data = archive([BASE, gzip.compress(TOP)], diff_ids=[sha(BASE), sha(TOP)])
    assert above(data, tmp_path) == [TOP]


@pytest.mark.parametrize(
    "data",
    [
        archive([TOP, BASE]),
        archive([]),
        archive([BASE], diff_ids=[]),
        archive([BASE], manifest=[]),
        archive([BASE], manifest={"Config": 1}),
        archive([BASE], manifest=[{"Config": "none.json", "Layers": []}]),
        archive([BASE, TOP], diff_ids=[sha(BASE)]),
    ],
)
def test_another_image_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        above(data, tmp_path)
    assert caught.value.code == "ENGINE_EXPORT"


@given(st.data())
def test_a_damaged_archive_never_gives_other_layers(data: st.DataObject) -> None:
    import tempfile

    whole = archive([BASE, TOP])
    at = data.draw(st.integers(0, len(whole)))
    with tempfile.TemporaryDirectory() as name:
        try:
            found = above(whole[:at], Path(name))
        except (EngineError, StageError):
            return
        assert found == [TOP]
