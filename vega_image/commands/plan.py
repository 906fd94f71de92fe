"""vega-image plan: the steps of a target, which are there, why, and what the rest will cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vega_image.clioptions import Call
from vega_image.console import table
from vega_image.digest import Json
from vega_image.executor import find, names_built, seconds_before
from vega_image.fetching import locked_bytes, missing_bytes
from vega_image.line import needed_bytes
from vega_image.plan import Step, StepKind
from vega_image.prepare import prepare, read_lock
from vega_image.store import Store
from vega_image.units import duration, megabytes
from vega_image.windows.spec import Platform, WindowsTarget, refuse_platform

# Seconds of each kind of step on 2 cores for linux-inference, measured 2026-11-30 by
# benchmarks/build.py: all that can be said before a step was ever built here.
FIRST_BYTES = 478_000_000
FIRST_SECONDS = {
    StepKind.ROOT: 33.0,
    StepKind.SLIM: 3.5,
    StepKind.CENSUS: 0.2,
    StepKind.FINDDB: 12.0,
    StepKind.LAYERS: 2.0,
    StepKind.IMAGE: 77.0,
    StepKind.ARCHIVE: 100.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A step and what is known of it."""

    id: str
    name: str
    state: str
    why: str
    seconds: float | None


def plan_rows(plan: Sequence[Step], store: Store, *, locked: int) -> list[Row]:
    """Say of each step whether the store holds it, and why not if not.

    `locked` is the size of the locked files in bytes: a first build's time follows from it.
    """
    rows: list[Row] = []
    broken: str | None = None
    built = names_built(store)
    for step in plan:
        hit = find(store, step) is not None
        why = "in the store" if hit else _why(step, broken, built)
        rows.append(
            Row(
                id=step.id,
                name=step.name,
                state="hit" if hit else "miss",
                why=why,
                seconds=None if hit else _forecast_of(step, store, locked),
            )
        )
        broken = broken or (None if hit else step.name)
    return rows


def show_plan(call: Call, name: str, *, platform: str | None = None) -> int:
    """Print the plan; nothing is fetched or built."""
    factory = call.factory
    asked = factory.spec(name)
    if isinstance(asked, WindowsTarget):
        from vega_image.commands.windows.plan import show_windows_plan  # noqa: PLC0415

        return show_windows_plan(call, asked, platform=Platform(platform) if platform else None)
    refuse_platform(name, platform)
    store = call.store
    target = factory.target(name)
    prepared = prepare(factory, target, read_lock(factory, target))
    rows = plan_rows(prepared.plan, store, locked=locked_bytes(prepared.lock))
    fetch = missing_bytes(prepared.lock, store) if any(r.state == "miss" for r in rows) else 0
    value: Json = {
        "target": target.name,
        "lock": prepared.lock.digest,
        "fetch_bytes": fetch,
        "steps": [
            {"id": r.id, "name": r.name, "state": r.state, "why": r.why, "seconds": r.seconds}
            for r in rows
        ],
    }
    lines = [*_tree(target.name, rows), *_forecast(rows)]
    if any(row.state == "miss" for row in rows):
        missing = [step for step in prepared.plan if find(store, step) is None]
        need = needed_bytes(prepared, store, missing)
        lines.append(f"to fetch: {megabytes(fetch)}; disk: up to {megabytes(need)}")
    call.console.result(lines, value)
    return 0


def _forecast_of(step: Step, store: Store, locked: int) -> float | None:
    before = seconds_before(store, step.name)
    if before is not None or step.kind is StepKind.STAGE:
        return before
    return FIRST_SECONDS[step.kind] * locked / FIRST_BYTES


def _why(step: Step, broken: str | None, built: frozenset[str]) -> str:
    if broken:
        return f"after {broken}"
    if step.name in built:
        return "its inputs, options or code changed since it was built"
    return "never built here"


def _tree(target: str, rows: Sequence[Row]) -> list[str]:
    cells = [
        (f"{'  ' * depth}{row.name}", row.state, row.id[7:19], _time(row), row.why)
        for depth, row in enumerate(rows)
    ]
    return [target, *table(("STEP", "STATE", "ID", "TIME", "WHY"), cells)]


def _time(row: Row) -> str:
    """Say what a missing step took the last time; a step in the store takes none."""
    if row.state == "hit":
        return "-"
    return "?" if row.seconds is None else duration(row.seconds)


def _forecast(rows: Sequence[Row]) -> list[str]:
    missing = [row for row in rows if row.state == "miss"]
    if not missing:
        return ["nothing to do"]
    known = [row.seconds for row in missing if row.seconds is not None]
    time = f"about {duration(sum(known))}" if len(known) == len(missing) else "time unknown"
    return [f"to build: {len(missing)} of {len(rows)} steps, {time}"]
