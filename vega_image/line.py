"""Make a target's Job: which engine makes which step, what to fetch, what it will need."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.digest import PREFIX
from vega_image.engines.base import Engine
from vega_image.engines.choose import Host, opened
from vega_image.engines.fake import FakeEngine
from vega_image.engines.native import NativeEngine
from vega_image.executor import Job, find
from vega_image.fetching import locked_bytes, missing_bytes, supply_of
from vega_image.lock import LockedArchive, LockedGit
from vega_image.plan import Step, StepKind
from vega_image.prepare import Prepared
from vega_image.sources.locked import fetch_sources
from vega_image.store import Store, check_space

# Store bytes per locked byte of a cold build, measured on linux-inference: 478 MB of .debs
# become at most 5 GB of extracted files, slimmed copies, layers and blobs.
SWELL = 11
NEEDS_SOURCES = frozenset({StepKind.ROOT, StepKind.STAGE, StepKind.FINDDB})


@contextmanager
def real_job(call: Call, prepared: Prepared, store: Store) -> Iterator[Job]:
    """Decide everything before work starts; a container engine is opened only for stages.

    Raises EngineError for an absent, old or forbidden engine and for a disk too small, only
    when a step is missing that needs it. As long as it is open nobody cleans the store.
    """
    with store.locked("objects", shared=True, waiting=lambda: _wait(call, store)):
        yield from _real_job(call, prepared, store)


def _real_job(call: Call, prepared: Prepared, store: Store) -> Iterator[Job]:
    missing = [step for step in prepared.plan if find(store, step) is None]
    need = needed_bytes(prepared, store, missing)
    check_space(store, need)
    native = NativeEngine(prepared.target, prepared.lock, prepared.payload)
    if not any(step.kind is StepKind.STAGE for step in missing):
        yield _job(call, prepared, store, lambda _kind: native)
        return
    host = Host(environ=call.settings.environ, store=store.root, log=call.console.say)
    with opened(call.settings.engine, host, need_bytes=need) as outer:
        yield _job(
            call, prepared, store, lambda kind: outer if kind is StepKind.STAGE else native
        )


@contextmanager
def dry_job(call: Call, prepared: Prepared) -> Iterator[Job]:
    """Walk the same line with the fake engine, in a store that goes with it."""
    fake = FakeEngine()
    with tempfile.TemporaryDirectory(prefix="vega-image-dry-") as folder:
        yield _job(call, prepared, Store(Path(folder)), lambda _kind: fake, fetch=_nothing)


def needed_bytes(prepared: Prepared, store: Store, missing: Sequence[Step]) -> int:
    """Bytes of disk that the missing steps may take, downloads included."""
    if not missing:
        return 0
    kinds = {step.kind for step in missing}
    work = SWELL if StepKind.ROOT in kinds else SWELL // 3
    return missing_bytes(prepared.lock, store) + work * locked_bytes(prepared.lock)


def _job(
    call: Call,
    prepared: Prepared,
    store: Store,
    engines: Callable[[StepKind], Engine],
    *,
    fetch: Callable[[Sequence[Step]], None] | None = None,
) -> Job:
    return Job(
        target=prepared.target.name,
        plan=prepared.plan,
        engines=engines,
        files={**prepared.stages, StepKind.ARCHIVE.value: prepared.added},
        objects=_source_objects(prepared),
        store=store,
        epoch=prepared.lock.epoch,
        log_dir=call.settings.logs,
        fetch=fetch or _fetcher(call, prepared, store),
    )


def _source_objects(prepared: Prepared) -> dict[str, dict[str, str]]:
    """Name the locked files in each stage's context: stage -> path -> store digest."""
    locked: dict[str, tuple[str, str]] = {}
    for name, source in prepared.lock.sources.items():
        match source:
            case LockedArchive() if source.sha256:
                locked[name] = (f"sources/{name}", PREFIX + source.sha256)
            case LockedGit() if source.tree_sha256:
                locked[name] = (f"sources/{name}.tar", PREFIX + source.tree_sha256)
            case _:
                continue
    stages = prepared.target.stages
    return {stage.name: dict(locked[name] for name in stage.sources) for stage in stages}


def _fetcher(call: Call, prepared: Prepared, store: Store) -> Callable[[Sequence[Step]], None]:
    def fetch(missing: Sequence[Step]) -> None:
        if not {step.kind for step in missing} & NEEDS_SOURCES:
            return
        with supply_of(call, store, label="fetch") as supply:
            fetch_sources(prepared.lock, supply)

    return fetch


def _wait(call: Call, store: Store) -> None:
    call.console.say(f"waiting: somebody cleans {store.root}")


def _nothing(_missing: Sequence[Step]) -> None:
    return None
