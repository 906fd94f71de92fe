"""Between numpy and the seam's arrays, and what the number formats can hold.

bf16 has no numpy type: it is held as the upper half of fp32, and every value of fp16 and bf16
is computed with in fp64, which holds both exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.seam import Array

NDArray = npt.NDArray[Any]

NUMPY = {
    "fp64": "<f8",
    "fp32": "<f4",
    "fp16": "<f2",
    "bf16": "<u2",
    "i64": "<i8",
    "i32": "<i4",
    "u8": "u1",
    "bool": "?",
}
UNIT = {"fp64": 2.0**-53, "fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Unit roundoff: half the distance from 1 to the next number."""
TINY = {"fp64": 2.0**-1074, "fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-133}
"""The smallest number above zero."""
MANTISSA = {"fp64": 53, "fp32": 24, "fp16": 11, "bf16": 8}
LARGEST = {"fp16": 65504}
HALVES = ("fp16", "bf16")
LOWER, HALF_BIT, QUIET = 0xFFFF, 0x8000, 0x40
FLOATS = ("fp64", "fp32", "fp16", "bf16")


def encode(values: NDArray, dtype: str) -> Array:
    """Round values to a format, to nearest, ties to even.

    >>> encode(np.array([1.0, 2.0**-9 + 1, 3 * 2.0**-9 + 1]), "bf16").data.hex()
    '803f803f813f'
    """
    return Array(tuple(values.shape), dtype, np.ascontiguousarray(raw(values, dtype)).tobytes())


def raw(values: NDArray, dtype: str) -> NDArray:
    """Round values to a format's numpy type; bf16 as its 16 bits."""
    if dtype == "bf16":
        return _bf16_bits(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(NUMPY[dtype], copy=False)


def _bf16_bits(values: NDArray) -> NDArray:
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32, copy=False)
    bits = np.ascontiguousarray(single).view(np.uint32)
    rounded = bits >> np.uint32(16)
    if not (bits & np.uint32(LOWER)).any():
        return rounded.astype("<u2")
    up = rounded & np.uint32(1)
    up += np.uint32(HALF_BIT - 1)
    up += bits & np.uint32(LOWER)
    result = rounded + (up >> np.uint32(16))
    if values.dtype == np.float64:
        result = _untied(result, values, single=single, bits=bits)
    quiet = rounded | np.uint32(QUIET)
    return np.where(np.isnan(single), quiet, result).astype("<u2")


def _untied(result: NDArray, values: NDArray, *, single: NDArray, bits: NDArray) -> NDArray:
    # Rounding first to fp32 may land on a tie of bf16 that the value itself is not.
    tie = (bits & np.uint32(LOWER)) == np.uint32(HALF_BIT)
    if not tie.any():
        return result
    near = np.abs(single.astype(np.float64))
    off = tie & (near != np.abs(values))
    above = (np.abs(values) > near).astype(np.uint32)
    return np.where(off, (bits >> np.uint32(16)) + above, result)


def numbers(array: Array) -> NDArray:
    """Return an array's elements in the type they travel in (bf16 as its bits)."""
    flat = np.frombuffer(array.data, dtype=NUMPY[array.dtype])
    return flat.reshape(array.shape)


def decode(array: Array) -> NDArray:
    """Return an array's values: floats as fp64, others as they are."""
    held = numbers(array)
    if array.dtype == "bf16":
        held = (held.astype(np.uint32) << np.uint32(16)).view(np.float32)
    # A signalling NaN is still only a NaN.
    with np.errstate(invalid="ignore"):
        return held.astype(np.float64) if array.dtype in FLOATS else held


def single(array: Array) -> NDArray:
    """Return a float array's values as fp32, without the detour through fp64 where it can."""
    return numbers(array) if array.dtype == "fp32" else decode(array).astype(np.float32)


def rounded(values: NDArray, dtype: str) -> NDArray:
    """Return the values a format holds in place of these, as fp64."""
    return decode(encode(values, dtype)) if dtype in FLOATS else values


def digest(outputs: Mapping[str, Array], names: tuple[str, ...]) -> str:
    """Return the SHA-256 of outputs: of name, type, shape and bytes in the order of names.

    Zero counts as zero whatever its sign, which the order of additions decides.
    """
    total = hashlib.sha256()
    for name in names:
        array = outputs[name]
        total.update(f"{name}:{array.dtype}:{array.shape}:".encode())
        total.update(_positive_zeros(array))
    return total.hexdigest()


def _positive_zeros(array: Array) -> bytes:
    if array.dtype not in FLOATS:
        return array.data
    held = numbers(array)
    bits = held.view(f"<u{held.dtype.itemsize}")
    negative = bits == 1 << (8 * held.dtype.itemsize - 1)
    if not negative.any():
        return array.data
    return np.where(negative, np.zeros((), bits.dtype), bits).tobytes()
