"""The ggml suite's generator: SplitMix64 of a counter, keyed by `case:slot` (numbers.c)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Numbers = NDArray[np.float64]

FNV_START, FNV_PRIME, WORD = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


def words(case: str, slot: str, count: int) -> Words:
    """Return the first `count` words of a stream."""
    key = FNV_START
    for byte in f"{case}:{slot}".encode():
        key = (key ^ byte) * FNV_PRIME & WORD
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = steps + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def integers(case: str, slot: str, count: int, limit: int) -> Numbers:
    """Return whole numbers of [-limit, limit]."""
    span = (words(case, slot, count) >> np.uint64(32)) % np.uint64(2 * limit + 1)
    return (span.astype(np.int64) - limit).astype(np.float64)


def signs(case: str, slot: str, count: int) -> Numbers:
    """Return numbers that are 1 or -1."""
    return np.where(words(case, slot, count) >> np.uint64(63), 1.0, -1.0)


def shuffled(case: str, slot: str, count: int, taken: int) -> Numbers:
    """Return 0..count-1 with the first `taken` places shuffled."""
    values = list(range(count))
    for place, word in enumerate(words(case, slot, taken).tolist()):
        other = place + word % (count - place)
        values[place], values[other] = values[other], values[place]
    return np.array(values, dtype=np.float64)
