"""The first half of every word about a target: spec, lock check, plan, rendered bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vega_image.digest import digest_bytes
from vega_image.errors import LockError, UsageError
from vega_image.factory import Factory, Recipe
from vega_image.finddb.payload import Payload, payload, with_payload
from vega_image.lock import Lock
from vega_image.lockfile import check_lock, decode_lock, unresolved
from vega_image.oci.compress import tool_versions
from vega_image.plan import Step, StepKind, make_plan
from vega_image.render import Texts, render_stage, render_target
from vega_image.spec import Target, TargetKind
from vega_image.windows.containers import refuse_windows_base
from vega_image.wsl.rendering import render_wsl


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A target with its lock, plan and the rendered context of each stage.

    `target` has the environment and labels of `payload`; `added` is what vega-image itself
    puts into a .wsl archive: path -> bytes.
    """

    target: Target
    lock: Lock
    plan: tuple[Step, ...]
    stages: Mapping[str, Mapping[str, bytes]]
    payload: Payload
    added: Mapping[str, bytes] = field(default_factory=dict)

    def step(self, name: str) -> Step:
        """Find a step by name; raises UsageError UNKNOWN_STEP."""
        for step in self.plan:
            if step.name == name:
                return step
        names = ", ".join(step.name for step in self.plan)
        msg = f"{self.target.name} has no step {name!r}: {names}"
        raise UsageError("UNKNOWN_STEP", msg, hint=f"vega-image plan {self.target.name}")


def read_lock(factory: Factory, target: Target) -> Lock:
    """Read a target's lock and check it against the spec; raises LockError."""
    at = f"images/{target.name}.lock.json"
    lock = decode_lock(factory.lock_text(target.name), at=at)
    check_lock(lock, target, tools=tool_versions(target.compression.codec))
    return lock


def prepare(
    factory: Factory, target: Target, lock: Lock, *, baked: Mapping[str, bytes] | None = None
) -> Prepared:
    """Plan and render; touches only the factory's texts.

    `baked` are the files of a find-db in place of the factory's own.
    """
    paid = payload(target, lock, factory.baked(target.name) if baked is None else baked)
    target = with_payload(target, paid)
    added = _added(factory, target)
    recipes = {stage.recipe: factory.recipe(stage.recipe) for stage in target.stages}
    plan = make_plan(
        target,
        lock,
        makers=factory.makers(),
        recipes={name: recipe.digest for name, recipe in recipes.items()},
        made_of={
            StepKind.FINDDB: paid.inputs,
            StepKind.ARCHIVE: {path: digest_bytes(data) for path, data in added.items()},
        },
    )
    stages = {
        stage.name: render_stage(
            stage, recipes[stage.recipe].files, epoch=lock.epoch, gpu=target.gpu
        )
        for stage in target.stages
    }
    for name, files in stages.items():
        refuse_windows_base(files, stage=name)
    return Prepared(
        target=target, lock=lock, plan=plan, stages=stages, payload=paid, added=added
    )


def _added(factory: Factory, target: Target) -> dict[str, bytes]:
    if target.kind is not TargetKind.WSL:
        return {}
    from vega_image.selftest.pack import archive  # noqa: PLC0415 - only for this kind
    from vega_image.wsl.content import wsl_files  # noqa: PLC0415

    playbooks = factory.folder("playbooks") | factory.folder("inventory")
    return wsl_files(target, factory.template, pyz=archive(), playbooks=playbooks)


def rendered_files(factory: Factory, prepared: Prepared) -> dict[str, bytes]:
    """Every file of `render -o DIR`: path -> bytes."""
    if prepared.target.kind is TargetKind.WSL:
        return render_wsl(prepared.target, prepared.lock, prepared.added, prepared.stages)
    texts = Texts(
        dockerfile=factory.template("image/Dockerfile.j2"),
        service=factory.template("image/units/serve.service.j2"),
        script=factory.template("image/scripts/smoke.sh.j2"),
    )
    return render_target(prepared.target, prepared.lock, texts=texts, stages=prepared.stages)


def refuse_unresolved(lock: Lock) -> None:
    """Stop a build whose lock has entries nobody could fetch yet (exit 3)."""
    names = unresolved(lock)
    if names:
        msg = f"{lock.target}: no digest is known for: {', '.join(names)}"
        raise LockError("LOCK_UNRESOLVED", msg, hint=f"vega-image lock {lock.target}")


def refuse_unproven(recipes: Mapping[str, Recipe], *, accepted: bool) -> None:
    """Stop a build whose recipes were never executed, unless the user accepts that."""
    never = [
        name
        for name, recipe in recipes.items()
        if b"\nstatus: rendered" in b"\n" + recipe.files.get("recipe.yaml", b"")
    ]
    if never and not accepted:
        msg = f"recipes that were rendered but never executed: {', '.join(never)}"
        raise UsageError("RECIPE_UNPROVEN", msg, hint="--accept-unproven")
