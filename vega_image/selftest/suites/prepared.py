"""A trial made ready: what the device is asked and who judges its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array, Request


class Oracle(Protocol):
    """Knows the right answer of one trial without the device under test."""

    @property
    def kind(self) -> str:
        """One of judgement.ORACLES."""
        ...

    @property
    def expects(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """Shape and format of each output that must come back."""
        ...

    def reference(self) -> Mapping[str, Array]:
        """Return right outputs, rounded to their formats: what faults are planted in."""
        ...

    def judge(self, outputs: Mapping[str, Array], solver: str) -> Judgement:
        """Judge outputs whose names, shapes and formats are those of `reference`."""
        ...


@dataclass(frozen=True)
class Prepared:
    """`where` is how a report names it: layer, direction, dtype, geometry.

    `flops` is what the computation takes at least, for the check against impossible speed.
    """

    trial: Trial
    case: Case
    request: Request
    oracle: Oracle
    where: str
    flops: float = 0.0
