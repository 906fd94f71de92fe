"""vega-image build: from a target's name to an OCI image in the store."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.clioptions import Call, Machine
from vega_image.commands.lock import relock_if_gone
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.executor import Done, execute
from vega_image.images import remember_image
from vega_image.line import dry_job, real_job
from vega_image.oci.layout import Layout, export_layout, refuse_used
from vega_image.prepare import Prepared, prepare, read_lock, refuse_unproven, refuse_unresolved
from vega_image.records import BuiltImage
from vega_image.spec import GZIP_MAX_LEVEL, Codec, Compression, Target, TargetKind
from vega_image.store import Store
from vega_image.units import duration, megabytes
from vega_image.windows.spec import Platform, WindowsTarget
from vega_image.wsl.handover import HandOver, refuse_wsl_options

BEFORE_ANY_STEP = "render"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """What `vega-image build` was asked to do."""

    target: str
    until: str | None = None
    output: Path | None = None
    relock_if_gone: bool = False
    codec: str | None = None
    level: int | None = None
    dry_run: bool = False
    accept_unproven: bool = False
    url_base: str | None = None
    machine: Machine = field(default_factory=Machine)


def build(call: Call, request: BuildRequest) -> int:
    """Build a target and print what came out."""
    began = time.monotonic()
    asked = call.factory.spec(request.target)
    if isinstance(asked, WindowsTarget):
        return _build_windows(call, asked, request)
    refuse_machine(request.target, request.machine)
    _refuse(call.factory.target(request.target), request)
    prepared = _prepared(call, request)
    if request.until == BEFORE_ANY_STEP:
        call.console.result(
            [f"{request.target}: rendered, nothing built"], _partial(prepared, [])
        )
        return 0
    if request.until:
        prepared.step(request.until)
    open_job = (
        dry_job(call, prepared) if request.dry_run else real_job(call, prepared, call.store)
    )
    with open_job as job:
        done = execute(job, call.console, until=request.until)
        if request.dry_run or request.until not in {None, prepared.plan[-1].name}:
            lines = [f"{row.step.name}: {row.artifact.digest}" for row in done]
            call.console.result(lines, _partial(prepared, done))
            return 0
        if prepared.target.kind is TargetKind.WSL:
            hand = HandOver(output=request.output, url_base=request.url_base)
            lines, value = hand.over(job.store, prepared.target, done[-1].artifact.digest)
            seconds = time.monotonic() - began
            value |= {"steps": _steps(done), "duration_s": round(seconds, 3)}
            call.console.result([*lines, f"  time     {duration(seconds)}"], value)
            return 0
        image, layout = keep_image(job.store, prepared, done)
    if request.output:
        export_layout(layout, request.output)
    seconds = time.monotonic() - began
    call.console.result(_lines(image, layout, seconds), _value(image, layout, done, seconds))
    return 0


def _build_windows(call: Call, target: WindowsTarget, request: BuildRequest) -> int:
    """Hand over to the line of Windows targets; raises UsageError BAD_OPTION."""
    from vega_image.commands.windows.build import WindowsBuild, build_windows  # noqa: PLC0415
    from vega_image.commands.windows.given import Given  # noqa: PLC0415

    strange = {
        "--codec": request.codec,
        "--level": request.level,
        "--url-base": request.url_base,
        "--relock": request.relock_if_gone or None,
    }
    for option, value in strange.items():
        if value is not None:
            msg = f"{option} is for images; {target.name} is of kind {target.kind}"
            raise UsageError("BAD_OPTION", msg, at=option, hint="leave it out")
    machine = request.machine
    given = Given(
        platform=Platform(machine.platform) if machine.platform else None,
        iso=machine.iso,
        payload=machine.payload,
        ssh_key=machine.ssh_key,
        driver=machine.driver,
        timeout=machine.timeout,
        variables=machine.variables,
    )
    asked = WindowsBuild(
        given=given,
        until=request.until,
        folder=request.output,
        dry_run=request.dry_run,
        accept_unproven=request.accept_unproven,
    )
    return build_windows(call, target, asked)


def refuse_machine(name: str, machine: Machine) -> None:
    """Refuse the options of Windows targets for any other; raises UsageError BAD_OPTION."""
    given = machine.given()
    if given:
        msg = f"{given[0]} is for Windows targets, which {name} is not"
        raise UsageError("BAD_OPTION", msg, at=given[0], hint="leave it out")


def _refuse(target: Target, request: BuildRequest) -> None:
    """Refuse options that do not fit the kind of target, and folders of other things."""
    if target.kind is TargetKind.WSL:
        refuse_wsl_options(
            target, output=request.output, url_base=request.url_base, codec=request.codec
        )
        return
    if request.url_base is not None:
        msg = f"--url-base is for .wsl archives; {target.name} is of kind {target.kind}"
        raise UsageError("BAD_URL_BASE", msg, at="--url-base", hint="leave it out")
    if request.output:
        refuse_used(request.output, name=target.name)


def keep_image(store: Store, prepared: Prepared, done: list[Done]) -> tuple[BuiltImage, Layout]:
    """Lay the built image out in the store as VERSION-candidate, every blob re-hashed."""
    from vega_image.oci.layout import write_layout  # noqa: PLC0415

    target = prepared.target
    tag = f"{target.version}-candidate"
    digest = done[-1].artifact.digest
    folder = store.root / "images" / f"{target.name}-{digest[7:23]}"
    with store.locked(f"build-{target.name}"):
        layout = write_layout(folder, store, manifest=digest, name=target.name, tag=tag)
        image = BuiltImage(target=target.name, tag=tag, digest=digest, layout=str(folder))
        remember_image(store, image)
    return image, layout


def _prepared(call: Call, request: BuildRequest) -> Prepared:
    factory = call.factory
    target = factory.target(request.target)
    lock = read_lock(factory, target)
    refuse_unresolved(lock)
    recipes = {stage.recipe: factory.recipe(stage.recipe) for stage in target.stages}
    refuse_unproven(recipes, accepted=request.accept_unproven)
    chosen = _compressed(call, target, request)
    if request.relock_if_gone and not request.dry_run and request.until != BEFORE_ANY_STEP:
        lock = relock_if_gone(call, target, lock)
    return prepare(factory, chosen, lock)


def _compressed(call: Call, target: Target, request: BuildRequest) -> Target:
    if request.codec is None and request.level is None:
        return target
    old = target.compression
    codec = Codec(request.codec) if request.codec else old.codec
    same = codec is old.codec
    level = request.level or (old.level if same else 6)
    if codec is Codec.GZIP and level > GZIP_MAX_LEVEL:
        msg = f"gzip has levels 1 to {GZIP_MAX_LEVEL}, not {level}"
        raise UsageError("BAD_LEVEL", msg, at="--level", hint=f"--level {GZIP_MAX_LEVEL}")
    new = Compression(codec=codec, level=level, window_log=old.window_log if same else None)
    call.console.warn(f"{codec} level {level} is not what the spec says: another digest")
    return target.model_copy(update={"compression": new})


def _partial(prepared: Prepared, done: list[Done]) -> Json:
    return {
        "target": prepared.target.name,
        "kind": prepared.target.kind.value,
        "digest": None,
        "steps": _steps(done),
    }


def _steps(done: list[Done]) -> list[Json]:
    return [
        {
            "id": row.step.id,
            "name": row.step.name,
            "state": "cached" if row.cached else "built",
            "seconds": round(row.seconds, 3),
        }
        for row in done
    ]


def _value(image: BuiltImage, layout: Layout, done: list[Done], seconds: float) -> Json:
    return {
        "target": image.target,
        "kind": "oci",
        "tag": image.tag,
        "digest": image.digest,
        "image_id": layout.config_digest,
        "layout": image.layout,
        "compressed_bytes": layout.compressed_bytes,
        "uncompressed_bytes": layout.uncompressed_bytes,
        "compression": layout.layers[0].compression,
        "duration_s": round(seconds, 3),
        "steps": _steps(done),
    }


def _lines(image: BuiltImage, layout: Layout, seconds: float) -> list[str]:
    sizes = f"{megabytes(layout.compressed_bytes)} to transfer"
    return [
        f"{image.target}:{image.tag}",
        f"  digest   {image.digest}",
        f"  image id {layout.config_digest}",
        f"  size     {sizes}, {megabytes(layout.uncompressed_bytes)} unpacked",
        f"  layout   {image.layout}",
        f"  time     {duration(seconds)}",
        "  on the card: unproven (no gfx906 report is attached)",
    ]
