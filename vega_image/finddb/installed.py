"""The variables that a root file system sets for whatever runs in it."""

from __future__ import annotations

from collections.abc import Iterator

from vega_image.finddb.assignments import FILES, UNITS, assignments
from vega_image.finddb.effective import Assignment
from vega_image.finddb.roots import Root


def variables_of(root: Root) -> Iterator[Assignment]:
    """Yield what environment files, profile scripts and units set, in their order."""
    for path, ending in FILES:
        own = root.read(path)
        paths = [path] if own is not None else [
            f"{path}/{name}" for name in root.names(path) if name.endswith(ending)
        ]  # fmt: skip
        for one in paths:
            yield from _of_file(root, one)
    for path in _units(root):
        yield from _of_file(root, path)


def _of_file(root: Root, path: str) -> Iterator[Assignment]:
    yield from assignments((root.read(path) or b"").decode("utf-8", "replace"), path)


def _units(root: Root) -> Iterator[str]:
    for name in root.names(UNITS):
        path = f"{UNITS}/{name}"
        if name.endswith(".service"):
            yield path
        elif name.endswith(".d"):
            yield from (f"{path}/{one}" for one in root.names(path) if one.endswith(".conf"))
