"""The native build as values: a spec, its lock and the recipes -> what lies on the media.

Every stage is a folder with its exact bytes and a digest of its inputs that holds those of the
stage before it: whatever changes a stage changes all that stand on it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from vega_image.digest import Json, digest, digest_bytes
from vega_image.errors import UsageError
from vega_image.lock import LockedSource
from vega_image.render import TEMPLATE_SUFFIX, render_text
from vega_image.windows.clrpatches import Clr, patch_set
from vega_image.windows.forecasts import Forecast, forecast
from vega_image.windows.recipes import RECIPE, WindowsRecipe, unbuildable, windows_recipe
from vega_image.windows.references import STAGES
from vega_image.windows.spec import Strategy, WindowsStage, WindowsTarget

FILES_ROOT = r"C:\ProgramData\VegaImage\installers"
MEDIA = "media/vega"
MANIFEST = "stage.json"
RUNNER = "run-stage.ps1"
STEPS = "steps.ps1"
SCRIPTS = (RUNNER, STEPS)
# What decides the bytes of a result; a better forecast must not ask for a new build.
_NOT_INPUTS = frozenset({"inputs", "status", "minutes", "disk_gib", "memory_gib"})
_CRLF = (".ps1", ".cmd")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageParts:
    """The texts that stages are made of, as they lie in templates/ (lines end with LF).

    `recipes`: recipe -> file -> bytes; `scripts`: SCRIPTS, of templates/windows; `patches`: the
    CLR patch set; `finddb`: the files of the profile, by name, for the machine.
    """

    recipes: Mapping[str, Mapping[str, bytes]]
    scripts: Mapping[str, bytes]
    patches: Mapping[str, bytes]
    finddb: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeStage:
    """One stage: `folder` NN-NAME, `needs` the stages before it, `inputs` sha256:...

    `files` are all files of its folder, stage.json among them, as they lie on the media.
    """

    folder: str
    name: str
    needs: tuple[str, ...]
    inputs: str
    strategy: Strategy | None
    status: str
    forecast: Forecast
    files: Mapping[str, bytes]

    @property
    def manifest(self) -> bytes:
        """Return the bytes of stage.json."""
        return self.files[MANIFEST]


def native_stages(
    target: WindowsTarget, sources: Mapping[str, LockedSource], *, parts: StageParts
) -> tuple[NativeStage, ...]:
    """Return the stages in their order, each with inputs that hold those before it.

    `sources` are those of the lock; what stands unresolved there stays so, and the stage says
    it on the machine (exit 4). Raises UsageError STAGES_UNFIT, RECIPE_INVALID,
    PATCHES_INVALID or TEMPLATE_INVALID, BytesError PATCH_CHANGED.
    """
    names = [stage.recipe for stage in target.stages if stage.recipe in parts.recipes]
    recipes = {name: windows_recipe(name, parts.recipes[name]) for name in names}
    if wrong := list(unbuildable(target, recipes)):
        at = f"images/{target.name}.yaml"
        lines = "\n".join(f"{at}: {path}: {message}" for path, message in wrong)
        raise UsageError("STAGES_UNFIT", lines, hint=f"edit {at}", at=at)
    made: list[NativeStage] = []
    for stage in target.stages:
        draft = _Draft(target, stage, recipes[stage.recipe], made[-1] if made else None)
        made.append(_made(draft, sources, parts))
    return tuple(made)


def stage_files(stages: tuple[NativeStage, ...], *, parts: StageParts) -> dict[str, bytes]:
    """Return everything the native build adds to a rendered tree: path -> bytes."""
    files = {
        f"{MEDIA}/stages/{name}": windows_text(name, data)
        for name, data in parts.scripts.items()
    }
    for stage in stages:
        place = f"{MEDIA}/stages/{stage.folder}"
        files |= {f"{place}/{name}": data for name, data in stage.files.items()}
    # Their digests stand in stage.json: not one byte may change on the way.
    files |= {f"{MEDIA}/patches/clr/{name}": data for name, data in parts.patches.items()}
    return dict(sorted(files.items()))


def windows_text(name: str, data: bytes) -> bytes:
    """Return a text as Windows reads it: CRLF in scripts, everything else as it is."""
    if not name.endswith(_CRLF):
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A stage before it has an id."""

    target: WindowsTarget
    stage: WindowsStage
    recipe: WindowsRecipe
    before: NativeStage | None


