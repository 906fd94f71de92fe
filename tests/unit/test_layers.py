"""Layers: what goes where, headers any reader understands, bytes that never vary."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.errors import BytesError, StageError
from vega_image.oci.layer import TarLayer, split, write_layers
from vega_image.oci.tarwrite import END, header
from vega_image.rootfs.tarread import TarStream
from vega_image.rootfs.tree import Content, Entry, Kind, Tree
from vega_image.spec import Layer
from vega_image.store import Store

EPOCH = 1764460800
PART = st.text("abcdefgh-._ äß漢", min_size=1, max_size=90).filter(
    lambda p: p not in {".", ".."}
)
PATHS = st.lists(PART, min_size=1, max_size=5).map("/".join)
ENTRIES = st.builds(
    Entry,
    path=PATHS,
    kind=st.sampled_from([Kind.DIR, Kind.SYMLINK]),
    mode=st.integers(0, 0o1777),
    uid=st.integers(0, 2**31),
    gid=st.integers(0, 2**31),
    target=PATHS,
    owner=st.just("p"),
)


def file(path: str, content: Content, owner: str) -> Entry:
    return Entry(path=path, kind=Kind.FILE, mode=0o644, content=content, owner=owner)


def folder(path: str, owner: str, mode: int = 0o755, uid: int = 0) -> Entry:
    return Entry(path=path, kind=Kind.DIR, mode=mode, uid=uid, gid=uid, owner=owner)


def link(path: str, owner: str) -> Entry:
    return Entry(path=path, kind=Kind.SYMLINK, mode=0o777, target="usr/lib", owner=owner)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def tree(store: Store) -> Tree:
    shared = store.put(b"one" + b"two!" * 1000)
    return Tree.of(
        [
            folder("srv", "base", 0o700, 7),
            folder("srv/spool", "base", 0o1777),
            folder("empty", "base"),
            file("srv/spool/one", Content(shared, 0, 3), "base"),
            file("srv/spool/two", Content(shared, 3, 4000), "app"),
            file("usr/nothing", Content(store.put(b""), 0, 0), "app"),
            Entry(
                path="lib", kind=Kind.SYMLINK, mode=0o777, target="usr/lib", owner="vega-image"
            ),
        ]
    )


SPLIT = (
    Layer(name="base", rest=True),
    Layer(name="app", packages=("ap*",)),
    Layer(name="configuration", packages=("vega-image",)),
)


@given(ENTRIES)
def test_headers_say_the_same_to_tarfile_and_to_our_reader(entry: Entry) -> None:
    data = header(entry, mtime=EPOCH) + END
    assert len(data) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        info = tar.getmembers()[0]
    own = next(iter(TarStream(io.BytesIO(data), "x")))
    for found in (info, own):
        assert (found.mode, found.uid, found.gid) == (entry.mode, entry.uid, entry.gid)
        assert found.mtime == EPOCH
    assert info.name == own.path == entry.path
    assert (info.uname, info.gname) == ("", "")
    assert set(info.pax_headers) <= {"path", "linkpath", "uid", "gid"}
    if entry.kind is Kind.SYMLINK:
        assert info.linkname == own.link == entry.target


def test_a_header_is_these_bytes() -> None:
    entry = Entry(
        path="usr", kind=Kind.DIR, mode=0o1755, uid=8, gid=9, target="", owner="whoever"
    )
    block = header(entry, mtime=8)
    numbers = b"0001755\0" + b"0000010\0" + b"0000011\0" + b"00000000000\0" + b"00000000010\0"
    assert block[:148] == b"usr/".ljust(100, b"\0") + numbers
    assert block[156:265].rstrip(b"\0") == b"5".ljust(101, b"\0") + b"ustar\x0000"


def test_names_need_a_pax_header_only_when_ustar_cannot_say_them() -> None:
    def size(path: str) -> int:
        return len(header(folder(path, "p"), mtime=0))

    assert size("a" * 99) == size("d" * 120 + "/" + "a" * 98) == 512
    assert size("a" * 100) == size("ä") == 1536


def test_a_file_of_ten_gigabytes_is_said_in_a_pax_header() -> None:
    big = file("x", Content("", 0, 10 << 30), "p")
    own = next(iter(TarStream(io.BytesIO(header(big, mtime=0)), "x")))
    assert own.size == 10 << 30


def test_each_layer_repeats_the_folders_above_its_entries(tree: Tree) -> None:
    parts = split(tree, SPLIT)
    assert {name: [entry.path for entry in part.entries] for name, part in parts.items()} == {
        "base": ["empty", "srv", "srv/spool", "srv/spool/one"],
        "app": ["srv", "srv/spool", "srv/spool/two", "usr", "usr/nothing"],
        "configuration": ["lib"],
    }
    assert parts["app"].by_path()["srv"] == tree.by_path()["srv"]
    assert parts["app"].by_path()["srv/spool"].mode == 0o1777


def test_another_layers_content_does_not_change_a_layer(tree: Tree, store: Store) -> None:
    more = Tree.of([*tree.entries, file("usr/more", Content(store.put(b"more"), 0, 4), "base")])
    before, after = (written(one, store) for one in (tree, more))
    assert before["app"] == after["app"]
    assert before["base"] != after["base"]


@given(st.lists(st.sampled_from(["a", "b", "vega-image", "libx"]), min_size=1))
def test_split_loses_nothing_and_places_nothing_twice(owners: list[str]) -> None:
    entries = [link(f"d{number}/l", owner) for number, owner in enumerate(owners)]
    layers = (Layer(name="r", rest=True), *(Layer(name=o, packages=(o,)) for o in set(owners)))
    parts = split(Tree.of(entries), layers)
    links = [e for part in parts.values() for e in part.entries if e.kind is Kind.SYMLINK]
    assert sorted(e.path for e in links) == sorted(e.path for e in entries)
    assert all(parts[e.owner].by_path()[e.path.split("/")[0]] for e in links)


def test_an_owner_without_a_layer_is_named(tree: Tree) -> None:
    with pytest.raises(StageError, match="no layer takes base") as caught:
        split(tree, SPLIT[1:])
    assert caught.value.code == "NO_LAYER"


def test_a_layer_that_holds_nothing_is_named(tree: Tree) -> None:
    with pytest.raises(StageError, match="layer rocm") as caught:
        split(tree, (*SPLIT, Layer(name="rocm", packages=("rocm-*",))))
    assert caught.value.code == "EMPTY_LAYER"


def test_tarfile_reads_a_layer(tree: Tree, store: Store) -> None:
    layer = written(tree, store)["app"]
    with tarfile.open(store.path(layer.diff_id)) as tar:
        assert tar.getnames() == ["srv", "srv/spool", "srv/spool/two", "usr", "usr/nothing"]
        two = tar.extractfile("srv/spool/two")
        assert two is not None
        assert two.read() == b"two!" * 1000
        assert {info.mtime for info in tar} == {EPOCH}
        assert tar.getmember("usr").mode == 0o755


def test_umask_zone_locale_and_folder_do_not_show(
    tree: Tree, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(tree, store)
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.chdir(tmp_path)
    old = os.umask(0o077)
    try:
        second = written(tree, store)
    finally:
        os.umask(old)
    assert first == second
    assert first["base"].diff_id == (
        "sha256:83e0a567431884471793f6adfeb7262be715cd1fc54727f0bf37af6135367467"
    )


def test_tampered_content_stops_the_layer(tree: Tree, store: Store) -> None:
    entry = tree.by_path()["srv/spool/one"]
    assert entry.content
    path = store.path(entry.content.object)
    path.chmod(0o644)
    path.write_bytes(b"evil" + path.read_bytes()[4:])
    with pytest.raises(BytesError) as caught:
        written(tree, store)
    assert caught.value.code == "STORE_TAMPERED"


def written(tree: Tree, store: Store) -> dict[str, TarLayer]:
    layers = write_layers(split(tree, SPLIT), store, epoch=EPOCH, progress=lambda *_: None)
    return {layer.name: layer for layer in layers}
