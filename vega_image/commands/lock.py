"""`vega-image lock TARGET`: resolve the sources of a spec and write the lock beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vega_image.errors import LockError
from vega_image.lock import Lock
from vega_image.lockdiff import describe_change
from vega_image.lockfile import decode_lock, encode_lock, seal
from vega_image.sources.locked import Supply, resolve_sources
from vega_image.sources.relock import Relocked
from vega_image.spec import Target
from vega_image.store import disk_errors, write_atomic


def lock_target(
    target: Target, *, path: Path, supply: Supply, tools: Mapping[str, str]
) -> Relocked:
    """Write a new lock to `path`, whole or not at all, and say what it changes.

    `tools` are the versions that decide bytes. The old lock may be missing, stale or damaged.
    Raises what resolve_sources raises, UsageError NO_EPOCH, EngineError DISK_FULL.
    """
    old, note = _before(path)
    new = seal(target, resolve_sources(target, supply), tools=tools)
    with disk_errors(path):
        write_atomic(path, encode_lock(new))
    return Relocked(new, (*note, *describe_change(old, new)))


def _before(path: Path) -> tuple[Lock | None, tuple[str, ...]]:
    try:
        return decode_lock(path.read_bytes(), at=path.name), ()
    except FileNotFoundError:
        return None, ()
    except LockError as error:
        return None, (f"{error.message}; made anew",)
