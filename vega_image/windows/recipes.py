"""A recipe of the native build: recipe.yaml as a value, and what a spec asks of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

import yaml
from pydantic import Field, ValidationError

from vega_image.errors import UsageError
from vega_image.model import Model
from vega_image.spec import Name
from vega_image.windows.clrpatches import Clr
from vega_image.windows.spec import Strategy, WindowsStage, WindowsTarget

RECIPE = "recipe.yaml"
_CHAIN = {"math-libs": "compiler-runtime", "wheels": "math-libs"}
Kind: TypeAlias = Literal["git", "file"]
Reads: TypeAlias = Literal["cards", "profile", "patches"]


class Wants(Model):
    """The sources a recipe cannot do without: name -> kind."""

    always: dict[Name, Kind] = Field(default_factory=dict)
    source: dict[Name, Kind] = Field(default_factory=dict, description="built from source")
    prebuilt: dict[Name, Kind] = Field(default_factory=dict, description="from an archive")


class WindowsRecipe(Model):
    """recipe.yaml of templates/stages/win-*; `rendered`: it never ran anywhere.

    `outputs` are absolute Windows paths, `*` allowed in the last part: the stage is done only
    when each names at least one file that is not empty. `reads` are values of the spec that
    stand in its stage.json, so that they change its inputs; no other stage sees them.
    """

    description: str
    status: Literal["rendered"]
    options: dict[Name, str] = Field(default_factory=dict)
    outputs: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    reads: Annotated[tuple[Reads, ...], Field(strict=False)] = ()
    wants: Wants = Wants()


def windows_recipe(name: str, files: Mapping[str, bytes]) -> WindowsRecipe:
    """Read the recipe.yaml among a recipe's files; raises UsageError RECIPE_INVALID."""
    at = f"templates/stages/{name}/{RECIPE}"
    try:
        return WindowsRecipe.model_validate(yaml.safe_load(files[RECIPE].decode("utf-8")))
    except KeyError:
        what = "there is none"
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        what = f"not YAML: {str(error).splitlines()[0]}"
    raise UsageError("RECIPE_INVALID", f"{at}: {what}", at=at)


def unbuildable(
    target: WindowsTarget, recipes: Mapping[str, WindowsRecipe]
) -> Iterator[tuple[str, str]]:
    """Yield (dotted path, what is wrong) of stages whose recipe lacks what it needs."""
    before: dict[str, Strategy | None] = {}
    for index, stage in enumerate(target.stages):
        yield from _sources(target, index, stage, recipes=recipes)
        yield from _clr(target, index, stage)
        earlier = _CHAIN.get(stage.name, "")
        if stage.strategy is Strategy.SOURCE and before.get(earlier) is Strategy.PREBUILT:
            what = f"from source wants {earlier} from source: it goes on in its build tree"
            yield f"stages.{index}.strategy", f"{stage.name} {what}"
        before[stage.name] = stage.strategy


def _sources(
    target: WindowsTarget,
    index: int,
    stage: WindowsStage,
    *,
    recipes: Mapping[str, WindowsRecipe],
) -> Iterator[tuple[str, str]]:
    if stage.recipe not in recipes:
        return
    wants = recipes[stage.recipe].wants
    more = {Strategy.SOURCE: wants.source, Strategy.PREBUILT: wants.prebuilt}
    wanted = {**wants.always, **(more[stage.strategy] if stage.strategy else {})}
    for name, kind in wanted.items():
        if name not in stage.sources:
            yield f"stages.{index}.sources", f"recipe {stage.recipe} wants {name} ({kind})"
        elif name in target.sources and target.sources[name].kind != kind:
            yield f"sources.{name}.kind", f"recipe {stage.recipe} wants {name} as {kind}"


def _clr(target: WindowsTarget, index: int, stage: WindowsStage) -> Iterator[tuple[str, str]]:
    said = stage.options.get("clr")
    if said is None:
        return
    known = [choice.value for choice in Clr]
    if said not in known:
        yield f"stages.{index}.options.clr", f"no choice {said!r}; there are {', '.join(known)}"
    source = target.sources.get("clr")
    there = source is not None and source.kind == "git" and "clr" in stage.sources
    if said == Clr.OLD_CLR and stage.strategy is Strategy.SOURCE and not there:
        what = "old-clr wants a git source `clr` (ROCm/clr, 2024-10-22 or before)"
        yield f"stages.{index}.sources", f"{what} and the libraries of the same day"
