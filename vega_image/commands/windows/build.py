"""vega-image build of a Windows target: tree, checks, plan; then packer, where all is at hand.

Without a medium or a hypervisor it does all the rest, says what is missing, and ends with 5.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vega_image.clioptions import Call
from vega_image.commands.windows.check import FIRST, examine, refuse_findings
from vega_image.commands.windows.given import (
    KEY,
    Given,
    driver_digests,
    given_secrets,
    medium,
    public_key,
    settings,
    verify_given,
)
from vega_image.commands.windows.placing import place
from vega_image.commands.windows.render import unresolved_lines
from vega_image.commands.windows.tree import write_tree
from vega_image.commands.windows.waiting import Missing, missing, unchecked
from vega_image.digest import Json, digest
from vega_image.engines.packer import Packer
from vega_image.engines.packerbuild import Boot, PackerResult, boot
from vega_image.errors import EngineError, LockError, UsageError
from vega_image.prepare import refuse_unproven
from vega_image.records import MACHINES
from vega_image.store import disk_errors
from vega_image.units import duration
from vega_image.windows.prepared import PreparedWindows, prepare_windows, windows_lock
from vega_image.windows.spec import Platform, WindowsTarget

STEPS: Final = ("render", "check", "image")
TREE: Final = "tree"
LOG: Final = "packer.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsBuild:
    """What `build` was asked to do with a Windows target; `folder` None: below the store."""

    given: Given
    until: str | None = None
    folder: Path | None = None
    dry_run: bool = False
    accept_unproven: bool = False


@dataclass(slots=True)
class _Report:
    """What has been done so far, for the answer."""

    prepared: PreparedWindows
    folder: Path
    steps: list[Json]
    began: float

    @property
    def tree(self) -> Path:
        return self.folder / TREE

    def did(self, name: str, began: float, *, cached: bool = False) -> None:
        """Note a step that ended."""
        seconds = round(time.monotonic() - began, 3)
        state = "cached" if cached else "built"
        step = digest({"step": name, "image": self.prepared.image})
        self.steps.append({"id": step, "name": name, "state": state, "seconds": seconds})

    def value(self, **more: Json) -> Json:
        job = self.prepared.job
        return {
            "target": job.target.name,
            "kind": "windows",
            "platform": job.platform.value,
            "digest": None,
            "image_id": self.prepared.image,
            "steps": list(self.steps),
            "unresolved": list(job.unresolved),
            **more,
        }


def build_windows(call: Call, target: WindowsTarget, request: WindowsBuild) -> int:
    """Build as far as it goes.

    Raises UsageError UNKNOWN_STEP, BAD_VARIABLE, CHECK_FAILED or RECIPE_UNPROVEN; EngineError
    BUILD_WAITS for what is missing; LockError LOCK_UNRESOLVED; what verify_given and boot
    raise.
    """
    if request.until not in {None, *STEPS}:
        msg = f"{target.name} has no step {request.until!r}: {', '.join(STEPS)}"
        raise UsageError("UNKNOWN_STEP", msg, hint=f"vega-image plan {target.name}")
    given, began = request.given, time.monotonic()
    lock = windows_lock(call.factory, target)
    prepared = prepare_windows(call.factory, target, lock, platform=given.platform)
    job = prepared.job
    settings(job, given)
    label = f"verifying {given.iso.name}" if given.iso else ""
    verify_given(
        job, given, progress=lambda done, all_: call.console.progress(label, done, all_)
    )
    place_of = f"{target.name}-{job.platform}"
    report = _Report(prepared, request.folder or _own(call, place_of), [], began)
    _refuse_foreign(report.folder)
    with call.store.locked(f"windows-{digest(str(report.folder.absolute()))[7:23]}"):
        return _walk(call, report, request)


def _walk(call: Call, report: _Report, request: WindowsBuild) -> int:
    prepared, job = report.prepared, report.prepared.job
    began = time.monotonic()
    if not request.dry_run:
        write_tree(prepared.files, report.tree)
    report.did("render", began)
    call.console.say(f"[1/3] render: {len(prepared.files)} files")
    if request.until == "render":
        return _partial(call, report, request)
    began = time.monotonic()
    outcome = examine(prepared)
    refuse_findings(prepared, outcome)
    report.did("check", began)
    call.console.say(f"[2/3] check: {', '.join((*FIRST, *outcome.ran))}: no findings")
    waits = [*missing(job, request.given, call.settings.environ), *unchecked(outcome)]
    if request.until == "check" or request.dry_run:
        for item in unchecked(outcome):
            call.console.warn(f"not run: {item.what}")
        return _partial(call, report, request, waits)
    if waits:
        raise _waits(report, request, waits)
    if job.unresolved:
        names = ", ".join(job.unresolved)
        msg = f"{job.target.name}: no digest is known for: {names}"
        hint = f"vega-image lock {job.target.name} --payload DIR; `plan` says who has them"
        raise LockError("LOCK_UNRESOLVED", msg, hint=hint)
    recipes = {stage.recipe: call.factory.recipe(stage.recipe) for stage in job.target.stages}
    refuse_unproven(recipes, accepted=request.accept_unproven)
    return _image(call, report, request)


def _image(call: Call, report: _Report, request: WindowsBuild) -> int:
    """Let packer make the image in a folder named by what it is made from."""
    job, given, began = report.prepared.job, request.given, time.monotonic()
    assert given.iso is not None
    key = public_key(given.ssh_key).decode() if given.ssh_key else ""
    made = digest(
        {
            "image": report.prepared.image,
            "settings": settings(job, given),
            "key": key,
            "driver": driver_digests(given.driver),
        }
    )
    output = report.folder / f"image-{made[7:23]}"
    if output.is_dir():
        report.did("image", began, cached=True)
        files = sorted(path for path in output.rglob("*") if path.is_file())
        return _done(call, report, output, files)
    if given.driver is None:
        call.console.warn("no --driver: Windows will have none for the card (DRIVER_MISSING)")
    place(job, given, report.tree)
    packer = Packer.find(call.settings.environ)
    values = settings(job, given)
    if given.ssh_key is not None:
        values[KEY] = str(given.ssh_key.absolute())
    vm = Boot(
        stage="image",
        folder=report.tree,
        template="packer",
        iso=given.iso,
        iso_sha256=medium(job).sha256,
        output=output,
        variables=values,
        secrets=given_secrets(job, call.settings.environ),
        proof=f"VEGA-IMAGE READY {job.target.name} {job.target.version}",
    )
    call.console.say(f"[3/3] image: packer, at most {duration(given.timeout)}")
    result: PackerResult = boot(
        packer,
        vm,
        timeout=given.timeout,
        on_line=call.console.say,
        log_path=report.folder / LOG,
    )
    report.did("image", began)
    return _done(call, report, output, [f for art in result.artifacts for f in art.files])


def _done(call: Call, report: _Report, output: Path, files: Sequence[Path]) -> int:
    seconds = time.monotonic() - report.began
    page = report.tree / "README.md"
    lines = [
        f"{report.prepared.target.name}: {output}",
        *(f"  file     {path}" for path in files),
        f"  log      {report.folder / LOG}",
        f"  time     {duration(seconds)}",
        "  on the card: unproven; the native build has not run, and nothing serves",
        f"next: start it, then section 6 of {page}",
    ]
    value = report.value(
        tree=str(report.tree),
        layout=str(output),
        files=[str(path) for path in files],
        duration_s=round(seconds, 3),
    )
    call.console.result(lines, value)
    return 0


def _partial(
    call: Call, report: _Report, request: WindowsBuild, waits: Sequence[Missing] = ()
) -> int:
    job = report.prepared.job
    name = job.target.name
    if request.dry_run:
        lines = [
            f"{name} for {job.platform}: rendered and checked in memory, nothing written",
            *(f"  its image waits for {item.what}: {item.how}" for item in waits),
            *(f"  {line}" for line in unresolved_lines(job.unresolved, len(job.lock.sources))),
        ]
        call.console.result(lines, report.value())
        return 0
    lines = [
        f"{name} for {job.platform}: rendered, nothing built",
        f"  tree     {report.tree}",
        f"  plan     {report.tree / 'plan.json'}",
        *(f"  {line}" for line in unresolved_lines(job.unresolved, len(job.lock.sources))),
        f"next: read {report.tree / 'README.md'}",
    ]
    call.console.result(lines, report.value(tree=str(report.tree)))
    return 0


def _waits(report: _Report, request: WindowsBuild, waits: Sequence[Missing]) -> EngineError:
    """Say in one screen what is there, what is not, and the command that goes on."""
    job = report.prepared.job
    name = job.target.name
    lines = [
        f"{name} for {job.platform} is rendered and checked; its image waits for:",
        *(f"  - {item.what}: {item.how}" for item in waits),
    ]
    if job.unresolved:
        counted = f"{len(job.unresolved)} of {len(job.lock.sources)} sources"
        lines.append(f"  - digests of {counted}: vega-image lock {name} --payload DIR")
    lines += [f"tree: {report.tree}", f"plan: {report.tree / 'plan.json'}"]
    packages = sorted({item.package for item in waits if item.package})
    install = f"apt-get install {' '.join(packages)}; " if packages else ""
    hint = install + _continue(report, request)
    return EngineError("BUILD_WAITS", "\n".join(lines), hint=hint, at=name)


def _continue(report: _Report, request: WindowsBuild) -> str:
    job = report.prepared.job
    if job.platform is not Platform.QEMU:
        return f"read {report.tree / 'README.md'}"
    words = ["vega-image build", job.target.name, *request.given.words(job)]
    words.append("--accept-unproven")
    if request.folder is not None:
        words.append(f"-o {shlex.quote(str(request.folder))}")
    return " ".join(words)


def _own(call: Call, name: str) -> Path:
    return call.store.root / MACHINES / name


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder of other things before anything is written into it."""
    with disk_errors(folder):
        names: Iterable[str] = (
            [path.name for path in folder.iterdir()] if folder.exists() else []
        )
    ours = (TREE, LOG, ".vega-image-packer")
    foreign = [name for name in names if name not in ours and not name.startswith("image-")]
    if foreign:
        msg = f"{folder} holds {foreign[0]}, which is not of a Windows build"
        raise UsageError("FOLDER_IN_USE", msg, at=str(folder), hint="name a new folder: -o DIR")
