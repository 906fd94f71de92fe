"""Turn a locked spec into the exact chain of steps. Same input, same ids, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vega_image.digest import Json


class StepKind(StrEnum):
    """Who makes the step: `stage` a container engine, the rest vega-image itself."""

    ROOT = "root"
    STAGE = "stage"
    SLIM = "slim"
    CENSUS = "census"
    LAYERS = "layers"
    IMAGE = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One unit of work with everything that can change its result folded into its id."""

    id: str
    name: str
    kind: StepKind
    parent: str | None
    options: Json = field(default=None)
    inputs: Mapping[str, str] = field(default_factory=dict)
