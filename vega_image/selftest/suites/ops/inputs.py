"""Draw the operands and cotangents of an operation's trial."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites import rng
from vega_image.selftest.suites.ops.op import Input

NDArray = npt.NDArray[Any]
SMALL = 8
SLOPE = 3
SPECIAL = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 0.5)
POSITIVE_FROM, POSITIVE_SPAN = 0.1, 3.0


def draw(given: Input, name: str) -> NDArray:
    """Return an operand's values: fp64, int64 or bool."""
    seed = rng.seed_of(name)
    if given.kind == "index":
        return rng.below(seed, int(given.number), given.shape).astype(np.int64)
    if given.kind == "flag":
        return rng.keep(seed, given.number, given.shape)
    if given.kind == "bytes":
        return rng.below(seed, 256, given.shape).astype(np.uint8)
    return _floats(given, seed)


def _floats(given: Input, seed: int) -> NDArray:
    if given.kind == "normal":
        return rng.normal(seed, given.shape) * given.number + given.offset
    if given.kind == "positive":
        return rng.uniform(seed, given.shape) * POSITIVE_SPAN + POSITIVE_FROM
    if given.kind == "uniform":
        return rng.uniform(seed, given.shape) * 2 - 1
    if given.kind == "integer":
        return rng.integers(seed, SMALL, given.shape).astype(np.float64)
    if given.kind == "constant":
        return np.full(given.shape, given.number)
    if given.kind == "special":
        return np.array(SPECIAL)[rng.below(seed, len(SPECIAL), given.shape)]
    if given.kind == "patterns":
        return _patterns(given.shape)
    assert given.kind == "distinct", given.kind
    count = prod(given.shape)
    values = rng.permutation(seed, count) - count // 2
    return values.astype(np.float64).reshape(given.shape)


def _patterns(shape: tuple[int, ...]) -> NDArray:
    """Return every fp16 number, then the fp32 numbers around the ties of bf16."""
    half = np.arange(1 << 16, dtype="<u2").view("<f2").astype(np.float64)
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    near = [(upper | np.uint32(low)).view("<f4") for low in (0x7FFF, 0x8000, 0x8001)]
    with np.errstate(invalid="ignore"):
        return np.concatenate([half, *(values.astype(np.float64) for values in near)]).reshape(
            shape
        )


def slope(shape: tuple[int, ...], name: str) -> NDArray:
    """Return a cotangent of whole numbers in +-3."""
    return rng.integers(rng.seed_of(name), SLOPE, shape).astype(np.float64)


def whole(shape: tuple[int, ...], most: int, name: str) -> NDArray:
    """Return whole numbers in +-most."""
    return rng.integers(rng.seed_of(name), most, shape).astype(np.float64)
