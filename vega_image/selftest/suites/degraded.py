"""When a result is merely less precise, and when it is wrong.

A kernel of a 16-bit format that adds in that format is DEGRADED: usable where the level
allows, never silently. Three things must hold, for the rounding of the sum alone would excuse
almost anything over long sums: the guard, whose sums are exact in the format itself, is right
to the bit; the error stays below 8 v sqrt(n) times the root of the sum of squares, the size of
a random partial sum; and many elements share it. A few wrong ones are a fault.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites.arrays import TINY, UNIT

NDArray = npt.NDArray[Any]

LAMBDA = 8.0
TELLING = 0.25
SHARE = 1 / 512


def tolerates(
    found: NDArray, want: NDArray, *, squares: NDArray, terms: int, dtype: str
) -> bool:
    """Whether a difference looks like additions in the storage format.

    `squares` is the sum of the squares of the products of each element. A bound that reaches
    a quarter of the values themselves could tell nothing, so it excuses nothing.
    """
    error = np.abs(found - want)
    limit = LAMBDA * UNIT[dtype] * sqrt(terms) * np.sqrt(squares)
    size = float(np.sqrt(np.mean(want * want)))
    if not np.isfinite(error).all() or float(np.sqrt(np.mean(limit * limit))) > TELLING * size:
        return False
    off = error > UNIT[dtype] * np.abs(want) + TINY[dtype]
    allowed = limit + 2 * UNIT[dtype] * np.abs(want) + TINY[dtype]
    return bool((error <= allowed).all()) and int(off.sum()) >= max(2.0, SHARE * off.size)
