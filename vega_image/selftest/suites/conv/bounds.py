"""How far a right convolution may be from the exact one.

With S the sum of the magnitudes of an element's n products, u the accumulator's unit roundoff
and v the output's, |error| <= A min(gamma_n(u), 8 sqrt(n) u) S + v |y| + tiny: Higham,
"Accuracy and Stability of Numerical Algorithms", 3.1, and Higham and Mary (2019) for the root,
whose probability of failing by chance is 2.5e-14 an element at 8. A is 1 for kernels that add
the products themselves; transforms pay more, by algorithm.
"""

from __future__ import annotations

import re
from math import log2, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites.arrays import HALVES, TINY, UNIT
from vega_image.selftest.suites.conv.geometry import Geometry

NDArray = npt.NDArray[Any]

LAMBDA = 8.0
DYADIC, TRANSFORMED = 8.0, 64.0
EXTRA_TERMS = 2
BLOCK = 1 << 15


def gamma(terms: float, unit: float) -> float:
    """Return n u / (1 - n u), infinite where that says nothing.

    >>> gamma(1, 2.0**-24) < gamma(2, 2.0**-24), gamma(256, 2.0**-8)
    (True, inf)
    """
    return terms * unit / (1 - terms * unit) if terms * unit < 1 else float("inf")


def growth(terms: int, unit: float) -> float:
    """Return the factor on the sum of magnitudes.

    >>> growth(1, 2.0**-24) == gamma(3, 2.0**-24), growth(10**6, 2.0**-24) < 0.001
    (True, True)
    """
    n = terms + EXTRA_TERMS
    return min(gamma(n, unit), LAMBDA * sqrt(n) * unit)


def is_transform(solver: str) -> bool:
    """Whether a solver of this name multiplies transformed data.

    >>> is_transform("ConvBinWinogradRxSf2x3g1"), is_transform("GemmFwdRest")
    (True, False)
    """
    return re.search(r"winograd|fft", solver, re.IGNORECASE) is not None


def is_dyadic(solver: str) -> bool:
    """Whether the transform's factors are halves and quarters, so that integers survive.

    >>> is_dyadic("ConvBinWinogradRxSf3x2"), is_dyadic("ConvWinograd3x3MultipassWrW<3-4>")
    (True, False)
    """
    return (
        is_transform(solver)
        and re.search(r"f2x3|f3x2|winograd3x3U", solver, re.IGNORECASE) is not None
    )


def amplification(solver: str, g: Geometry) -> float:
    """Return A for the solver that ran; 1 where it is not known to transform."""
    if re.search("fft", solver, re.IGNORECASE):
        return 16 * log2(g.h * g.w)
    if is_dyadic(solver):
        return DYADIC
    return TRANSFORMED if is_transform(solver) else 1.0


def rounding(g: Geometry, direction: str, dtype: str, *, solver: str) -> float:
    """Return the factor on the sum of magnitudes for an fp32 accumulator."""
    size = amplification(solver, g) * growth(g.terms(direction), UNIT["fp32"])
    if dtype in HALVES and is_transform(solver):
        # Winograd kernels for 16-bit data round the transformed data to that format.
        size += amplification(solver, g) * UNIT[dtype] * sqrt(g.r * g.s)
    return size


def bound(factor: float, magnitudes: NDArray, want: NDArray, dtype: str) -> NDArray:
    """Return the bound per element, made in blocks that stay in the processor's cache."""
    limit = np.empty(want.shape)
    flat, sizes, values = (x.reshape(-1) for x in (limit, magnitudes, want))
    for first in range(0, flat.size, BLOCK):
        block = slice(first, first + BLOCK)
        part = np.abs(values[block])
        part *= UNIT[dtype]
        part += factor * sizes[block].astype(np.float64)
        part += TINY[dtype]
        flat[block] = part
    return limit
