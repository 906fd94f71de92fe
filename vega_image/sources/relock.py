"""`build --relock if-gone`: go on by itself on a mirror that has moved, and say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vega_image.errors import BytesError
from vega_image.lock import Lock
from vega_image.sources.locked import Supply, fetch_sources


@dataclass(frozen=True, slots=True)
class Relocked:
    """A lock and what making it changed, in words; no lines when nothing was made."""

    lock: Lock
    lines: tuple[str, ...] = ()


def fetch_or_relock(lock: Lock, supply: Supply, *, relock: Callable[[], Relocked]) -> Relocked:
    """Fetch what a lock names; if a file has left the mirror, lock again and fetch that.

    Only FILE_GONE leads to a new lock: wrong bytes are never answered by trusting others.
    Raises what fetch_sources and `relock` raise.
    """
    try:
        fetch_sources(lock, supply)
    except BytesError as error:
        if error.code != "FILE_GONE":
            raise
        fresh = relock()
        if fresh.lock.digest == lock.digest:
            raise
        fetch_sources(fresh.lock, supply)
        lost = error.message.partition("\nways out:")[0]
        news = f"this is a new image: it has lock {fresh.lock.digest}, not {lock.digest}"
        return Relocked(fresh.lock, (*lost.splitlines(), *fresh.lines, news))
    return Relocked(lock)
