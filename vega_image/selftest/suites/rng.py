"""Numbers that no library version can move: SplitMix64 read at counters.

Word i of a stream is mix(seed + (i + 1) * G), so any part of a stream can be made alone, and
only additions, multiplications and shifts of 64-bit integers decide the result. The mixer and
its constants are those of Steele, Lea and Flood, "Fast splittable pseudorandom number
generators" (2014), as in java.util.SplittableRandom.
"""

from __future__ import annotations

import hashlib
from math import prod

import numpy as np
import numpy.typing as npt

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
LANES = 4
LANE_RANGE = 1 << 16
SMALL = 1 << 11
BLOCK = 1 << 15


def seed_of(name: str) -> int:
    """Return the 64-bit seed that belongs to a name.

    >>> hex(seed_of("op01:fp32:fwd"))
    '0x75780d0ae3024243'
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def words(seed: int, count: int, *, start: int = 0) -> npt.NDArray[np.uint64]:
    """Return `count` words of a stream.

    >>> [hex(word) for word in words(0, 2).tolist()]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    out = np.empty(count, dtype="<u8")
    for first in range(0, count, BLOCK):
        last = min(first + BLOCK, count)
        out[first:last] = _block(seed, start + first, last - first)
    return out


def _block(seed: int, start: int, count: int) -> npt.NDArray[np.uint64]:
    # A block stays in the processor's cache through all eight passes.
    z = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z *= GOLDEN
    z += np.uint64(seed)
    z ^= z >> np.uint64(30)
    z *= MIX1
    z ^= z >> np.uint64(27)
    z *= MIX2
    z ^= z >> np.uint64(31)
    return z


def below(seed: int, limit: int, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return integers in [0, limit), limit <= 2^31: four to a word where 16 bits do."""
    count = prod(shape)
    if limit <= SMALL:
        lanes = words(seed, -(-count // LANES)).view("<u2")[:count]
        drawn = (lanes.astype(np.uint32) * np.uint32(limit)) >> np.uint32(16)
    else:
        halves = words(seed, -(-count // 2)).view("<u4")[:count]
        drawn = ((halves.astype(np.uint64) * np.uint64(limit)) >> np.uint64(32)).astype(
            np.uint32
        )
    return drawn.view(np.int32).reshape(shape)


def integers(seed: int, most: int, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return integers in [-most, most]; without the zero where `most` is 1."""
    if most == 1:
        return below(seed, 2, shape) * np.int32(2) - np.int32(1)
    return below(seed, 2 * most + 1, shape) - np.int32(most)


def uniform(seed: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return numbers in [0, 1) with 53 bits."""
    high = (words(seed, prod(shape)) >> np.uint64(11)).astype(np.float64)
    high *= 2.0**-53
    return high.reshape(shape)


def normal(seed: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return numbers of mean 0 and variance 1, bell-shaped, within +-3.47.

    The sum of four 16-bit uniforms: exact arithmetic, where log and cosine would hand the
    inputs over to the C library's version.
    """
    lanes = words(seed, prod(shape)).view("<u2").reshape(-1, LANES)
    total: npt.NDArray[np.int64] = (
        lanes.sum(axis=1, dtype=np.int64) - LANES * (LANE_RANGE - 1) // 2
    )
    values: npt.NDArray[np.float64] = total.astype(np.float64)
    values *= 3.0**0.5 / LANE_RANGE
    return values.reshape(shape)


def permutation(seed: int, count: int) -> npt.NDArray[np.int64]:
    """Return 0..count-1 in an order of the stream's making."""
    return np.argsort(words(seed, count), kind="stable").astype(np.int64)


def keep(seed: int, share: float, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Return True for about `share` of the places."""
    limit = 1 << 30
    return below(seed, limit, shape) < int(share * limit)
