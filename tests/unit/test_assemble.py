"""Joining packages: nothing silently wins."""

from __future__ import annotations

import pytest

from vega_image.errors import StageError
from vega_image.rootfs.assemble import assemble, merge
from vega_image.rootfs.tree import Content, Entry, Kind, Tree

BYTES = Content("sha256:" + "0" * 64, 0, 3)


def file(path: str, owner: str = "a") -> Entry:
    return Entry(path=path, kind=Kind.FILE, mode=0o644, content=BYTES, owner=owner)


def folder(path: str, owner: str = "a", mode: int = 0o755) -> Entry:
    return Entry(path=path, kind=Kind.DIR, mode=mode, owner=owner)


def link(path: str, target: str, owner: str = "a") -> Entry:
    return Entry(path=path, kind=Kind.SYMLINK, mode=0o777, target=target, owner=owner)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (file("x"), file("x", "b")),
        (folder("x"), folder("x", "b", mode=0o700)),
        (folder("x"), file("x", "b")),
        (link("x", "y"), link("x", "z", "b")),
        (link("x", "y"), file("x/y", "b")),
        (file("x"), folder("x/y", "b")),
    ],
)
def test_packages_that_disagree_are_both_named(one: Entry, other: Entry) -> None:
    for order in ([one, other], [other, one]):
        with pytest.raises(StageError, match=r"\ba\b.*\bb\b") as caught:
            assemble(order)
        assert caught.value.code == "PACKAGE_CONFLICT"
        assert "x" in caught.value.message


def test_folders_are_shared_and_belong_to_the_first_owner_by_name() -> None:
    for order in ([folder("x", "b"), folder("x")], [folder("x"), folder("x", "b")]):
        assert assemble(order).entries == (folder("x"),)


def test_merge_lets_the_top_win() -> None:
    base = Tree.of([folder("etc"), file("etc/a"), file("etc/b")])
    top = Tree.of([file("etc/a", "top"), folder("etc", "top", mode=0o700)])
    merged = merge(base, top)
    assert [(entry.path, entry.owner) for entry in merged.entries] == [
        ("etc", "top"),
        ("etc/a", "top"),
        ("etc/b", "a"),
    ]


def test_merge_refuses_to_lose_a_folders_content() -> None:
    with pytest.raises(StageError, match="lib/a"):
        merge(Tree.of([folder("lib"), file("lib/a")]), Tree.of([link("lib", "usr/lib")]))
