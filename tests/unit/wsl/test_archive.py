"""The archive: the same bytes from the same tree, read back, refused when damaged."""

from __future__ import annotations

import gzip
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factory import lock
from tests.wslfactory import added, wsl_target
from vega_image.errors import StageError, VegaError
from vega_image.lock import Lock
from vega_image.lockfile import encode_lock, seal
from vega_image.oci.compress import tool_versions
from vega_image.rootfs.generated import Provenance, placed
from vega_image.rootfs.tree import Entry, Kind, Tree
from vega_image.spec import Codec
from vega_image.store import Store
from vega_image.wsl import places
from vega_image.wsl.archive import Archive, archive_tree, write_archive
from vega_image.wsl.reading import list_archive, refuse_broken, small_files
from vega_image.wsl.rebuilding import difference, inside

EPOCH = 1764460800


def sealed() -> Lock:
    """The lock of the fixture, with the library that decides these bytes."""
    return seal(wsl_target(), lock(wsl_target()).sources, tools=tool_versions(Codec.GZIP))


def tree_of(store: Store) -> Tree:
    root = Tree.of(
        [
            Entry(path="etc", kind=Kind.DIR, mode=0o755, owner="a"),
            Entry(path="tmp", kind=Kind.DIR, mode=0o1777, owner="a"),
            *placed({"usr/bin/prögram": b"x" * 1000, "usr/empty": b""}.items(), store),
        ]
    )
    provenance = Provenance(target=wsl_target(), lock=encode_lock(sealed()))
    return archive_tree(root, provenance, added(), store)


def written(folder: Path, tree: Tree | None = None) -> tuple[Path, Archive]:
    store = Store(folder)
    made = write_archive(
        tree or tree_of(store), store, level=6, epoch=EPOCH, progress=lambda *_: None
    )
    return store.path(made.digest), made


def test_the_same_tree_gives_the_same_bytes_anywhere(tmp_path: Path) -> None:
    _path, first = written(tmp_path / "one")
    old = os.umask(0o077)
    try:
        _path, second = written(tmp_path / "an other")
    finally:
        os.umask(old)
    assert first == second
    assert Archive.from_json(first.to_json()) == first


def test_python_and_tar_read_what_was_written(tmp_path: Path) -> None:
    path, made = written(tmp_path)
    plain = gzip.decompress(path.read_bytes())
    assert len(plain) == made.uncompressed
    assert path.stat().st_size == made.size
    with tarfile.open(path) as tar:
        members = tar.getmembers()
        assert [m.name for m in members] == sorted(m.name for m in members)
        assert {(m.uname, m.gname, m.mtime) for m in members} == {("", "", EPOCH)}
        oobe = tar.getmember(places.OOBE)
        assert (oobe.mode, oobe.isfile()) == (0o755, True)
        mask = tar.getmember(f"{places.MASKS}/tmp.mount")
        assert (mask.linkname, mask.issym()) == ("/dev/null", True)
        assert tar.getmember(places.STATE).isdir()
    subprocess.run(["tar", "-tzf", path], check=True, stdout=subprocess.DEVNULL)


def test_it_is_read_back_with_spec_and_lock(tmp_path: Path) -> None:
    path, _made = written(tmp_path)
    listing = list_archive(path)
    files = small_files(listing)
    assert files[places.DISTRIBUTION] == added()[places.DISTRIBUTION]
    assert "usr/bin/prögram" in listing.by_path()
    assert "usr/bin/prögram" not in files
    assert inside(path) == (wsl_target(), sealed())


def test_an_archive_that_breaks_a_rule_is_refused_by_the_build(tmp_path: Path) -> None:
    path, _made = written(tmp_path)
    with pytest.raises(StageError) as caught:
        refuse_broken(path, epoch=EPOCH, name="tiny")
    assert (caught.value.exit_code, caught.value.code) == (6, "WSL_ARCHIVE_REFUSED")
    assert "bin/sh: wsl-root: no shell there" in caught.value.message


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-9],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"x",
        lambda data: data + data,
        lambda data: b"\x28\xb5\x2f\xfd" + data[4:],
        lambda data: data[:-8] + bytes(8),
        lambda _data: b"",
    ],
)
def test_damage_is_an_error_never_a_shorter_archive(tmp_path: Path, damage: object) -> None:
    path, _made = written(tmp_path / "store")
    assert callable(damage)
    bad = tmp_path / "bad.wsl"
    bad.write_bytes(damage(path.read_bytes()))
    with pytest.raises(VegaError) as caught:
        list_archive(bad)
    assert caught.value.code in {"NOT_AN_ARCHIVE", "BROKEN_TAR"}


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_refused_without_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.wsl"
    for content in (data, gzip.compress(data)):
        path.write_bytes(content)
        with pytest.raises(VegaError):
            list_archive(path)


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tree = tree_of(store)
    one, _made = written(tmp_path, tree)
    entries = tree.by_path()
    [other] = placed([("usr/empty", b"no more")], store)
    two, _made = written(tmp_path, Tree.of((entries | {"usr/empty": other}).values()))
    where, what = difference(one, two)
    assert where == "usr/empty"
    assert "became" in what
    less = {path: e for path, e in entries.items() if path != "tmp"}
    three, _made = written(tmp_path, Tree.of(less.values()))
    assert difference(one, three)[0] == "tmp"
