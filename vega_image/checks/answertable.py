"""What Microsoft's reference says of the components of answer files: `data/unattend.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue

from vega_image.model import Model

_TABLE = ("data", "unattend.yaml")
_Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]


class Component(Model):
    """One component: the passes it may stand in, its settings, those with fewer passes."""

    evidence: Literal["read", "recalled"]
    passes: _Texts
    settings: JsonValue = "any"
    only: dict[str, _Texts] = Field(default_factory=dict)


class Table(Model):
    """The whole table; `limits` in characters."""

    passes: _Texts
    attributes: dict[str, str]
    limits: dict[str, int]
    shapes: dict[str, JsonValue]
    components: dict[str, Component]


@dataclass(frozen=True, slots=True)
class Shape:
    """What an element holds: text, bool, number, any, choice or elements."""

    kind: str
    choices: tuple[str, ...] = ()
    elements: Mapping[str, Shape] = field(default_factory=dict)


@cache
def unattend_table() -> Table:
    """Return the table of passes, components and their settings."""
    import yaml  # noqa: PLC0415 - keeps `--help` fast

    text = resources.files("vega_image.checks").joinpath(*_TABLE).read_text(encoding="utf-8")
    return Table.model_validate(yaml.safe_load(text))


@cache
def shape_of(component: str) -> Shape:
    """Return what a component of the table holds."""
    return _shape(unattend_table().components[component].settings)


def _shape(value: JsonValue) -> Shape:
    if isinstance(value, dict):
        return Shape("elements", elements={name: _shape(item) for name, item in value.items()})
    if isinstance(value, list):
        return Shape("choice", tuple(str(item) for item in value))
    return Shape(str(value))
