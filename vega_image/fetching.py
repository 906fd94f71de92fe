"""From a call's settings to locked files in the store: what lock, build and pool share."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.digest import PREFIX
from vega_image.lock import Lock, LockedArchive, LockedDebian, LockedGit
from vega_image.sources.locked import Supply
from vega_image.sources.origin import Origin
from vega_image.store import Store, disk_errors


@contextmanager
def supply_of(
    call: Call, store: Store, *, label: str, log: Callable[[str], None] | None = None
) -> Iterator[Supply]:
    """Open what resolving and fetching work with; the scratch folder goes with it.

    `log` takes the lines of the tools behind it; by default the user sees them.
    """
    settings = call.settings
    with disk_errors(store.tmp):
        scratch = tempfile.TemporaryDirectory(dir=store.tmp, prefix="supply-")
    with scratch as folder:
        yield Supply(
            origin=Origin(
                mirror=settings.mirror, keyring=settings.keyring, snapshots=settings.snapshots
            ),
            store=store,
            scratch=Path(folder),
            now=int(time.time()),
            log=log or call.console.say,
            progress=lambda done, total: call.console.progress(label, done, total),
            offline=settings.offline,
        )


def locked_digests(lock: Lock) -> Iterator[str]:
    """Every store object a lock names."""
    for _name, digest, _size in _locked(lock):
        yield digest


def missing_bytes(lock: Lock, store: Store) -> int:
    """How many bytes of a lock are not in the store yet."""
    return sum(size for _name, digest, size in _locked(lock) if not store.has(digest))


def locked_bytes(lock: Lock) -> int:
    """How many bytes a lock names."""
    return sum(size for _name, _digest, size in _locked(lock))


def _locked(lock: Lock) -> Iterator[tuple[str, str, int]]:
    for name, source in lock.sources.items():
        match source:
            case LockedDebian():
                for file in source.packages:
                    yield file.package, PREFIX + file.sha256, file.size
            case LockedArchive() if source.sha256:
                yield name, PREFIX + source.sha256, source.size or 0
            case LockedGit() if source.tree_sha256:
                yield name, PREFIX + source.tree_sha256, source.size or 0
            case _:
                continue
