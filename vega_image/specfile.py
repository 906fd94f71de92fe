"""images/<target>.yaml as text -> Target; all complaints at once, with line and a guess."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml
from pydantic import BaseModel, ValidationError

from vega_image.anytarget import SPECS, AnyTarget
from vega_image.errors import UsageError
from vega_image.spec import MISFIT, Stage, Target, TargetKind
from vega_image.windows.containers import refuse_windows_container
from vega_image.windows.references import windows_dangling
from vega_image.windows.spec import WindowsStage, WindowsTarget
from vega_image.wsl.references import wsl_dangling
from vega_image.wsl.spec import misfits

Loc = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing wrong with a spec: where (line from 1, dotted path) and what."""

    line: int
    path: str
    message: str


def decode_target(text: str, *, at: str) -> AnyTarget:
    """Read a spec; raises UsageError SPEC_INVALID listing everything that is wrong with it."""
    try:
        return _decoded(text, at)
    except RecursionError:
        msg = f"{at}: something in it holds itself, or is nested too deeply"
        raise UsageError("SPEC_NOT_YAML", msg, at=at) from None


def _decoded(text: str, at: str) -> AnyTarget:
    node = _compose(text, at)
    kind = _kind(node, at)
    complaints = list(_duplicate_keys(node, ()))
    if not complaints:
        try:
            return kind.model_validate_json(json.dumps(_value(node, at)))
        except ValidationError as error:
            complaints = _complaints(node, error, kind)
            complaints += _misfits(node) if kind is Target else []
    raise _refusal(complaints, at)


def _misfits(node: yaml.MappingNode) -> list[Complaint]:
    """Complain of whole sections, also where others are refused for what is in them."""
    values = {str(key.value): value for key, value in node.value}
    said = frozenset(values) - {key for key, v in values.items() if _is_nothing(v)}
    found = misfits(str(values["kind"].value) if "kind" in values else "", said)
    return [Complaint(_line(_walk(node, (key,))[0]), key, what) for key, what in found]


def _is_nothing(node: yaml.Node) -> bool:
    empty = isinstance(node, yaml.SequenceNode) and not node.value
    return empty or node.tag == "tag:yaml.org,2002:null"


def _kind(node: yaml.MappingNode, at: str) -> type[Target | WindowsTarget]:
    said = [value for key, value in node.value if key.value == "kind"]
    kind = str(said[0].value) if said else ""
    if said:
        refuse_windows_container(kind, at=f"{at}:{_line(said[0])}")
    return SPECS.get(kind, Target)


def decode_recipe(text: str, *, at: str) -> frozenset[str]:
    """Return the names of the options that a recipe.yaml lists.

    Raises UsageError RECIPE_INVALID.
    """
    try:
        value = yaml.safe_load(text)
        options = value.get("options") or {}
        return frozenset(map(str, options.keys()))
    except (yaml.YAMLError, AttributeError, RecursionError):
        msg = f"{at}: a recipe is a table, its `options:` one of option: what it is for"
        raise UsageError("RECIPE_INVALID", msg, at=at) from None


def check_references(
    target: AnyTarget, *, at: str, recipes: Mapping[str, Collection[str]], text: str = ""
) -> None:
    """Refuse names that point nowhere; raises UsageError SPEC_INVALID with all of them.

    `recipes` maps the name of each recipe to those of its options; `text` is where the lines
    of the complaints are looked up.
    """
    root = _compose(text, at) if text else None
    complaints = [
        Complaint(_line_of(root, path), path, message)
        for path, message in _all_dangling(target, recipes)
    ]
    if complaints:
        raise _refusal(complaints, at)


def _line_of(root: yaml.Node | None, path: str) -> int:
    if root is None:
        return 0
    steps = [int(step) if step.isdigit() else step for step in path.split(".")]
    return _line(_walk(root, tuple(steps))[0])


def _all_dangling(
    target: AnyTarget, recipes: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str]]:
    yield from _of_stages(target, recipes)
    if isinstance(target, WindowsTarget):
        yield from windows_dangling(target)
    else:
        yield from _dangling(target)


def _dangling(target: Target) -> Iterator[tuple[str, str]]:
    source = target.sources.get(target.root.source)
    if source is None or source.kind != "debian":
        name = target.root.source
        yield "root.source", f"no debian source called {name!r}{_guess(name, target.sources)}"
    if target.kind is TargetKind.WSL:
        yield from wsl_dangling(target)
        return
    rest = [layer.name for layer in target.layers if layer.rest]
    if len(rest) != 1:
        yield "layers", f"exactly one layer must say `rest: true`; {len(rest)} do"
    if len({layer.name for layer in target.layers}) != len(target.layers):
        yield "layers", "two layers have the same name"
    if target.census and target.census.arch != target.gpu:
        yield "census.arch", f"is {target.census.arch!r}, but the image is for {target.gpu!r}"
    if target.slim and target.gpu not in target.slim.keep:
        yield "slim.keep", f"does not keep {target.gpu!r}, the GPU this image is for"


def _of_stages(
    target: AnyTarget, recipes: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str]]:
    stages: tuple[Stage | WindowsStage, ...] = target.stages
    for index, stage in enumerate(stages):
        if stage.recipe not in recipes:
            guess = _guess(stage.recipe, recipes)
            what = f"no recipe {stage.recipe!r} in templates/stages{guess}"
            yield f"stages.{index}.recipe", what
        else:
            yield from _options(stage, recipes[stage.recipe], f"stages.{index}.options")
        for name in stage.sources:
            if name not in target.sources:
                yield (
                    f"stages.{index}.sources",
                    f"no source {name!r}{_guess(name, target.sources)}",
                )


