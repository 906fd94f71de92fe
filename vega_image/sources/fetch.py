"""Locked files into the store: in parallel, resumed, verified, each under its own digest."""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vega_image.digest import PREFIX
from vega_image.errors import BytesError, EngineError
from vega_image.sources.download import RELOCK, Download, StoppedError, Wanted
from vega_image.store import Store

JOBS = 4
FAREWELL_SECONDS = 2.0
WAYS_OUT = (
    "lock again, which makes a new image: vega-image lock TARGET",
    "name an archive that keeps old files: --debian-snapshot BASE",
    "bring the files from a host that has them: vega-image pool import DIR",
)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Finished:
    wanted: Wanted
    error: Exception | None


_Event = int | _Finished


def fetch_files(
    wanted: Iterable[Wanted],
    *,
    store: Store,
    offline: bool,
    progress: Progress,
    log: Callable[[str], None],
) -> None:
    """Put every wanted file into the store; one that is there already costs nothing.

    `progress` hears (bytes here, bytes in all) of what was missing. A killed or interrupted
    fetch leaves partial files in the store's partial/, and the next one goes on with them.
    Two fetches into one store take turns.

    Raises BytesError OFFLINE_MISSING, FILE_GONE (naming all), FETCH_TRUNCATED,
    FETCH_WRONG_DIGEST, FETCH_FAILED, FETCH_REFUSED; EngineError DISK_FULL.
    """
    wanted = list(wanted)
    missing = _missing(wanted, store)
    if not missing:
        return
    if offline:
        raise _offline(missing)
    log(f"fetching {len(missing)} files, {sum(item.size for item in missing) / 1e6:.1f} MB")
    with store.locked("fetch"):
        missing = _missing(wanted, store)
        done = sum(_have(store, item) for item in missing)
        total = sum(item.size for item in missing)
        _check_space(store, total - done)
        progress(done, total)
        gone = _drive(missing, store, lambda count: progress(done + count, total))
    if gone:
        raise _gone(gone)


def _drive(
    missing: Sequence[Wanted], store: Store, hear: Callable[[int], None]
) -> list[Wanted]:
    """Run the workers; return the files that left the mirror, once all others are here."""
    todo: queue.SimpleQueue[Wanted] = queue.SimpleQueue()
    events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
    stop = threading.Event()
    for item in missing:
        todo.put(item)
    workers = [
        threading.Thread(target=_work, args=(todo, events, store, stop), daemon=True)
        for _ in range(min(JOBS, len(missing)))
    ]
    gone: list[Wanted] = []
    gained, left = 0, len(missing)
    try:
        for worker in workers:
            worker.start()
        while left:
            event = events.get()
            if isinstance(event, int):
                gained += event
                hear(gained)
            else:
                left -= 1
                gone += _outcome(event)
    finally:
        stop.set()
        for worker in workers:
            if worker.is_alive():
                worker.join(timeout=FAREWELL_SECONDS)
    return gone


def _work(
    todo: queue.SimpleQueue[Wanted],
    events: queue.SimpleQueue[_Event],
    store: Store,
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        try:
            wanted = todo.get_nowait()
        except queue.Empty:
            return
        partial = _partial(store, wanted)
        try:
            Download(wanted, partial, events.put, stop).run()
            store.adopt(partial, PREFIX + wanted.sha256)
        except StoppedError:
            return
        except Exception as error:  # noqa: BLE001 - it is raised again by the thread that waits
            events.put(_Finished(wanted, error))
        else:
            events.put(_Finished(wanted, None))


def _outcome(event: _Finished) -> list[Wanted]:
    if event.error is None:
        return []
    if isinstance(event.error, BytesError) and event.error.code == "FILE_GONE":
        return [event.wanted]
    raise event.error


def _missing(wanted: Iterable[Wanted], store: Store) -> list[Wanted]:
    """Biggest first: the last one to arrive should not be the longest."""
    unique = {item.sha256: item for item in wanted if not store.has(PREFIX + item.sha256)}
    return sorted(unique.values(), key=lambda item: (-item.size, item.name))


def _partial(store: Store, wanted: Wanted) -> Path:
    return store.partial / f"{wanted.sha256}.part"


def _have(store: Store, wanted: Wanted) -> int:
    path = _partial(store, wanted)
    return min(path.stat().st_size, wanted.size) if path.is_file() else 0


def _check_space(store: Store, needed: int) -> None:
    free = shutil.disk_usage(store.root).free
    if free < needed:
        msg = (
            f"the disk of {store.root} has {free / 1e6:.0f} MB left, {needed / 1e6:.0f} MB are"
            " to be fetched"
        )
        hint = "free some space, or use another disk: --store DIR"
        raise EngineError("DISK_FULL", msg, hint=hint, at=str(store.root))


def _offline(missing: Sequence[Wanted]) -> BytesError:
    names = sorted(item.name for item in missing)
    total = sum(item.size for item in missing) / 1e6
    msg = "\n  ".join([f"{len(names)} files ({total:.1f} MB) are not in the store:", *names])
    hint = "run once without --offline, or: vega-image pool import DIR"
    return BytesError("OFFLINE_MISSING", msg, hint=hint, at=names[0])


def _gone(gone: Sequence[Wanted]) -> BytesError:
    names = sorted(item.name for item in gone)
    lines = [f"{len(names)} locked files have left the mirror:", *(f"  {n}" for n in names)]
    msg = "\n".join([*lines, "ways out:", *(f"  {way}" for way in WAYS_OUT)])
    return BytesError("FILE_GONE", msg, hint=RELOCK, at=names[0])
