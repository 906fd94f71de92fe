"""A store for a rebuild: it holds what was fetched and nothing that was ever built."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vega_image.fetching import locked_digests
from vega_image.lock import Lock
from vega_image.store import Store, disk_errors


@contextmanager
def empty_store(store: Store, lock: Lock) -> Iterator[Store]:
    """Open a store that holds the locked files already fetched, and nothing ever built."""
    with disk_errors(store.tmp):
        folder = Path(tempfile.mkdtemp(dir=store.tmp, prefix="reproduce-"))
    try:
        fresh = Store(folder)
        for digest in locked_digests(lock):
            if store.has(digest):
                target = fresh.path(digest)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(store.path(digest), target)
        yield fresh
    finally:
        shutil.rmtree(folder, ignore_errors=True)
