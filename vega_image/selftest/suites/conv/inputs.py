"""Operands of a convolution trial.

Ranges follow from one condition: the magnitudes of all terms of one result add up to at most
2^p, so that every partial sum in any order is a number the accumulator holds exactly. p is 24
for an fp32 accumulator; the guard of the 16-bit formats takes the p of the format itself (11,
8), which is exact even where a kernel adds in the storage format, and so shows wrong indices
apart from short accumulators.

Profiles: `int` is exact for any accumulator of the format or better; `acc`, for the 16-bit
formats, for an fp32 accumulator only, with the guard beside it; `wide-a` and `wide-b` give
one operand as many bits as there is room for; `wino` keeps Winograd transforms exact; `real` is
bell-shaped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites import rng
from vega_image.selftest.suites.arrays import HALVES, LARGEST, MANTISSA
from vega_image.selftest.suites.conv.geometry import Geometry

NDArray = npt.NDArray[Any]

ACCUMULATOR = 24
SIGMAS = 6.0
WINOGRAD_GAIN = 4 * 81
WIDE = 1 << 13
INTEGER = ("int", "acc", "wide-a", "wide-b", "wino")


@dataclass(frozen=True)
class Range:
    """Values up to +-a and +-b; `share` of the first operand is kept, the rest is zero."""

    a: int
    b: int
    share: float = 1.0


def integer_range(terms: int, dtype: str, profile: str) -> Range:
    """Return the range of a profile for sums of `terms` products.

    >>> integer_range(147, "fp32", "int"), integer_range(27, "fp32", "wide-a")
    (Range(a=337, b=338, share=1.0), Range(a=621378, b=1, share=1.0))
    """
    limit = min(1 << ACCUMULATOR, LARGEST.get(dtype, 1 << ACCUMULATOR))
    product = limit // terms
    most = min(1 << MANTISSA[dtype], max(1, product))
    if not profile.startswith("wide"):
        return _balanced(product, most)
    share = 1.0
    if dtype == "fp32" and product < WIDE:
        # More bits than fp16 has, over fewer terms.
        most, share = WIDE, _kept(limit // WIDE) / terms
    return Range(most, 1, share) if profile == "wide-a" else Range(1, most, share)


def _balanced(product: int, most: int) -> Range:
    a = max(1, min(most, isqrt(max(1, product))))
    return Range(a, max(1, min(most, product // a)))


def guard_range(terms: int, dtype: str) -> Range:
    """Return the range in which even sums in the storage format are exact.

    Where a single product per term is too much, the first operand is thinned so that the
    expected number of terms and six standard deviations stay below the limit.
    """
    limit = 1 << MANTISSA[dtype]
    if terms <= limit:
        product = limit // terms
        return _balanced(product, min(limit, product))
    return Range(1, 1, _kept(limit) / terms)


def _kept(limit: int) -> float:
    """Return the expected number of terms that stays below a limit by six deviations."""
    return (sqrt(limit + SIGMAS * SIGMAS / 4) - SIGMAS / 2) ** 2


def winograd_range(g: Geometry) -> Range:
    """Return the range whose Winograd transforms stay below 2^24 in magnitude."""
    product = (1 << ACCUMULATOR) // (WINOGRAD_GAIN * (g.c // g.groups))
    return _balanced(product, product)


def guarded(dtype: str, profile: str) -> bool:
    """Whether a trial has a guard: where DEGRADED is a possible answer."""
    return dtype in HALVES and profile != "int"


def operands(
    g: Geometry, direction: str, dtype: str, *, profile: str, name: str
) -> list[NDArray]:
    """Return a and b, and the guard's a and b where there is one."""
    shapes = g.operands(direction)
    guard = guard_range(g.terms(direction), dtype)
    if profile not in INTEGER:
        pair = [rng.normal(rng.seed_of(f"{name}/{i}"), shape) for i, shape in enumerate(shapes)]
    elif profile == "wino":
        pair = _integers(winograd_range(g), shapes, name)
    elif profile == "int" and dtype in HALVES:
        pair = _integers(guard, shapes, name)
    else:
        pair = _integers(integer_range(g.terms(direction), dtype, profile), shapes, name)
    if not guarded(dtype, profile):
        return pair
    return pair + _integers(guard, shapes, f"{name}/guard")


def _integers(drawn: Range, shapes: tuple[Any, Any], name: str) -> list[NDArray]:
    seeds = [rng.seed_of(f"{name}/{which}") for which in ("0", "1", "keep")]
    a = rng.integers(seeds[0], drawn.a, shapes[0])
    if drawn.share < 1.0:
        a = np.where(rng.keep(seeds[2], drawn.share, shapes[0]), a, np.int32(0))
    return [a, rng.integers(seeds[1], drawn.b, shapes[1])]
