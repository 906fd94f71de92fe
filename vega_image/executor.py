"""The loop: fetch what is missing, find or build each step, record what was made.

It owns the clock, the scratch folder and the step logs. It does not know what a step does:
each kind has an engine, and `--dry-run` is this same loop with the fake one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vega_image.digest import hex_of
from vega_image.engines.base import Artifact, Engine, Work
from vega_image.plan import Step, StepKind
from vega_image.records import STEPS, StepRecord, recall, remember, step_records
from vega_image.store import Store, disk_errors


class Listener(Protocol):
    """Hears how the build goes; the console is one."""

    def step_started(self, step: Step, index: int, count: int) -> None:
        """Hear that a step is being built."""

    def step_done(self, step: Step, *, cached: bool, seconds: float) -> None:
        """Hear that a step's artifact is there."""

    def progress(self, label: str, done: int, total: int) -> None:
        """Hear how far the current work is, in bytes or items."""

    def say(self, text: str) -> None:
        """Hear what a person should know meanwhile."""

    def line(self, text: str) -> None:
        """Hear one line of a stage's output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A step and what it gave."""

    step: Step
    artifact: Artifact
    cached: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything one build needs, decided before it starts."""

    target: str
    plan: Sequence[Step]
    engines: Callable[[StepKind], Engine]
    files: Mapping[str, Mapping[str, bytes]]
    objects: Mapping[str, Mapping[str, str]]
    store: Store
    epoch: int
    log_dir: Path
    fetch: Callable[[Sequence[Step]], None]


def execute(job: Job, listener: Listener, *, until: str | None = None) -> list[Done]:
    """Build the steps that the store does not hold, in order.

    Two builds of one target on one store take turns: the second finds what the first made.
    """
    results: list[Done] = []
    busy = f"waiting: another build of {job.target} is at work"
    with job.store.locked(f"build-{job.target}", waiting=lambda: listener.say(busy)):
        missing = [step for step in job.plan if find(job.store, step) is None]
        first = next((i for i, s in enumerate(job.plan) if s in missing), len(job.plan))
        job.fetch(job.plan[first:])
        for index, step in enumerate(job.plan):
            results.append(_one(job, listener, results[-1] if results else None, index))
            if step.name == until:
                break
    return results


def _one(job: Job, listener: Listener, before: Done | None, index: int) -> Done:
    step = job.plan[index]
    found = find(job.store, step)
    if found:
        listener.step_done(step, cached=True, seconds=0.0)
        return Done(step=step, artifact=found, cached=True, seconds=0.0)
    listener.step_started(step, index, len(job.plan))
    began = time.monotonic()
    if before is not None and before.cached:
        _check(job.store, before)
    log_path = job.log_dir / f"{job.target}-{step.name}.log"
    with _scratch(job.store) as scratch, _log(log_path, listener) as log:
        work = Work(
            store=job.store,
            parent=before.artifact if before else None,
            files=job.files.get(step.name, {}),
            objects=job.objects.get(step.name, {}),
            scratch=scratch,
            epoch=job.epoch,
            log=log,
            log_path=log_path,
            progress=lambda done, total: listener.progress(step.name, done, total),
        )
        with disk_errors(job.store.root):
            artifact = job.engines(step.kind).build(step, work)
    seconds = time.monotonic() - began
    record(job, step, artifact, seconds=seconds)
    listener.step_done(step, cached=False, seconds=seconds)
    return Done(step=step, artifact=artifact, cached=False, seconds=seconds)


def _check(store: Store, before: Done) -> None:
    """Re-hash what an earlier run made: a step must not work on bytes that changed since.

    Raises BytesError STORE_TAMPERED or OBJECT_GONE.
    """
    what = f"what {before.step.name} made"
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="check") as pool:
        list(pool.map(lambda name: store.verify(name, what=what), before.artifact.needs))


def find(store: Store, step: Step) -> Artifact | None:
    """Return the artifact of a step built before, if it is still in the store."""
    row = recall(store, STEPS, hex_of(step.id), StepRecord)
    if row is None or not all(map(store.has, row.objects())):
        return None
    return Artifact(step=step.id, digest=row.digest, media_type=row.media_type, needs=row.needs)


def record(job: Job, step: Step, artifact: Artifact, *, seconds: float) -> None:
    """Remember a finished step: an atomic write, the last act of building it."""
    row = StepRecord(
        target=job.target,
        name=step.name,
        kind=step.kind.value,
        digest=artifact.digest,
        media_type=artifact.media_type,
        needs=artifact.needs,
        seconds=round(seconds, 3),
    )
    remember(job.store, STEPS, hex_of(step.id), row)


def seconds_before(store: Store, name: str) -> float | None:
    """How long a step of this name took at most when it was built here, in seconds."""
    rows = step_records(store).values()
    return max((row.seconds for row in rows if row.name == name), default=None)


def names_built(store: Store) -> frozenset[str]:
    """Names of the steps that were ever built in this store."""
    return frozenset(row.name for row in step_records(store).values())


@contextmanager
def _scratch(store: Store) -> Iterator[Path]:
    with disk_errors(store.tmp):
        path = Path(tempfile.mkdtemp(dir=store.tmp, prefix="step-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _log(path: Path, listener: Listener) -> Iterator[Callable[[str], None]]:
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("w", encoding="utf-8")

    def write(text: str) -> None:
        with disk_errors(path):
            handle.write(text + "\n")
            handle.flush()
        listener.line(text)

    with handle:
        yield write
