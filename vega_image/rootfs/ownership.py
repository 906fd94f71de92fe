"""Give each file of an installed root to the package whose dpkg list names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from vega_image.rootfs.content import Contents
from vega_image.rootfs.selection import canonical
from vega_image.rootfs.tree import Entry, Kind, Tree
from vega_image.store import Store

_INFO: Final = "var/lib/dpkg/info"


def with_owners(tree: Tree, store: Store) -> Tree:
    """Return the tree with owners from `var/lib/dpkg/info/*.list`.

    A path that several packages list (a folder) goes to the first by name; one that none
    lists keeps its owner.
    """
    links = {entry.path: entry.target for entry in tree.entries if _is_alias(entry)}
    owners: dict[str, str] = {}
    for package, path in sorted(_listed(tree, Contents(store))):
        owners.setdefault(canonical(path, links), package)
    return Tree(
        tuple(
            replace(entry, owner=owners.get(entry.path, entry.owner)) for entry in tree.entries
        )
    )


def _is_alias(entry: Entry) -> bool:
    """Whether it is one of merged /usr's links, at the top of the root."""
    return entry.kind is Kind.SYMLINK and "/" not in entry.path


def _listed(tree: Tree, contents: Contents) -> Iterator[tuple[str, str]]:
    for path, entry in _lists(tree).items():
        assert entry.content is not None
        package = PurePosixPath(path).stem.partition(":")[0]
        text = bytes(contents.view(entry.content)).decode(errors="replace")
        for line in text.splitlines():
            yield package, line.lstrip("/")


def _lists(tree: Tree) -> Mapping[str, Entry]:
    return {
        entry.path: entry
        for entry in tree.entries
        if entry.path.startswith(_INFO) and entry.path.endswith(".list") and entry.content
    }
