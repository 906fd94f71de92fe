"""Looking into images, others' too: whiteouts, hostile layers, bombs, differences."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.smallimage import EPOCH, SmallImage
from vega_image.digest import digest_bytes
from vega_image.errors import BytesError, StageError
from vega_image.oci.archive import docker_archive
from vega_image.oci.compare import Difference, differences, first_difference
from vega_image.oci.layout import Layout, read_layout
from vega_image.oci.unpack import image_files, plain_layers
from vega_image.rootfs.content import Contents
from vega_image.rootfs.tree import Tree
from vega_image.spec import Codec
from vega_image.store import Store


@pytest.fixture
def maker(tmp_path: Path) -> SmallImage:
    return SmallImage(Store(tmp_path / "store"))


@pytest.fixture
def layout(maker: SmallImage, tmp_path: Path) -> Layout:
    return maker.layout(tmp_path / "images" / "small", maker.tree())


@pytest.mark.parametrize("codec", list(Codec))
def test_files_come_back_out_of_an_empty_store(
    maker: SmallImage, tmp_path: Path, codec: Codec
) -> None:
    layout = maker.layout(tmp_path / codec.value, maker.tree(), codec=codec)
    fresh = Store(tmp_path / "fresh")
    files = {file.path: file for file in image_files(layout, fresh)}
    assert list(files) == ["srv", "srv/app", "srv/base", "srv/link", "tmp"]
    assert (files["srv"].mode, files["srv"].uid, files["srv"].gid) == (0o750, 7, 8)
    assert files["srv/link"].link == "app"
    assert {file.mtime for file in files.values()} == {EPOCH}
    content = files["srv/app"].content
    assert content is not None
    assert bytes(Contents(fresh).view(content)) == b"hello"


def foreign(folder: Path, *layers: bytes, media_type: str = "tar") -> Layout:
    """A layout somebody else wrote, of tars as they come."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(data: bytes, kind: str) -> dict[str, Any]:
        digest = digest_bytes(data)
        (blobs / digest[7:]).write_bytes(data)
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    plain = [zstandard.decompress(d) if d[:4] == b"\x28\xb5\x2f\xfd" else d for d in layers]
    diff_ids = [digest_bytes(data) for data in plain]
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": diff_ids}}).encode()
    manifest = {
        "schemaVersion": 2,
        "config": put(config, "application/vnd.oci.image.config.v1+json"),
        "layers": [put(d, f"application/vnd.oci.image.layer.v1.{media_type}") for d in layers],
    }
    kind = "application/vnd.oci.image.manifest.v1+json"
    entry = put(json.dumps(manifest).encode(), kind)
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return read_layout(folder)


