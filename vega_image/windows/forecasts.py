"""What each stage of the native build needs: time, disk, memory, each with its source."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from vega_image.model import Model
from vega_image.windows.spec import Strategy

_TABLE = ("data", "forecasts.yaml")


class Bound(Model):
    """An upper bound: `published` by upstream, or our own `estimate`; never a measurement."""

    value: Annotated[int, Field(gt=0)]
    basis: Literal["published", "estimate"]
    source: Annotated[str, Field(min_length=1)]


class Forecast(Model):
    """One stage: minutes it may take, free disk (GiB) when it begins, memory (GiB)."""

    minutes: Bound
    disk_gib: Bound
    memory_gib: Bound


class _Table(Model):
    stages: dict[str, Forecast]
    prebuilt: Forecast


def forecast(stage: str, strategy: Strategy | None) -> Forecast:
    """Return what a stage needs; raises KeyError for a stage that the table lacks."""
    table = _table()
    return table.prebuilt if strategy is Strategy.PREBUILT else table.stages[stage]


def forecast_stages() -> frozenset[str]:
    """Return the stages of the table."""
    return frozenset(_table().stages)


@cache
def _table() -> _Table:
    import yaml  # noqa: PLC0415 - keeps `--help` fast

    text = resources.files("vega_image.windows").joinpath(*_TABLE).read_text(encoding="utf-8")
    return _Table.model_validate(yaml.safe_load(text))
