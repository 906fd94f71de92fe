"""Compare a device's output with a reference, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.seam import Array
from vega_image.selftest.suites.arrays import FLOATS, decode, numbers, rounded

NDArray = npt.NDArray[Any]
BLOCK = 1 << 15


@dataclass(frozen=True)
class Compared:
    """What one output's comparison found; `wrong` elements exceed their bound.

    `error` and `bound` belong to the element that uses up most of its bound.
    """

    output: str
    wrong: int
    size: int
    error: float
    bound: float
    not_finite: bool = False
    first: str = ""

    @property
    def usage(self) -> float:
        """Share of the bound used; infinite where an exact answer is not."""
        return _ratio(self.error, self.bound)


def misfit(name: str, got: Array | None, shape: tuple[int, ...], dtype: str) -> str:
    """Say how an output fails to be the array that was asked for, or nothing."""
    if got is None:
        return f"{name}: not returned"
    if got.shape != shape or got.dtype != dtype:
        return f"{name}: {got.dtype}{list(got.shape)} instead of {dtype}{list(shape)}"
    if numbers_count(got) != int(np.prod(shape, dtype=np.int64)):
        return f"{name}: {len(got.data)} bytes are not {dtype}{list(shape)}"
    return ""


def numbers_count(array: Array) -> int:
    """Return how many elements an array's bytes hold; -1 for a broken one."""
    flat = Array((0,), array.dtype, b"")
    size = numbers(flat).dtype.itemsize
    return len(array.data) // size if len(array.data) % size == 0 else -1


def exactly(name: str, got: Array, want: NDArray, *, signed: bool = False) -> Compared:
    """Compare with the one right answer: `want` rounded once to the output's format.

    A NaN must be a NaN. The sign of zero is looked at where `signed` says so: numbers that
    are only moved keep it, while x - x may have either.
    """
    expected = rounded(want, got.dtype)
    # A byte of 2 is no right True.
    found = decode(got) if got.dtype != "bool" else numbers(got).view(np.uint8)
    same = found == expected
    if got.dtype in FLOATS:
        same |= np.isnan(found) & np.isnan(expected)
        if signed:
            same &= (found != 0.0) | (np.signbit(found) == np.signbit(expected))
    return _compared(name, found, expected, same=same, bound=np.zeros(()))


def within(name: str, got: Array, want: NDArray, bound: NDArray) -> Compared:
    """Compare with an fp64 reference under a bound per element (or one for all).

    Raises ValueError for a bound that is not finite, for it would excuse anything.
    """
    if not np.isfinite(np.max(bound, initial=0.0)):
        msg = f"{name}: a bound that is not finite"
        raise ValueError(msg)
    limit = np.broadcast_to(bound, want.shape)
    easy = _all_within(name, got, want, limit) if want.size else None
    if easy is not None:
        return easy
    found = decode(got)
    with np.errstate(invalid="ignore"):
        same = np.abs(found - want) <= bound
    same |= found == want
    same |= np.isnan(found) & np.isnan(want)
    return _compared(name, found, want, same=same, bound=bound)


def _all_within(name: str, got: Array, want: NDArray, limit: NDArray) -> Compared | None:
    """Compare in blocks that stay in the processor's cache; None as soon as one is wrong."""
    values = (decode(got) if got.dtype == "bf16" else numbers(got)).reshape(-1)
    right, limits = want.reshape(-1), limit.reshape(-1)
    worst, usage = 0, -1.0
    for first in range(0, values.size, BLOCK):
        block = slice(first, first + BLOCK)
        with np.errstate(invalid="ignore"):
            error = np.abs(values[block].astype(np.float64) - right[block])
        if not (error <= limits[block]).all() or not limits[block].all():
            return None
        error /= limits[block]
        place = int(np.argmax(error))
        if error[place] > usage:
            worst, usage = first + place, float(error[place])
    error_there = abs(float(values[worst]) - float(right[worst]))
    return Compared(name, 0, values.size, error_there, float(limits[worst]))


def _compared(
    name: str, found: NDArray, want: NDArray, *, same: NDArray, bound: NDArray
) -> Compared:
    limit = np.broadcast_to(bound, found.shape)
    if not found.size:
        return Compared(name, 0, 0, 0.0, 0.0)
    with np.errstate(invalid="ignore"):
        error = np.where(same & (found == want), 0.0, np.abs(found * 1.0 - want * 1.0))
    error = np.where(np.isnan(error), np.where(same, 0.0, np.inf), error)
    worst = _worst(error, limit)
    wrong = int(same.size - np.count_nonzero(same))
    broken = bool(np.any(~np.isfinite(found) & np.isfinite(want)))
    first = _first(found, want, same=same, limit=limit) if wrong else ""
    return Compared(
        name,
        wrong,
        same.size,
        float(error.flat[worst]),
        float(limit.flat[worst]),
        broken,
        first,
    )


def _worst(error: NDArray, limit: NDArray) -> int:
    with np.errstate(divide="ignore", invalid="ignore"):
        usage = error / limit
    if not limit.all():
        usage = np.where(error == 0.0, 0.0, usage)
    return int(np.argmax(usage))


def _first(found: NDArray, want: NDArray, *, same: NDArray, limit: NDArray) -> str:
    flat = int(np.argmin(same))
    place = [int(part) for part in np.unravel_index(flat, same.shape)]
    text = f"first wrong element {place}: expected {_number(want.flat[flat])}"
    allowed = float(limit.flat[flat])
    more = f" +- {allowed:.3g}" if allowed else ""
    return f"{text}{more}, got {_number(found.flat[flat])}"


def _number(value: Any) -> str:
    return f"{float(value):.9g}"


def _ratio(error: float, bound: float) -> float:
    if error == 0.0:
        return 0.0
    return error / bound if bound else float("inf")