def tar(*names: str, **texts: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            info = tarfile.TarInfo(name.rstrip("/"))
            info.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(info)
        for name, text in texts.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def test_whiteouts_hide_what_lies_below_them_only(tmp_path: Path) -> None:
    layout = foreign(
        tmp_path / "foreign",
        tar("a/", "a/one", "a/two", "b/", "b/one", "c/", "c/one", gone="x"),
        tar(".wh.gone", "a/", "a/.wh.one", "b/", "b/two", "b/.wh..wh..opq", "c"),
    )
    files = image_files(layout, Store(tmp_path / "fresh"))
    assert [file.path for file in files] == ["a", "a/two", "b", "b/two", "c"]
    assert [file.layer for file in files] == [1, 0, 1, 1, 1]


def test_a_hard_link_into_a_lower_layer_has_its_bytes(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("two")
        info.type, info.linkname = tarfile.LNKTYPE, "one"
        archive.addfile(info)
    layout = foreign(tmp_path / "foreign", tar(one="bytes"), out.getvalue())
    store = Store(tmp_path / "fresh")
    one, two = image_files(layout, store)
    assert one.content == two.content


def test_a_foreign_layer_with_a_hostile_name_is_refused(tmp_path: Path) -> None:
    layout = foreign(tmp_path / "foreign", tar("../../etc/cron.d/evil"))
    with pytest.raises(StageError, match="hostile") as caught:
        image_files(layout, Store(tmp_path / "fresh"))
    assert "layer 0" in caught.value.message


@pytest.mark.parametrize(
    ("data", "kind", "code"),
    [
        (b"not compressed", "tar+zstd", "BLOB_BROKEN"),
        (b"not compressed", "tar+gzip", "BLOB_BROKEN"),
        (gzip.compress(b"x" * 9000)[:-9], "tar+gzip", "BLOB_BROKEN"),
        (gzip.compress(b"x"), "tar+gzip", "DIFF_ID_DIFFERS"),
    ],
)
def test_layers_that_do_not_decompress_to_their_diff_id_are_refused(
    tmp_path: Path, data: bytes, kind: str, code: str
) -> None:
    layout = foreign(tmp_path / "foreign", data, media_type=kind)
    store = Store(tmp_path / "fresh")
    with pytest.raises(BytesError) as caught:
        plain_layers(layout, store)
    assert caught.value.code == code


def test_a_bomb_ends_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vega_image.oci.unpack._LIMIT", 1 << 20)
    bomb = zstandard.ZstdCompressor().compress(bytes(4 << 20))
    layout = foreign(tmp_path / "foreign", bomb, media_type="tar+zstd")
    store = Store(tmp_path / "fresh")
    with pytest.raises(BytesError) as caught:
        plain_layers(layout, store)
    assert caught.value.code == "TOO_LARGE"
    assert not list(store.tmp.iterdir())


def test_the_docker_archive_holds_the_same_image_id(maker: SmallImage, layout: Layout) -> None:
    stream = b"".join(docker_archive(layout, maker.store, tag="localhost/small:1"))
    with tarfile.open(fileobj=io.BytesIO(stream)) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        (image,) = json.load(manifest)
        config = archive.extractfile(image["Config"])
        assert config is not None
        assert digest_bytes(config.read()) == layout.config_digest
        assert image["RepoTags"] == ["localhost/small:1"]
        for name, layer in zip(image["Layers"], layout.layers, strict=True):
            data = archive.extractfile(name)
            assert data is not None
            assert digest_bytes(data.read()) == layer.diff_id


def test_equal_images_have_no_difference(maker: SmallImage, layout: Layout) -> None:
    assert first_difference(layout, layout, maker.store) is None
    assert list(differences(layout, layout, maker.store)) == []


def changed_mode(maker: SmallImage) -> Tree:
    entries = maker.tree().by_path()
    entries["srv/app"] = maker.file("srv/app", "hello", mode=0o755)
    return Tree.of(entries.values())


def without_app(maker: SmallImage) -> Tree:
    kept = [entry for entry in maker.tree().entries if entry.path != "srv/app"]
    return Tree.of(kept)


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (lambda maker: maker.tree("hallo"), "srv/app", "content"),
        (changed_mode, "srv/app", "mode"),
        (without_app, "srv/app", "presence"),
    ],
)
def test_the_first_differing_file_is_named(
    maker: SmallImage,
    layout: Layout,
    change: Callable[[SmallImage], Tree],
    where: str,
    what: str,
) -> None:
    other = maker.layout(layout.folder.parent / "other", change(maker))
    found = first_difference(layout, other, maker.store)
    assert found is not None
    assert (found.where, found.what) == (where, what)


def test_a_label_or_another_compression_is_named_too(maker: SmallImage, layout: Layout) -> None:
    folder = layout.folder.parent
    label = maker.layout(folder / "label", maker.tree(), note="y")
    found = first_difference(layout, label, maker.store)
    assert found == Difference("config.config.Labels.io.vega-image.note", "value", '"x"', '"y"')
    packed = maker.layout(folder / "packed", maker.tree(), codec=Codec.GZIP)
    found = first_difference(layout, packed, maker.store)
    assert found is not None
    assert found.where == "layer 0"
    assert "zstd" in found.left