def _options(
    stage: Stage | WindowsStage, known: Collection[str], path: str
) -> Iterator[tuple[str, str]]:
    for name in sorted(stage.options.keys() - set(known)):
        message = f"recipe {stage.recipe} has no option {name!r}{_guess(name, known)}"
        yield f"{path}.{name}", message
    for name in sorted(set(known) - stage.options.keys()):
        yield path, f"recipe {stage.recipe} wants the option {name!r} too"


def _compose(text: str, at: str) -> yaml.MappingNode:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or "not YAML"
        msg = f"{at}:{line}: not YAML: {problem}"
        raise UsageError("SPEC_NOT_YAML", msg, at=f"{at}:{line}") from None
    if not isinstance(node, yaml.MappingNode):
        msg = f"{at}: a spec is a table of `key: value`"
        raise UsageError("SPEC_NOT_YAML", msg, at=at)
    return node


def _value(node: yaml.Node, at: str) -> object:
    try:
        return _constructed(node)
    except (yaml.YAMLError, ValueError) as error:
        msg = f"{at}: {error}"
        raise UsageError("SPEC_NOT_YAML", msg, at=at) from None


def _constructed(node: yaml.Node) -> object:
    """Dates stay text: a version such as 2026-11-30 is not a point in time."""
    if isinstance(node, yaml.MappingNode):
        return {str(_constructed(key)): _constructed(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_constructed(item) for item in node.value]
    if node.tag == "tag:yaml.org,2002:timestamp":
        return node.value
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def _duplicate_keys(node: yaml.Node, path: Loc) -> Iterator[Complaint]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _duplicate_keys(item, (*path, index))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            here = (*path, name)
            if name in seen:
                yield Complaint(_line(key), _dotted(here), "this key is there twice")
            seen.add(name)
            yield from _duplicate_keys(value, here)


def _complaints(
    root: yaml.Node, error: ValidationError, kind: type[BaseModel]
) -> list[Complaint]:
    """Drop what pydantic says of a list only because one of its items was refused."""
    found = [cast("dict[str, Any]", i) for i in error.errors() if i["type"] != MISFIT]
    places = [cast("Loc", item["loc"]) for item in found]
    short = [i for i in found if i["type"] == "too_short" and _within(i["loc"], places)]
    return [_complaint(root, item, kind) for item in found if item not in short]


def _within(loc: Loc, deeper: Sequence[Loc]) -> bool:
    return any(other[: len(loc)] == loc and len(other) > len(loc) for other in deeper)


def _complaint(root: yaml.Node, error: dict[str, Any], kind: type[BaseModel]) -> Complaint:
    loc = cast("Loc", error["loc"])
    found, path = _walk(root, loc)
    message = str(error["msg"])
    if error["type"] == "extra_forbidden":
        known = _known_keys(kind, path[:-1])
        message = f"no such key{_guess(str(path[-1]), known)}"
    elif error["type"] == "missing":
        message = "missing"
    return Complaint(_line(found), _dotted(path), message)


def _walk(root: yaml.Node, loc: Loc) -> tuple[yaml.Node, Loc]:
    """Follow pydantic's location; steps that name a union member are not in the text."""
    node, path = root, list[int | str]()
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            match = [(k, v) for k, v in node.value if str(k.value) == str(step)]
            if match:
                key, node = match[0]
                path.append(step)
                if isinstance(node, yaml.ScalarNode) or not node.value:
                    node = key
            elif step != loc[-1]:
                continue
            else:
                path.append(step)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            if step < len(node.value):
                node = node.value[step]
            path.append(step)
    return node, tuple(path)


def _known_keys(kind: type[BaseModel], path: Loc) -> list[str]:
    kinds: list[Any] = [kind]
    for step in path:
        found: list[Any] = []
        for one in kinds:
            found += _children(one, step)
        kinds = found
    models = [one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel)]
    return sorted(
        {field.alias or name for m in models for name, field in m.model_fields.items()}
    )


def _children(kind: Any, step: int | str) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(step))
        return _members(field.annotation) if field else []
    arguments = getattr(kind, "__args__", ())
    return [member for argument in arguments for member in _members(argument)]


def _members(annotation: Any) -> list[Any]:
    inner = getattr(annotation, "__origin__", None)
    if hasattr(annotation, "__metadata__"):
        return _members(inner)
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return [annotation]
    if inner in (dict, tuple, list, frozenset):
        return [annotation]
    arguments = getattr(annotation, "__args__", ())
    return [member for argument in arguments for member in _members(argument)]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _dotted(path: Loc) -> str:
    return ".".join(str(step) for step in path)


def _guess(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _refusal(complaints: Sequence[Complaint], at: str) -> UsageError:
    ordered = sorted(complaints, key=lambda item: (item.line, item.path))
    lines = [
        f"{at}:{item.line}: {item.path}: {item.message}"
        if item.line
        else f"{at}: {item.path}: {item.message}"
        for item in ordered
    ]
    first = ordered[0]
    hint = "vega-image targets --schema prints every key a spec may have"
    return UsageError("SPEC_INVALID", "\n".join(lines), hint=hint, at=f"{at}:{first.line}")
