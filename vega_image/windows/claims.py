"""What may be claimed of each part of a Windows tree: rendered, checked, ran, never run. Pure.

Rows are made from the trees of all platforms, from what the checks refuse, and from the
statuses that recipes and patches give themselves; data/claims.yaml adds what no file says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from vega_image.errors import UsageError
from vega_image.model import Model
from vega_image.windows.clrpatches import patch_set
from vega_image.windows.prepared import PreparedWindows
from vega_image.windows.references import MAKING
from vega_image.windows.spec import Platform

TABLE = "claims.yaml"
_PATCHES = "media/vega/patches/clr/"
_MEDIA = "media/vega/"
_PASS = re.compile(rb'<settings pass="(\w+)"')
_HEAD = ("part", "rendered for", "spoilt, it is refused by", "ran", "never on the real thing, because")


class Ran(Model):
    """Something that really ran: what, and the test that does it (FILE::FUNCTION)."""

    what: Annotated[str, Field(min_length=1)]
    test: Annotated[str, Field(pattern=r"^[a-z/_]+\.py::test_\w+$")]


RanSeveral = Annotated[tuple[Ran, ...], Field(strict=False)]


class Own(Model):
    """What holds of one value of `each` alone, instead of what the part says."""

    ran: RanSeveral | None = None
    never: Annotated[str, Field(min_length=1)] | None = None


class Part(Model):
    """Files of the tree that one row, or one row for each value, speaks about."""

    name: str
    files: str
    split: Literal["pass"] | None = None
    ran: RanSeveral = ()
    never: Annotated[str, Field(min_length=1)]
    own: dict[str, Own] = Field(default_factory=dict)

    def each(self, path: str) -> str | None:
        """Return the value that a path is of, "" for a part of one row, None for another's."""
        match = re.fullmatch(self.files, path)
        return None if match is None else match.groupdict().get("each", "")


class Beside(Model):
    """What is no file of the tree: `held` are tests that look at it."""

    name: str
    of: Literal["clr", "prebuilt", "placed", "wsl"]
    each: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    held: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    ran: RanSeveral = ()
    never: Annotated[str, Field(min_length=1)]


class Claims(Model):
    """The table data/claims.yaml."""

    parts: Annotated[tuple[Part, ...], Field(min_length=1, strict=False)]
    beside: Annotated[tuple[Beside, ...], Field(min_length=1, strict=False)]


