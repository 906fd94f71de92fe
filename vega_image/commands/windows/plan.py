"""vega-image plan of a Windows target: its stages, what each needs, and what is not at hand."""

from __future__ import annotations

from collections.abc import Iterator

from vega_image.clioptions import Call
from vega_image.console import table
from vega_image.digest import Json
from vega_image.lock import LockedFile, LockedGit
from vega_image.units import duration
from vega_image.windows.parts import Job
from vega_image.windows.prepared import PreparedWindows, prepare_windows, windows_lock
from vega_image.windows.spec import Platform, WindowsTarget


def show_windows_plan(call: Call, target: WindowsTarget, *, platform: Platform | None) -> int:
    """Print stages with ids and forecasts, and the sources without a digest."""
    factory = call.factory
    prepared = prepare_windows(
        factory, target, windows_lock(factory, target), platform=platform
    )
    call.console.result(list(_lines(prepared)), _value(prepared))
    return 0


def _value(prepared: PreparedWindows) -> Json:
    job = prepared.job
    return {
        "target": job.target.name,
        "kind": "windows",
        "platform": job.platform.value,
        "lock": job.lock.digest,
        "image": prepared.image,
        "unresolved": list(job.unresolved),
        "stages": [
            {
                "stage": stage.name,
                "strategy": stage.strategy.value if stage.strategy else None,
                "status": stage.status,
                "inputs": stage.inputs,
                "minutes": stage.forecast.minutes.value,
                "disk_gib": stage.forecast.disk_gib.value,
                "memory_gib": stage.forecast.memory_gib.value,
            }
            for stage in prepared.stages
        ],
    }


def _lines(prepared: PreparedWindows) -> Iterator[str]:
    job = prepared.job
    yield f"{job.target.name} for {job.platform}, built in stages on the machine itself"
    cells = [
        (
            stage.name,
            stage.strategy.value if stage.strategy else "-",
            stage.inputs[7:19],
            duration(60 * stage.forecast.minutes.value),
            f"{stage.forecast.disk_gib.value} GiB",
            f"{stage.forecast.memory_gib.value} GiB",
        )
        for stage in prepared.stages
    ]
    yield from table(("STAGE", "STRATEGY", "INPUTS", "AT MOST", "DISK", "MEMORY"), cells)
    together = sum(stage.forecast.minutes.value for stage in prepared.stages)
    yield f"at most {duration(60 * together)} in all; estimates and limits, none was ever run"
    if job.unresolved:
        yield ""
        yield from _unresolved(job)


def _unresolved(job: Job) -> Iterator[str]:
    name = job.target.name
    yield f"no digest yet for {len(job.unresolved)} of {len(job.lock.sources)} sources:"
    yield from table(("SOURCE", "WANTED", "WHO HAS IT"), [_row(job, x) for x in job.unresolved])
    kinds = {job.lock.sources[source].kind for source in job.unresolved}
    if "file" in kinds:
        yield f"next: those files into one folder, vega-image lock {name} --payload DIR"
    if "git" in kinds:
        yield f"next: each commit into images/{name}.yaml, vega-image lock {name}"


def _row(job: Job, name: str) -> tuple[str, str, str]:
    locked = job.lock.sources[name]
    if isinstance(locked, LockedFile):
        payload = {item.name: item for item in job.payload()}[name]
        version = f" {payload.version}" if payload.version else ""
        return name, f"{payload.file}{version}", payload.where
    if isinstance(locked, LockedGit):
        return name, f"a commit of {locked.branch}, in the spec", locked.url
    return name, "its digest", ""
