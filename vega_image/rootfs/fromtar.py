"""A tree out of a whole root's tar, as mmdebstrap or `docker export` writes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vega_image.rootfs.collect import Collector
from vega_image.rootfs.tarread import TarStream
from vega_image.rootfs.tree import Content, Tree
from vega_image.rootfs.volatile import STABLE
from vega_image.store import Store


def tree_of_tar(
    tar: str,
    store: Store,
    *,
    owner: str,
    note: Callable[[str], None] = lambda _line: None,
) -> Tree:
    """Return the tree in the store object `tar`, which keeps the bytes, without volatile files.

    Raises StageError HOSTILE_TAR or BROKEN_TAR naming owner and path, BytesError.
    """
    collector = Collector(what=owner, owner=owner, selection=STABLE, prune=False)
    with store.verify(tar, what=owner).open("rb") as file:
        for member in TarStream(file, owner):
            collector.add(member, partial(Content, tar, member.offset, member.size))
    for line in collector.notes:
        note(line)
    return Tree.of(collector.entries())
