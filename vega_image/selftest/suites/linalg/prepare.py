"""Make a trial of linear algebra ready, and judge it by its residual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array, Request
from vega_image.selftest.suites.arrays import UNIT, decode, encode
from vega_image.selftest.suites.linalg.row import Params, Row
from vega_image.selftest.suites.linalg.table import rows
from vega_image.selftest.suites.prepared import Prepared
from vega_image.selftest.verdict import Verdict


@dataclass(frozen=True)
class PropertyOracle:
    """Asks whether factors multiply back, whether solutions solve."""

    row: Row
    inputs: Mapping[str, Array]
    params: Params
    dtype: str
    threshold: float
    shapes: Mapping[str, tuple[tuple[int, ...], str]]
    right: Mapping[str, Array]

    @property
    def kind(self) -> str:
        """Residuals are properties."""
        return "property"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The outputs the device must return."""
        return self.row.returned(self.params)

    @property
    def expects(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """Shape and format of each output."""
        return self.shapes

    def reference(self) -> Mapping[str, Array]:
        """Return a right answer: the processor's, which the residual has to accept."""
        return self.right

    def judge(self, outputs: Mapping[str, Array], solver: str) -> Judgement:
        """Compute the criterion in fp64 on the processor."""
        del solver
        given = {name: decode(array) for name, array in self.inputs.items()}
        found = {name: decode(outputs[name]) for name in self.wanted}
        for name, value in found.items():
            if value.dtype == np.float64 and not np.isfinite(value).all():
                first = [int(i) for i in np.argwhere(~np.isfinite(value))[0]]
                text = f"{name}: first element that is not finite {first}"
                return Judgement(Verdict.NOT_FINITE, None, None, self.kind, text)
        size = self._residual(given, found)
        right = size <= self.threshold
        verdict = Verdict.MATCH if right else Verdict.MISMATCH
        text = "" if right else f"residual {size:.4g} above {self.threshold:g}"
        return Judgement(verdict, size, self.threshold, self.kind, text)

    def _residual(self, given: Mapping[str, Any], found: Mapping[str, Any]) -> float:
        try:
            with np.errstate(all="ignore"):
                return self.row.residual(given, found, UNIT[self.dtype], self.params)
        except (ArithmeticError, np.linalg.LinAlgError):
            # A result of nothing but zeros is measured against its own size, nothing.
            return float("inf")


def prepare_linalg(case: Case, trial: Trial) -> Prepared:
    """Draw the matrices, and the oracle that judges what comes back."""
    from vega_image.selftest.suites.linalg.right import right_answer  # noqa: PLC0415 - torch

    row = next(row for row in rows() if row.id == case.id)
    params = sub(case, trial)
    name = f"{case.id}:{trial.dtype}:{trial.profile}"
    drawn = row.draw(params, name)
    arrays = {key: encode(value, trial.dtype) for key, value in drawn.items()}
    right = right_answer(row, arrays, params)
    shapes = {key: (array.shape, array.dtype) for key, array in right.items()}
    threshold = float(cast("float", case.params["threshold"]))
    oracle = PropertyOracle(row, arrays, params, trial.dtype, threshold, shapes, right)
    request = Request(
        trial.key, f"linalg.{row.name}", arrays, dict(params), trial.dtype, oracle.wanted
    )
    sizes = " ".join(f"{key}={value}" for key, value in params.items() if key != "tier")
    where = f"{case.id} {case.name} {trial.dtype} [{sizes}]"
    return Prepared(trial, case, request, oracle, where)


def sub(case: Case, trial: Trial) -> Params:
    """Return the sizes that a trial's profile names."""
    listed = cast("list[dict[str, Any]]", case.params["trials"])
    return listed[int(trial.profile.partition(".")[2])]
