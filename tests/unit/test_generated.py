"""What vega-image itself puts into an image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import factory
from vega_image.errors import UsageError
from vega_image.lockfile import encode_lock
from vega_image.rootfs.content import Contents
from vega_image.rootfs.generated import Provenance, generated
from vega_image.rootfs.tree import Kind, Tree
from vega_image.spec import RootMethod, Target, User
from vega_image.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def spec(**root: object) -> Target:
    old = factory.target()
    return old.model_copy(update={"root": old.root.model_copy(update=root)})


def made(store: Store, target: Target) -> Tree:
    lock = factory.lock(factory.target())
    return generated(Provenance(target=target, lock=encode_lock(lock)), store)


def text(store: Store, tree: Tree, path: str) -> str:
    content = tree.by_path()[path].content
    assert content is not None
    return bytes(Contents(store).view(content)).decode()


def test_an_extracted_root_gets_folders_links_users_and_records(store: Store) -> None:
    tree = made(store, spec(files={"etc/motd": "hello\n"}))
    files = tree.by_path()
    assert (files["bin"].kind, files["bin"].target) == (Kind.SYMLINK, "usr/bin")
    assert files["tmp"].mode == files["var/tmp"].mode == 0o1777
    assert text(store, tree, "etc/motd") == "hello\n"
    assert text(store, tree, "etc/passwd") == (
        "root:*:0:0::/root:/usr/sbin/nologin\n"
        "vega:*:10001:10001::/tmp:/usr/sbin/nologin\n"
        "nobody:*:65534:65534::/nonexistent:/usr/sbin/nologin\n"
    )
    assert text(store, tree, "etc/group") == "root:*:0:\nvega:*:10001:\nnobody:*:65534:\n"
    assert {entry.owner for entry in tree.entries} == {"vega-image"}
    assert not any("shadow" in path for path in files)


def test_the_lock_is_carried_byte_for_byte(store: Store) -> None:
    tree = made(store, spec())
    lock = encode_lock(factory.lock(factory.target()))
    assert text(store, tree, "usr/share/vega-image/lock.json").encode() == lock


def test_omitted_packages_are_listed_with_the_reason(store: Store) -> None:
    tree = made(store, spec(omit={"hello": "nobody greets"}))
    rows = json.loads(text(store, tree, "usr/share/vega-image/packages.json"))["packages"]
    states = {row["package"]: (row["state"], row.get("why")) for row in rows}
    assert states == {
        "base-files": ("present", None),
        "hello": ("omitted", "nobody greets"),
    }


def test_a_home_of_its_own_is_made_for_a_user(store: Store) -> None:
    tree = made(store, spec(users=(User(name="desk", uid=1000, home="/home/desk"),)))
    home = tree.by_path()["home/desk"]
    assert (home.kind, home.mode, home.uid, home.gid) == (Kind.DIR, 0o750, 1000, 1000)


def test_an_installed_root_keeps_its_own_users_and_folders(store: Store) -> None:
    tree = made(store, spec(method=RootMethod.INSTALL))
    assert sorted(tree.by_path()) == [
        "bin",
        "usr/share/vega-image/lock.json",
        "usr/share/vega-image/packages.json",
        "usr/share/vega-image/target.json",
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"files": {"usr/share/vega-image/lock.json": "forged"}}, "GENERATED_TWICE"),
        ({"links": {"etc": "usr/etc"}}, "GENERATED_TWICE"),
        ({"links": {"x": "y"}, "files": {"x/z": ""}}, "GENERATED_TWICE"),
        ({"users": (User(name="a", uid=5, home="/../x"),)}, "BAD_HOME"),
    ],
)
def test_contradictions_are_refused(store: Store, change: dict[str, object], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(store, spec(**change))
    assert caught.value.code == code


def test_texts_do_not_depend_on_the_order_of_the_spec(store: Store) -> None:
    files = {"etc/a": "1", "etc/b": "2"}
    backwards = dict(reversed(files.items()))
    one = made(store, spec(files=files)).by_path()
    other = made(store, spec(files=backwards)).by_path()
    assert one == other
