"""Judge random operations as distributions.

A device draws what it likes: only the law of the draws, their exact values where there are
any, and the repeat under one seed can be asked for. z is at most 6: 2.0e-9 false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array
from vega_image.selftest.suites.arrays import decode
from vega_image.selftest.verdict import Verdict

NDArray = npt.NDArray[Any]
Z = 6.0
KOLMOGOROV = 3.2
"""P(D sqrt(n) > 3.2) = 2 exp(-2 * 3.2^2) = 2.5e-9."""
CHI_Z = 6.0
RARE = 1e-9
ZEROS = 6.0


@dataclass(frozen=True)
class Measure:
    """One figure and the limit it must keep."""

    name: str
    value: float
    limit: float


def _z_share(name: str, hits: NDArray, p: float) -> Measure:
    n = hits.size
    z = abs(float(hits.sum()) - n * p) / sqrt(n * p * (1 - p))
    return Measure(f"z of {name}", z, Z)


def _equal(name: str, a: NDArray, b: NDArray) -> Measure:
    same = a.shape == b.shape and bool((a == b).all())
    return Measure(f"differences of {name}", 0.0 if same else float(np.sum(a != b)), 0.0)


def _z_neighbours(hits: NDArray) -> float:
    """Return z of the share of equal neighbours: half, and pairs are independent there."""
    equal = hits[1:] == hits[:-1]
    return float(abs(float(equal.sum()) - equal.size / 2) / sqrt(equal.size / 4))


def _longest(name: str, hits: NDArray, p: float) -> Measure:
    """Measure the longest run, for a tile that no kernel wrote: n p^length < 1e-9 by chance."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], hits.astype(np.int8), [0]))))
    runs = edges[1::2] - edges[::2]
    limit = np.ceil(np.log(RARE / hits.size) / np.log(p))
    return Measure(f"longest run of {name}", float(runs.max(initial=0)), float(limit))


def dropout(inputs: Mapping[str, NDArray], outputs: Mapping[str, NDArray]) -> list[Measure]:
    """Judge dropout at p = 0.5, its gradient, its repeat, and p = 0.1."""
    x, y, slope, again = inputs["x0"], outputs["y0"], outputs["y1"], outputs["y2"]
    kept = y != 0
    other = outputs["y3"]
    tenth = other != 0
    share = np.float32(1) / (np.float32(1) - np.float32(0.1))
    near = np.abs(other[tenth] - x[tenth] * float(share)) <= 2.0**-22 * x[tenth] * float(share)
    return [
        _z_share("kept at 0.5", kept, 0.5),
        Measure("z of neighbours kept", _z_neighbours(kept), Z),
        _longest("dropped", ~kept, 0.5),
        _equal("kept values", y[kept], 2 * x[kept]),
        _equal("the gradient's mask", slope, np.where(kept, 2.0, 0.0)),
        _equal("the repeat under one seed", again, y),
        _z_share("kept at 0.1", tenth, 0.9),
        Measure("values kept at 0.1 that are wrong", float(np.sum(~near)), 0.0),
    ]


def uniform_normal(
    inputs: Mapping[str, NDArray], outputs: Mapping[str, NDArray]
) -> list[Measure]:
    """Judge uniform and normal draws by moments, and uniform ones by their distribution."""
    del inputs
    u, g, again = outputs["y0"], outputs["y1"], outputs["y2"]
    n = u.size
    steps = np.arange(1, n + 1) / n
    ordered = np.sort(u)
    gap = float(np.maximum(steps - ordered, ordered - steps + 1 / n).max())
    return [
        Measure("z of the uniform mean", abs(u.mean() - 0.5) * sqrt(12 * n), Z),
        Measure("z of the uniform variance", abs(u.var() - 1 / 12) * sqrt(180 * n), Z),
        Measure("Kolmogorov-Smirnov of the uniform", gap * sqrt(n), KOLMOGOROV),
        Measure("uniform draws outside [0, 1)", float(np.sum((u < 0) | (u >= 1))), 0.0),
        Measure("z of the normal mean", abs(g.mean()) * sqrt(n), Z),
        Measure("z of the normal variance", abs(g.var() - 1) * sqrt(n / 2), Z),
        _z_share("normal draws beyond 2", np.abs(g) > 2.0, 0.04550026),  # noqa: PLR2004
        # 24 bits: a zero is drawn once in 2^24 times.
        Measure("uniform draws of exactly 0", float(np.sum(u == 0)), ZEROS),
        Measure("normal draws of exactly 0", float(np.sum(g == 0)), ZEROS),
        _equal("the repeat under one seed", again, u),
    ]


def bernoulli_multinomial(
    inputs: Mapping[str, NDArray], outputs: Mapping[str, NDArray]
) -> list[Measure]:
    """Judge coins by their share and classes by chi-squared."""
    weights = inputs["x0"]
    coins, drawn = outputs["y0"], outputs["y1"].astype(np.int64)
    classes = weights.size
    outside = (drawn < 0) | (drawn >= classes)
    counts = np.bincount(drawn[~outside], minlength=classes)
    expected = drawn.size * weights / weights.sum()
    chi = float(((counts - expected) ** 2 / expected).sum())
    degrees = classes - 1
    # Wilson and Hilferty: the cube root of chi-squared is nearly normal.
    spread = 2 / (9 * degrees)
    limit = degrees * (1 - spread + CHI_Z * sqrt(spread)) ** 3
    return [
        _z_share("coins", coins, 0.3),
        Measure(
            "coins that are neither 0 nor 1", float(np.sum((coins != 0) & (coins != 1))), 0.0
        ),
        Measure("classes that are none", float(outside.sum()), 0.0),
        _longest("one class", drawn[1:] == drawn[:-1], float(weights.max() / weights.sum())),
        Measure("chi-squared of the classes", chi, limit),
    ]


Test = Callable[[Mapping[str, NDArray], Mapping[str, NDArray]], list[Measure]]
TESTS: Mapping[str, Test] = {
    "dropout": dropout,
    "uniform_normal": uniform_normal,
    "bernoulli_multinomial": bernoulli_multinomial,
}


@dataclass(frozen=True)
class StatisticOracle:
    """Knows the law, not the draws."""

    test: str
    inputs: Mapping[str, Array]
    right: Mapping[str, Array]

    @property
    def kind(self) -> str:
        """Distributions are statistics."""
        return "statistic"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The outputs the device must return."""
        return tuple(self.right)

    @property
    def expects(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """Shape and format of each output."""
        return {name: (array.shape, array.dtype) for name, array in self.right.items()}

    def reference(self) -> Mapping[str, Array]:
        """Return draws of the processor: as right as any."""
        return self.right

    def judge(self, outputs: Mapping[str, Array], solver: str) -> Judgement:
        """Measure the draws."""
        del solver
        found = {name: decode(outputs[name]) for name in self.wanted}
        for name, value in found.items():
            if value.dtype == np.float64 and not np.isfinite(value).all():
                return Judgement(
                    Verdict.NOT_FINITE, None, None, self.kind, f"{name}: not finite"
                )
        given = {name: decode(array) for name, array in self.inputs.items()}
        measures = TESTS[self.test](given, found)
        broken = [one for one in measures if not one.value <= one.limit]
        worst = max(measures, key=lambda one: one.value / one.limit if one.limit else one.value)
        shown = broken[0] if broken else worst
        text = "; ".join(f"{one.name}: {one.value:.4g} above {one.limit:.4g}" for one in broken)
        verdict = Verdict.MISMATCH if broken else Verdict.MATCH
        return Judgement(verdict, shown.value, shown.limit, self.kind, text)
