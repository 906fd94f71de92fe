"""Matrix products in 64-bit integers: the right answers of MUL_MAT and MUL_MAT_ID."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from vega_image.selftest.external.ggml.table import Row
from vega_image.selftest.suites.ggml.streams import Numbers, integers, signs, words

BLOCK, PEAK, EXPERTS, USED = 32, 127, 4, 2
EXACT, LARGEST_HALF, HALF_EXACT = 1 << 24, 65504, 1 << 11
LIMITS = {"Q8_0": 127, "Q4_0": 7}


@dataclass(frozen=True)
class Range:
    """Largest |A|, largest |B| apart from the peaks of quantised blocks, and A's unit."""

    weight: int
    other: int
    unit: float = 1.0
    peaks: bool = False


def range_of(row: Row) -> Range:
    """Choose inputs so that no partial sum leaves the accumulator the profile names."""
    if row.type in LIMITS:
        return _quantised(row)
    reach = {"ANY": HALF_EXACT, "ACC": LARGEST_HALF}.get(row.profile, EXACT) // row.c
    if row.profile == "WIDE_A":
        return Range(reach, 1)
    return Range(1, reach) if row.profile == "WIDE_B" else Range(isqrt(reach), isqrt(reach))


def _quantised(row: Row) -> Range:
    if row.profile == "ANY":
        return Range(1, 1, peaks=True)
    weight, blocks = LIMITS[row.type], row.c // BLOCK
    worst = {other: weight * (PEAK + 31 * other) * blocks for other in (60, 20, 5)}
    other = next((size for size, sum_ in worst.items() if sum_ <= EXACT), 5)
    unit = 1.0
    while worst[other] * unit > LARGEST_HALF:
        unit /= 2
    return Range(weight, other, unit, peaks=True)


def product(row: Row) -> Numbers:
    """Return dst[batch][n][m]."""
    shared, tables = row.d, 1 if row.d == 1 else 2
    limits = range_of(row)
    a = _weights(row, tables * row.a, limits).reshape(tables, row.a, row.c)
    b = _activations(row, tables * shared * row.b, limits).reshape(-1, row.b, row.c)
    whole = np.repeat(a, shared, axis=0)
    return np.asarray(np.einsum("tmk,tnk->tnm", whole, b), dtype=np.float64) * limits.unit


def product_by_expert(row: Row) -> Numbers:
    """Return dst[token][used][m], each with the matrix of its expert."""
    limits = range_of(row)
    a = _weights(row, EXPERTS * row.a, limits).reshape(EXPERTS, row.a, row.c)
    b = _activations(row, row.b * USED, limits).reshape(row.b, USED, row.c)
    ids = [_experts(word) for word in words(row.id, "ids", row.b).tolist()]
    sums = np.einsum("tumk,tuk->tum", a[np.array(ids)], b)
    return np.asarray(sums, dtype=np.float64) * limits.unit


def _experts(word: int) -> tuple[int, int]:
    first = word % EXPERTS
    return first, (first + 1 + (word >> 32) % (EXPERTS - 1)) % EXPERTS


def _weights(
    row: Row, vectors: int, limits: Range
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    count = vectors * row.c
    if row.profile == "WIDE_B":
        return signs(row.id, "a", count).astype(np.int64)
    return integers(row.id, "a", count, limits.weight).astype(np.int64)


def _activations(
    row: Row, vectors: int, limits: Range
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    count = vectors * row.c
    if row.profile == "WIDE_A":
        return signs(row.id, "b", count).astype(np.int64)
    values = integers(row.id, "b", count, limits.other).astype(np.int64)
    if limits.peaks:
        word = words(row.id, "peak", count // BLOCK)
        places = np.arange(count // BLOCK) * BLOCK + (word % np.uint64(BLOCK)).astype(np.int64)
        values[places] = np.where(word >> np.uint64(63), PEAK, -PEAK)
    return values
