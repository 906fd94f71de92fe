"""OCI layouts: written whole, replaced safely, read with suspicion."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import factory
from tests.smallimage import SmallImage
from vega_image.digest import digest_bytes
from vega_image.errors import BytesError, UsageError, VegaError
from vega_image.oci.documents import Manifest, decode
from vega_image.oci.image import labels_of
from vega_image.oci.layout import Layout, export_layout, read_layout, write_layout
from vega_image.store import Store


@pytest.fixture
def maker(tmp_path: Path) -> SmallImage:
    return SmallImage(Store(tmp_path / "store"))


@pytest.fixture
def layout(maker: SmallImage, tmp_path: Path) -> Layout:
    return maker.layout(tmp_path / "images" / "small", maker.tree())


def blob(layout: Layout, digest: str) -> Path:
    """A blob's path, cut loose from the store so that a test may spoil it."""
    path = layout.blob(digest)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    return path


def test_a_layout_says_what_is_in_it(layout: Layout) -> None:
    assert [layer.name for layer in layout.layers] == ["base", "app"]
    assert layout.labels == layout.annotations == {"io.vega-image.note": "x"}
    assert layout.tag == "1"
    assert layout.digest == digest_bytes(layout.blob(layout.digest).read_bytes())
    config = json.loads(layout.config)
    assert config["created"] == "2025-11-30T00:00:00Z"
    assert config["config"]["User"] == "10001:10001"
    sizes = [layer.uncompressed for layer in layout.layers]
    assert layout.uncompressed_bytes == sum(size or 0 for size in sizes) > 0


def test_the_layout_of_the_same_tree_is_the_same_bytes(layout: Layout, tmp_path: Path) -> None:
    again = SmallImage(Store(tmp_path / "other"))
    other = again.layout(tmp_path / "elsewhere", again.tree())
    for name in ("index.json", "oci-layout"):
        assert (other.folder / name).read_bytes() == (layout.folder / name).read_bytes()
    assert other.digest == layout.digest


def test_blobs_share_the_stores_bytes_and_an_export_does_not(
    maker: SmallImage, layout: Layout, tmp_path: Path
) -> None:
    digest = layout.layers[0].digest
    assert layout.blob(digest).samefile(maker.store.path(digest))
    out = export_layout(layout, tmp_path / "out" / "layout")
    assert out.digest == layout.digest
    assert not out.blob(digest).samefile(maker.store.path(digest))


def test_a_layout_is_replaced_whole_and_leaves_nothing_beside_it(
    maker: SmallImage, layout: Layout
) -> None:
    new = maker.layout(layout.folder, maker.tree("changed"))
    assert new.digest != layout.digest
    assert [path.name for path in layout.folder.parent.iterdir()] == ["small"]
    assert len(list((layout.folder / "blobs/sha256").iterdir())) == 4


def test_a_folder_of_something_else_is_not_replaced(maker: SmallImage, tmp_path: Path) -> None:
    precious = tmp_path / "home" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("years")
    with pytest.raises(UsageError) as caught:
        maker.layout(precious.parent, maker.tree())
    assert caught.value.code == "FOLDER_IN_USE"
    assert precious.read_text() == "years"


def test_a_damaged_layout_is_written_again(maker: SmallImage, layout: Layout) -> None:
    blob(layout, layout.layers[0].digest).write_bytes(b"damaged")
    again = write_layout(
        layout.folder, maker.store, manifest=layout.digest, name="small", tag="1"
    )
    assert read_layout(again.folder).digest == layout.digest


def test_a_tampered_store_object_is_not_laid_out(
    maker: SmallImage, layout: Layout, tmp_path: Path
) -> None:
    path = maker.store.path(layout.layers[0].digest)
    path.chmod(0o644)
    path.write_bytes(b"evil")
    with pytest.raises(BytesError) as caught:
        write_layout(
            tmp_path / "new", maker.store, manifest=layout.digest, name="small", tag="1"
        )
    assert caught.value.code == "STORE_TAMPERED"
    assert not (tmp_path / "new").exists()


