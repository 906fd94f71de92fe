"""Turn a locked spec into the exact chain of steps. Same input, same ids, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from vega_image.digest import Json, digest
from vega_image.lock import Lock
from vega_image.model import Model
from vega_image.spec import Stage, Target, TargetKind

_NOT_OF_THE_IMAGE = {"sources", "root", "stages", "slim", "census", "layers", "wsl"}


class StepKind(StrEnum):
    """Who makes the step: `stage` a container engine, the rest vega-image itself."""

    ROOT = "root"
    STAGE = "stage"
    SLIM = "slim"
    CENSUS = "census"
    FINDDB = "finddb"
    LAYERS = "layers"
    IMAGE = "image"
    ARCHIVE = "archive"


MadeOf = Mapping[StepKind, Mapping[str, str]]
"""For a kind of step: names of what it is made from -> digests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One unit of work with everything that can change its result folded into its id."""

    id: str
    name: str
    kind: StepKind
    parent: str | None
    options: Json = field(default=None)
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A step before it has an id: what it is made from, and by which code or recipe."""

    name: str
    kind: StepKind
    maker: str
    options: Json
    inputs: Mapping[str, str] = field(default_factory=dict)


def make_plan(
    target: Target,
    lock: Lock,
    *,
    makers: Mapping[StepKind, str],
    recipes: Mapping[str, str],
    made_of: MadeOf = MappingProxyType({}),
) -> tuple[Step, ...]:
    """Chain the steps.

    `makers` are digests of the code for each kind, `recipes` of each stage recipe's bytes,
    `made_of` for a kind of step of what is neither locked nor a recipe: a baked find-db, the
    files that vega-image itself puts into a .wsl archive. An id covers the parent's id, maker,
    options, only the locked inputs that this step reads, GPU and epoch: another label must
    not extract ROCm again.
    """
    steps: list[Step] = []
    parent: str | None = None
    parts = list(_parts(target, lock, makers=makers, recipes=recipes, made_of=made_of))
    last = _archive if target.kind is TargetKind.WSL else _packed
    for part in [*parts, *last(target, lock, makers, made_of)]:
        step_id = digest(
            {
                "parent": parent,
                "kind": part.kind.value,
                "name": part.name,
                "maker": part.maker,
                "options": part.options,
                "inputs": part.inputs,
                "gpu": target.gpu,
                "epoch": lock.epoch,
            }
        )
        steps.append(
            Step(
                id=step_id,
                name=part.name,
                kind=part.kind,
                parent=parent,
                options=part.options,
                inputs=part.inputs,
            )
        )
        parent = step_id
    return tuple(steps)


def _parts(
    target: Target,
    lock: Lock,
    *,
    makers: Mapping[StepKind, str],
    recipes: Mapping[str, str],
    made_of: MadeOf,
) -> Iterator[Part]:
    source = target.root.source
    yield Part(
        name="root",
        kind=StepKind.ROOT,
        maker=makers[StepKind.ROOT],
        options=_json(target.root, only={"method", "omit", "exclude", "include", "links"}),
        inputs={source: digest(_json(lock.sources[source]))},
    )
    for stage in target.stages:
        yield _stage_part(stage, lock, maker=makers[StepKind.STAGE] + recipes[stage.recipe])
    if target.slim:
        maker = makers[StepKind.SLIM]
        yield Part(name="slim", kind=StepKind.SLIM, maker=maker, options=_json(target.slim))
    if target.census:
        options: Json = {"census": _json(target.census), "env": target.config.env}
        maker = makers[StepKind.CENSUS]
        yield Part(name="census", kind=StepKind.CENSUS, maker=maker, options=options)
    if target.finddb:
        maker = makers[StepKind.FINDDB]
        what, inputs = _json(target.finddb), made_of.get(StepKind.FINDDB, {})
        yield Part(
            name="finddb", kind=StepKind.FINDDB, maker=maker, options=what, inputs=inputs
        )


def _archive(
    target: Target, lock: Lock, makers: Mapping[StepKind, str], made_of: MadeOf
) -> Iterator[Part]:
    yield Part(
        name="archive",
        kind=StepKind.ARCHIVE,
        maker=makers[StepKind.ARCHIVE],
        options=_json(target, drop={"sources", "stages"}),
        inputs={"lock": lock.digest, **_tools(lock), **made_of.get(StepKind.ARCHIVE, {})},
    )


def _packed(
    target: Target, lock: Lock, makers: Mapping[StepKind, str], _made_of: MadeOf
) -> Iterator[Part]:
    yield Part(
        name="layers",
        kind=StepKind.LAYERS,
        maker=makers[StepKind.LAYERS],
        options={
            "root": _json(target.root),
            "layers": [_json(layer) for layer in target.layers],
        },
        inputs={"lock": lock.digest},
    )
    yield Part(
        name="image",
        kind=StepKind.IMAGE,
        maker=makers[StepKind.IMAGE],
        options=_json(target, drop=_NOT_OF_THE_IMAGE),
        inputs={"lock": lock.digest, **_tools(lock)},
    )


def _tools(lock: Lock) -> dict[str, str]:
    return {f"tool:{name}": version for name, version in lock.tools.items()}


def _stage_part(stage: Stage, lock: Lock, *, maker: str) -> Part:
    inputs = {name: digest(_json(lock.sources[name])) for name in stage.sources}
    return Part(
        name=stage.name,
        kind=StepKind.STAGE,
        maker=maker,
        options=_json(stage),
        inputs=inputs,
    )


def _json(
    value: Model, *, only: set[str] | None = None, drop: set[str] | None = None
) -> dict[str, Json]:
    encoded: dict[str, Json] = value.model_dump(
        mode="json", by_alias=True, include=only, exclude=drop
    )
    return encoded
