from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vega_image.errors import StageError
from vega_image.rootfs.overlay import apply_layers
from vega_image.rootfs.tree import Content, Entry, Kind, Tree
from vega_image.store import Store

FOLDER = None
Layer = Mapping[str, bytes | str | None]
"""path -> bytes of a file, text of a symlink's target, None for a folder."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def tar_of(layer: Layer, folder: Path) -> Path:
    path = folder / f"{len(list(folder.glob('*.tar')))}.tar"
    with tarfile.open(path, "w") as tar:
        for name, value in layer.items():
            info = tarfile.TarInfo(name)
            info.mode = 0o755 if value is FOLDER else 0o644
            if value is FOLDER:
                info.type = tarfile.DIRTYPE
            elif isinstance(value, str):
                info.type, info.linkname = tarfile.SYMTYPE, value
            else:
                info.size = len(value)
            tar.addfile(info, io.BytesIO(value if isinstance(value, bytes) else b""))
    return path


def laid(parent: Layer, *layers: Layer, store: Store) -> Tree:
    folder = store.tmp
    base = apply_layers(Tree(()), [tar_of(parent, folder)], store=store, owner="base")
    paths = [tar_of(layer, folder) for layer in layers]
    return apply_layers(base, paths, store=store, owner="stage:s")


def files_of(tree: Tree, store: Store) -> dict[str, bytes]:
    found = {}
    for entry in tree.entries:
        if entry.content:
            data = store.path(entry.content.object).read_bytes()
            found[entry.path] = data[entry.content.offset :][: entry.content.size]
    return found


def _stored_files(files: Mapping[str, bytes], store: Store) -> list[Entry]:
    return [
        Entry(
            path=path,
            kind=Kind.FILE,
            mode=0o644,
            content=Content(store.put(data), 0, len(data)),
            owner="base",
        )
        for path, data in files.items()
    ]


def owners(tree: Tree) -> dict[str, str]:
    return {entry.path: entry.owner for entry in tree.entries}


def test_a_new_file_is_the_stages_the_rest_stays(store: Store) -> None:
    tree = laid({"a": b"1", "d": FOLDER}, {"d": FOLDER, "d/b": b"2"}, store=store)
    assert owners(tree) == {"a": "base", "d": "base", "d/b": "stage:s"}
    assert files_of(tree, store) == {"a": b"1", "d/b": b"2"}


def test_a_whiteout_takes_a_file_or_a_folder_away(store: Store) -> None:
    parent: Layer = {
        "a": b"1",
        "d": FOLDER,
        "d/x": b"2",
        "d/y": FOLDER,
        "d/y/z": b"3",
        "dd": b"4",
    }
    assert owners(laid(parent, {".wh.a": b"", ".wh.d": b""}, store=store)) == {"dd": "base"}


def test_an_opaque_folder_hides_what_was_below_but_not_what_comes_with_it(store: Store) -> None:
    layer: Layer = {"d": FOLDER, "d/new": b"n", "d/.wh..wh..opq": b""}
    tree = laid({"d": FOLDER, "d/old": b"o"}, layer, store=store)
    assert owners(tree) == {"d": "base", "d/new": "stage:s"}


def test_a_file_taken_away_can_come_back(store: Store) -> None:
    tree = laid({"a": b"1"}, {".wh.a": b""}, {"a": b"2"}, store=store)
    assert files_of(tree, store) == {"a": b"2"}


def test_a_file_in_place_of_a_folder_takes_what_was_in_it_away(store: Store) -> None:
    tree = laid({"d": FOLDER, "d/x": b"1"}, {"d": b"2"}, store=store)
    assert files_of(tree, store) == {"d": b"2"}


def test_the_same_bytes_stay_the_parents(store: Store) -> None:
    tree = laid({"a": b"same", "b": b"same"}, {"a": b"same", "b": b"diff"}, store=store)
    assert owners(tree) == {"a": "base", "b": "stage:s"}


def test_what_the_engine_mounts_is_left_out_and_the_parents_own_stays(store: Store) -> None:
    ours = Content(store.put(b"ours"), 0, 4)
    parent = Tree.of(
        [
            Entry(path="etc", kind=Kind.DIR, mode=0o755, owner="base"),
            Entry(path="etc/hosts", kind=Kind.FILE, mode=0o644, content=ours, owner="base"),
        ]
    )
    layer: Layer = {
        "dev": FOLDER,
        "dev/console": b"",
        "proc": FOLDER,
        "run": FOLDER,
        "run/.containerenv": b"",
        "run/secrets": FOLDER,
        "etc": FOLDER,
        "etc/hosts": b"",
        "etc/.wh.hosts": b"",
        "etc/mtab": "/proc/mounts",
        ".dockerenv": b"",
    }
    path = tar_of(layer, store.tmp)
    assert apply_layers(parent, [path], store=store, owner="stage:s") == parent


def test_a_folder_a_stage_really_uses_stays(store: Store) -> None:
    tree = laid({}, {"etc": FOLDER, "etc/mine": b"1"}, store=store)
    assert set(owners(tree)) == {"etc", "etc/mine"}


def test_what_tells_of_the_moment_is_left_out_and_said(store: Store) -> None:
    parent = {"var/log/dpkg.log": b"of a package", "etc/machine-id": b"of a package"}
    stage = {"tmp/when": b"now", "run/lock": b"", "var/log/dpkg.log": b"now", "opt/a": b"1"}
    notes: list[str] = []
    tree = apply_layers(
        Tree.of(_stored_files(parent, store)),
        [tar_of(stage, store.tmp)],
        store=store,
        owner="stage:s",
        note=notes.append,
    )
    assert owners(tree) == {"etc/machine-id": "base", "opt/a": "stage:s"}
    assert [line.partition(":")[0] for line in notes] == [
        "run/lock",
        "tmp/when",
        "var/log/dpkg.log",
    ]


def test_a_hard_link_is_a_file_with_the_same_bytes(store: Store) -> None:
    path = tar_of({"a": b"1"}, store.tmp)
    with tarfile.open(path, "a") as tar:
        info = tarfile.TarInfo("b")
        info.type, info.linkname = tarfile.LNKTYPE, "a"
        tar.addfile(info)
    tree = apply_layers(Tree(()), [path], store=store, owner="o")
    assert files_of(tree, store) == {"a": b"1", "b": b"1"}


@pytest.mark.parametrize(
    ("kind", "link"), [(tarfile.LNKTYPE, "../../etc/shadow"), (tarfile.LNKTYPE, "none")]
)
def test_a_hard_link_to_elsewhere_is_refused(store: Store, kind: bytes, link: str) -> None:
    path = store.tmp / "x.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("b")
        info.type, info.linkname = kind, link
        tar.addfile(info)
    with pytest.raises(StageError) as caught:
        apply_layers(Tree(()), [path], store=store, owner="o")
    assert caught.value.code == "HOSTILE_TAR"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_device_nodes_are_refused_except_where_the_engine_makes_them(
    store: Store, kind: bytes
) -> None:
    for name, refused in (("dev/x", False), ("opt/x", True)):
        path = store.tmp / "x.tar"
        with tarfile.open(path, "w") as tar:
            info = tarfile.TarInfo(name)
            info.type = kind
            tar.addfile(info)
        if refused:
            with pytest.raises(StageError, match="opt/x"):
                apply_layers(Tree(()), [path], store=store, owner="o")
        else:
            assert apply_layers(Tree(()), [path], store=store, owner="o") == Tree(())


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\nb"])
def test_a_hostile_name_is_refused(store: Store, name: str) -> None:
    with pytest.raises(StageError) as caught:
        laid({}, {name: b""}, store=store)
    assert caught.value.code == "HOSTILE_TAR"


def test_a_path_through_a_symlink_is_refused(store: Store) -> None:
    with pytest.raises(StageError) as caught:
        laid({"lib": "usr/lib"}, {"lib/x": b"1"}, store=store)
    assert caught.value.code == "HOSTILE_TAR"


def test_setuid_is_dropped_and_said(store: Store) -> None:
    path = store.tmp / "x.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("su")
        info.mode = 0o6755
        tar.addfile(info)
    notes: list[str] = []
    tree = apply_layers(Tree(()), [path], store=store, owner="o", note=notes.append)
    assert tree.entries[0].mode == 0o755
    assert "su: mode 6755" in notes[0]


NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/e", "d/e/f"])
LAYERS = st.lists(st.dictionaries(NAMES, st.binary(max_size=3), max_size=4), max_size=3)


@settings(max_examples=50)
@given(LAYERS)
def test_layers_of_plain_files_end_as_the_last_one_says(layers: list[dict[str, bytes]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name))
        flat = [{k: v for k, v in layer.items() if "/" not in k} for layer in layers]
        expected: dict[str, bytes] = {}
        for layer in flat:
            expected |= layer
        tree = laid({}, *flat, store=store)
        assert files_of(tree, store) == expected
        assert all(entry.kind is Kind.FILE for entry in tree.entries)
        again = laid({}, *flat, store=store)
        assert again == tree, "the same layers give the same objects"