def spoil_layer(layout: Layout) -> None:
    path = blob(layout, layout.layers[0].digest)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def cut_layer(layout: Layout) -> None:
    path = blob(layout, layout.layers[0].digest)
    path.write_bytes(path.read_bytes()[:-1])


def remove_layer(layout: Layout) -> None:
    layout.blob(layout.layers[0].digest).unlink()


def link_layer(layout: Layout) -> None:
    path = layout.blob(layout.layers[0].digest)
    path.rename(layout.folder / "moved")
    path.symlink_to(layout.folder / "moved")


def pipe_layer(layout: Layout) -> None:
    path = layout.blob(layout.layers[0].digest)
    path.unlink()
    os.mkfifo(path)


def edit_index(change: Callable[[Any], None]) -> Callable[[Layout], None]:
    def spoil(layout: Layout) -> None:
        path = layout.folder / "index.json"
        index = json.loads(path.read_bytes())
        change(index)
        path.write_text(json.dumps(index))

    return spoil


def climb(index: Any) -> None:
    index["manifests"][0]["digest"] = "sha256:../../../../etc/passwd"


def other_size(index: Any) -> None:
    index["manifests"][0]["size"] += 1


def huge(index: Any) -> None:
    index["manifests"][0]["size"] = 1 << 40


def no_digest(index: Any) -> None:
    del index["manifests"][0]["digest"]


def nested(index: Any) -> None:
    index["manifests"][0]["mediaType"] = "application/vnd.oci.image.index.v1+json"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (spoil_layer, "BLOB_DIFFERS"),
        (cut_layer, "BLOB_DIFFERS"),
        (remove_layer, "BLOB_GONE"),
        (link_layer, "BLOB_GONE"),
        (pipe_layer, "BLOB_GONE"),
        (edit_index(climb), "LAYOUT_DAMAGED"),
        (edit_index(other_size), "BLOB_DIFFERS"),
        (edit_index(huge), "LAYOUT_DAMAGED"),
        (edit_index(no_digest), "LAYOUT_DAMAGED"),
        (edit_index(nested), "LAYOUT_DAMAGED"),
        (lambda layout: (layout.folder / "index.json").write_text("{"), "LAYOUT_DAMAGED"),
        (lambda layout: (layout.folder / "index.json").unlink(), "BLOB_GONE"),
        (lambda layout: (layout.folder / "oci-layout").unlink(), "NOT_A_LAYOUT"),
        (lambda layout: (layout.folder / "oci-layout").write_text("[]"), "NOT_A_LAYOUT"),
    ],
)
def test_a_spoilt_layout_is_refused_with_its_own_code(
    layout: Layout, spoil: Callable[[Layout], object], code: str
) -> None:
    assert read_layout(layout.folder).digest == layout.digest
    spoil(layout)
    with pytest.raises(BytesError) as caught:
        read_layout(layout.folder)
    assert caught.value.code == code


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_for_a_manifest_are_decoded_or_refused(data: bytes) -> None:
    try:
        decode(Manifest, data, at="x")
    except VegaError as error:
        assert error.code == "LAYOUT_DAMAGED"  # noqa: PT017 - both outcomes are right


def test_a_tag_that_is_not_there_is_named(layout: Layout) -> None:
    assert read_layout(layout.folder, tag="1").digest == layout.digest
    with pytest.raises(UsageError, match="its tags: 1"):
        read_layout(layout.folder, tag="2")


def test_labels_say_what_was_built_and_cannot_be_replaced() -> None:
    spec = factory.target(
        factory.SPEC.replace("io.vega-image.note: plain", "io.vega-image.gpu.arch: gfx1100")
    )
    labels = labels_of(spec, factory.lock(spec))
    assert labels["io.vega-image.gpu.arch"] == "gfx906"
    assert labels["org.opencontainers.image.created"] == "2025-11-30T00:00:00Z"
    assert labels["io.vega-image.lock.digest"] == factory.lock(spec).digest