@dataclass(frozen=True, slots=True)
class Seen:
    """The trees by platform, which check refuses which file, and the targets of kind wsl."""

    trees: Mapping[Platform, PreparedWindows]
    refusing: Mapping[str, set[str]]
    wsl: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: cells as they are printed, and the paths that it speaks about."""

    cells: tuple[str, str, str, str, str]
    paths: tuple[str, ...] = ()


@cache
def claims() -> Claims:
    """Read the table."""
    import yaml  # noqa: PLC0415 - keeps `--help` fast

    text = resources.files("vega_image.windows").joinpath("data", TABLE)
    return Claims.model_validate(yaml.safe_load(text.read_text(encoding="utf-8")))


def rows(seen: Seen, table: Claims) -> list[Row]:
    """Return every row; raises UsageError CLAIMS_UNFIT where table and trees do not fit."""
    wrong = list(_unfit(seen, table))
    if wrong:
        msg = "\n".join(f"{TABLE}: {what}" for what in wrong)
        hint = f"edit vega_image/windows/data/{TABLE}"
        raise UsageError("CLAIMS_UNFIT", msg, at=TABLE, hint=hint)
    statuses = _statuses(seen)
    made = [row for part in table.parts for row in _of_part(seen, part, statuses)]
    return [*made, *(_of_beside(seen, item) for item in table.beside)]


def markdown(found: Sequence[Row]) -> str:
    """Return the rows as a table."""
    lines = [_line(_HEAD), _line(["---"] * len(_HEAD)), *(_line(row.cells) for row in found)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _paths(seen: Seen) -> list[str]:
    return sorted({path for tree in seen.trees.values() for path in tree.files})


def _values(seen: Seen, part: Part) -> dict[str, list[str]]:
    """Return the files of a part by value: of `each`, of a pass, or "" for all."""
    found: dict[str, list[str]] = {}
    for path in _paths(seen):
        value = part.each(path)
        if value is None:
            continue
        data = b"".join(tree.files.get(path, b"") for tree in seen.trees.values())
        passes = dict.fromkeys(name.decode() for name in _PASS.findall(data))
        for name in passes if part.split else [value]:
            found.setdefault(name, []).append(path)
    return found


def _unfit(seen: Seen, table: Claims) -> Iterator[str]:
    for path in _paths(seen):
        owners = [part.files for part in table.parts if part.each(path) is not None]
        if len(owners) != 1:
            yield f"{path} belongs to {len(owners)} parts: {', '.join(owners)}"
    for part in table.parts:
        values = _values(seen, part)
        if not values:
            yield f"no file is of {part.name}: {part.files}"
        for name in part.own.keys() - values.keys():
            yield f"{part.name}: there is no {name}"
    for kind, wanted in _there(seen).items():
        said = [name for item in table.beside if item.of == kind for name in item.each]
        if sorted(said) != sorted(wanted):
            yield f"beside, {kind}: it names {sorted(said)}, and there are {sorted(wanted)}"


def _there(seen: Seen) -> dict[str, set[str]]:
    """Return what there is of each kind that is no file of a tree."""
    return {
        "clr": set(_ways(seen)),
        "prebuilt": set(MAKING),
        "placed": {name for tree in seen.trees.values() for name in _placed(tree)},
        "wsl": set(seen.wsl),
    }


def _first(seen: Seen) -> PreparedWindows:
    return next(iter(seen.trees.values()))


def _patches(seen: Seen) -> dict[str, bytes]:
    files = _first(seen).files
    return {p.removeprefix(_PATCHES): d for p, d in files.items() if p.startswith(_PATCHES)}


def _ways(seen: Seen) -> dict[str, str]:
    """Return the status of every other way to the card, by its name."""
    return {item.id.value: item.status for item in patch_set(_patches(seen)).alternatives}


def _placed(tree: PreparedWindows) -> list[str]:
    paths: list[str] = json.loads(tree.files["context.json"])["placed_by_operator"]
    return [path.removeprefix(_MEDIA) for path in paths]


def _statuses(seen: Seen) -> dict[str, str]:
    """Return what recipes and patches say of themselves: name of a stage or patch -> status."""
    stages = {stage.name: f"recipe: {stage.status}" for stage in _first(seen).stages}
    patches = patch_set(_patches(seen)).patches
    return stages | {p.file.removesuffix(".edits.json"): p.status for p in patches}


def _of_part(seen: Seen, part: Part, statuses: Mapping[str, str]) -> Iterator[Row]:
    for value, paths in _values(seen, part).items():
        own = part.own.get(value, Own())
        status = f" ({statuses[value]})" if value in statuses else ""
        where = [
            platform for platform, tree in seen.trees.items() if set(paths) & set(tree.files)
        ]
        cells = (
            f"{part.name} `{value}`{status}" if value else part.name,
            _platforms(seen, where),
            _held(seen, paths),
            _ran(part.ran if own.ran is None else own.ran),
            own.never or part.never,
        )
        yield Row(cells=cells, paths=tuple(paths))


def _platforms(seen: Seen, where: Sequence[Platform]) -> str:
    return "all" if len(where) == len(seen.trees) else ", ".join(where)


def _held(seen: Seen, paths: Sequence[str]) -> str:
    """Return the checks, with the share of files where it is not all of them."""
    names = sorted({name for path in paths for name in seen.refusing[path]})
    found = []
    for name in names:
        count = sum(name in seen.refusing[path] for path in paths)
        share = "" if count == len(paths) else f" ({count} of {len(paths)} files)"
        found.append(f"{name}{share}")
    return ", ".join(found) or "nothing"


def _ran(several: Sequence[Ran]) -> str:
    return "; ".join(f"{item.what} ({_link(item.test)})" for item in several) or "nothing"


def _link(test: str) -> str:
    file = test.partition("::")[0]
    return f"[{file.rpartition('/')[2]}](../tests/{file})"


def _of_beside(seen: Seen, item: Beside) -> Row:
    names = ", ".join(f"`{name}`" for name in item.each)
    status = f" ({_ways(seen)[item.each[0]]})" if item.of == "clr" else ""
    cells = (
        f"{item.name} {names}{status}",
        _where(seen, item),
        f"tests: {', '.join(map(_link, item.held))}",
        _ran(item.ran),
        item.never,
    )
    return Row(cells=cells)


def _where(seen: Seen, item: Beside) -> str:
    match item.of:
        case "clr":
            return f"all, where the spec says `clr: {item.each[0]}`"
        case "prebuilt":
            return "all, where the spec says `strategy: prebuilt`"
        case "placed":
            where = [p for p, tree in seen.trees.items() if item.each[0] in _placed(tree)]
            return f"not rendered; {_platforms(seen, where)}"
        case "wsl":
            return "a target of its own ([wsl.md](wsl.md))"