def _made(draft: _Draft, sources: Mapping[str, LockedSource], parts: StageParts) -> NativeStage:
    listed = [_listed(name, sources[name]) for name in draft.stage.sources]
    needs = (draft.before.name,) if draft.before else ()
    bound = forecast(draft.stage.name, draft.stage.strategy)
    body = _body(draft, listed, needs, patches=_patches(draft, parts))
    files = _rendered(draft, listed, parts)
    inputs = digest(
        {
            "stage": body,
            "files": {name: digest_bytes(data) for name, data in files.items()},
            "steps": digest_bytes(parts.scripts[STEPS]),
            "before": draft.before.inputs if draft.before else None,
        }
    )
    said = {
        **body,
        "status": draft.recipe.status,
        "inputs": inputs,
        "minutes": bound.minutes.value,
        "disk_gib": bound.disk_gib.value,
        "memory_gib": bound.memory_gib.value,
    }
    assert said.keys() - body.keys() == _NOT_INPUTS
    return NativeStage(
        folder=f"{10 * (STAGES.index(draft.stage.name) + 1)}-{draft.stage.name}",
        name=draft.stage.name,
        needs=needs,
        inputs=inputs,
        strategy=draft.stage.strategy,
        status=draft.recipe.status,
        forecast=bound,
        files={**files, MANIFEST: _encoded(said)},
    )


def _body(
    draft: _Draft,
    listed: list[dict[str, Json]],
    needs: tuple[str, ...],
    *,
    patches: list[Json],
) -> dict[str, Json]:
    """Return what stage.json says and inputs depend on."""
    target, stage = draft.target, draft.stage
    body: dict[str, Json] = {
        "schema": 1,
        "target": target.name,
        "stage": stage.name,
        "recipe": stage.recipe,
        "strategy": stage.strategy.value if stage.strategy else "",
        "needs": list(needs),
        "gpu": target.gpu,
        "stack": target.stack.model_dump(mode="json"),
        "options": dict(sorted(stage.options.items())),
        "files_root": FILES_ROOT,
        "sources": listed,
        "outputs": list(draft.recipe.outputs),
    }
    reads: dict[str, Json] = {
        "cards": [f"1002:{card.lower()}" for card in target.first_boot.cards],
        "profile": target.finddb.value,
        "patches": patches,
    }
    return body | {name: reads[name] for name in draft.recipe.reads}


def _patches(draft: _Draft, parts: StageParts) -> list[Json]:
    """Return the patches that the stage applies; none unless its options ask for them."""
    if draft.stage.options.get("clr") != Clr.PAL_PATCH:
        return []
    if draft.stage.strategy is not Strategy.SOURCE:
        return []
    return [
        {"file": patch.file, "sha256": patch.sha256, "status": patch.status}
        for patch in patch_set(parts.patches).patches
    ]


def _listed(name: str, source: LockedSource) -> dict[str, Json]:
    """Return a source as stage.json has it: what nobody knows yet is null and `unresolved`."""
    known = False
    row: dict[str, Json] = dict.fromkeys(
        ("url", "commit", "branch", "file", "version", "sha256", "size")
    )
    match source.kind:
        case "git":
            row |= {"url": source.url, "commit": source.commit, "branch": source.branch}
            known = source.commit is not None
        case "file":
            row |= {"file": source.file, "version": source.version}
            row |= {"sha256": source.sha256, "size": source.size}
            known = None not in (source.sha256, source.size)
        case "iso" | "archive" | "debian":
            msg = f"source {name}: a stage on Windows has git and file sources"
            raise UsageError("STAGES_UNFIT", f"{msg}, not {source.kind}", at=name)
    return {"name": name, "kind": source.kind, **row, "unresolved": not known}


def _rendered(
    draft: _Draft, listed: list[dict[str, Json]], parts: StageParts
) -> dict[str, bytes]:
    """Return the stage's folder without stage.json: `*.j2` filled, scripts with CRLF.

    A text of which nothing is left makes no file: what this strategy does not run is absent.
    """
    target, stage = draft.target, draft.stage
    values: dict[str, object] = {
        "option": stage.options,
        "gpu": target.gpu,
        "epoch": target.epoch,
        "name": stage.name,
        "strategy": stage.strategy.value if stage.strategy else "",
        "sources": listed,
        "stack": target.stack.model_dump(mode="json"),
        "cards": list(target.first_boot.cards),
        "profile": target.finddb.value,
        "files_root": FILES_ROOT,
    }
    files: dict[str, bytes] = {}
    for name, data in parts.recipes[stage.recipe].items():
        if name != RECIPE:
            at = f"templates/stages/{stage.recipe}/{name}"
            plain = name.removesuffix(TEMPLATE_SUFFIX)
            text = _filled(data, values, at) if name.endswith(TEMPLATE_SUFFIX) else data
            if text:
                files[plain] = windows_text(plain, text)
    if "profile" in draft.recipe.reads:
        files |= {f"finddb/{name}": data for name, data in parts.finddb.items()}
    return dict(sorted(files.items()))


def _filled(data: bytes, values: Mapping[str, object], at: str) -> bytes:
    try:
        return render_text(data.decode("ascii"), values, at=at).encode("ascii")
    except UnicodeError:
        msg = f"{at}: a script for Windows is plain ASCII"
        raise UsageError("TEMPLATE_INVALID", msg, at=at) from None


def _encoded(value: Mapping[str, Json]) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()
