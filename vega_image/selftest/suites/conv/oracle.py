"""Judge a convolution: to the bit on integers, under a bound on real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array
from vega_image.selftest.suites import degraded
from vega_image.selftest.suites.arrays import decode, digest, encode, single
from vega_image.selftest.suites.compare import Compared, exactly, within
from vega_image.selftest.suites.conv import bounds
from vega_image.selftest.suites.conv.exact import convolve
from vega_image.selftest.suites.conv.geometry import Geometry
from vega_image.selftest.suites.conv.inputs import INTEGER, guarded
from vega_image.selftest.suites.golden_table import golden
from vega_image.selftest.verdict import Verdict

NDArray = npt.NDArray[Any]
GUARD = "guard"
EXACT = float(1 << 24)
SPARE = 1.01
"""Magnitudes are summed in fp32 for speed and made larger by more than that can lose."""


@dataclass(frozen=True)
class ConvOracle:
    """The right answer of one direction of one geometry.

    `inputs` are the request's arrays `a`, `b` and, for 16-bit formats, `a_guard`, `b_guard`;
    `stem` is what the golden hash of the right outputs goes by, where one was written.
    """

    geometry: Geometry
    direction: str
    dtype: str
    profile: str
    inputs: Mapping[str, Array]
    stem: str = ""

    @property
    def kind(self) -> str:
        """Integer or real, by the profile."""
        return "integer" if self.profile in INTEGER else "real"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The outputs the device must return."""
        return ("y", GUARD) if guarded(self.dtype, self.profile) else ("y",)

    @property
    def expects(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """Shape and format of each output."""
        return {
            name: (self.geometry.result(self.direction), self.dtype) for name in self.wanted
        }

    def reference(self) -> Mapping[str, Array]:
        """Return the exact results, rounded once."""
        found = {"y": self.exact}
        if GUARD in self.wanted:
            found[GUARD] = self.exact_guard
        return {name: encode(value, self.dtype) for name, value in found.items()}

    @cached_property
    def exact(self) -> NDArray:
        """The fp64 result of the operands as they were rounded."""
        return self.compute("a", "b")

    @cached_property
    def exact_guard(self) -> NDArray:
        """The fp64 result of the guard's operands."""
        return self.compute("a_guard", "b_guard")

    def compute(self, a: str, b: str) -> NDArray:
        """Run the reference on two inputs."""
        left, right = decode(self.inputs[a]), decode(self.inputs[b])
        if self.kind == "integer" and certified(
            left, right, self.geometry.terms(self.direction)
        ):
            left, right = left.astype(np.float32), right.astype(np.float32)
        return convolve(self.geometry, self.direction, left, right).astype(np.float64)

    def magnitudes(self, power: int, *, guard: bool = False) -> NDArray:
        """Return the sums of the terms' magnitudes, or of their squares, in fp32."""
        names = ("a_guard", "b_guard") if guard else ("a", "b")
        left, right = (np.abs(single(self.inputs[name])) for name in names)
        if power > 1:
            left, right = left**power, right**power
        return convolve(self.geometry, self.direction, left, right)

    def judge(self, outputs: Mapping[str, Array], solver: str) -> Judgement:
        """Judge the outputs of a device, and of the solver that ran if it is known."""
        right = golden(self.stem)
        if right and digest(outputs, self.wanted) == right:
            return Judgement(Verdict.MATCH, 0.0, 0.0, self.kind)
        if GUARD in self.wanted:
            guard = self._guarded(outputs[GUARD], solver)
            if guard.wrong:
                return judged(guard, "integer")
        found = self._compared(outputs["y"], solver)
        if found.wrong and self._degraded(outputs["y"]):
            return Judgement(Verdict.DEGRADED, found.error, found.bound, self.kind, text(found))
        return judged(found, self.kind)

    def _guarded(self, got: Array, solver: str) -> Compared:
        if bounds.is_transform(solver):
            factor = bounds.rounding(self.geometry, self.direction, self.dtype, solver=solver)
            limit = SPARE * factor * self.magnitudes(1, guard=True).astype(np.float64)
            return within(GUARD, got, self.exact_guard, limit)
        return exactly(GUARD, got, self.exact_guard)

    def _compared(self, got: Array, solver: str) -> Compared:
        if self.kind == "real":
            return self._bounded(got, solver)
        found = exactly("y", got, self.exact)
        if not found.wrong or not bounds.is_transform(solver):
            return found
        # A transform may leave fractions on integers: at most half, where its factors are
        # halves or the range was made for it; else only the bound can tell.
        if bounds.is_dyadic(solver) or self.profile == "wino":
            nearest = encode(np.rint(decode(got)), got.dtype)
            return exactly("y", nearest, self.exact)
        return self._bounded(got, solver)

    def _bounded(self, got: Array, solver: str) -> Compared:
        factor = bounds.rounding(self.geometry, self.direction, self.dtype, solver=solver)
        limit = bounds.bound(SPARE * factor, self.magnitudes(1), self.exact, self.dtype)
        return within("y", got, self.exact, limit)

    def _degraded(self, got: Array) -> bool:
        return GUARD in self.wanted and degraded.tolerates(
            decode(got),
            self.exact,
            squares=self.magnitudes(2).astype(np.float64),
            terms=self.geometry.terms(self.direction),
            dtype=self.dtype,
        )


def certified(left: NDArray, right: NDArray, terms: int) -> bool:
    """Whether fp32 sums of these products are exact in any order: whole numbers below 2^24."""
    largest = float(np.abs(left).max()) * float(np.abs(right).max()) * terms
    return largest <= EXACT and all((x == np.rint(x)).all() for x in (left, right))


def text(found: Compared) -> str:
    """Say what a comparison found."""
    return f"{found.output}: {found.wrong} of {found.size} wrong; {found.first}"


def judged(found: Compared, kind: str) -> Judgement:
    """Turn a comparison into a judgement."""
    if not found.wrong:
        return Judgement(Verdict.MATCH, found.error, found.bound, kind)
    verdict = Verdict.NOT_FINITE if found.not_finite else Verdict.MISMATCH
    return Judgement(verdict, found.error, found.bound, kind, text(found))
