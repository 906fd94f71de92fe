"""Rounding to the formats, against other implementations of it."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.selftest.seam import Array
from vega_image.selftest.suites.arrays import decode, digest, encode

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


def one(value: float, dtype: str) -> float:
    return float(decode(encode(np.array([value]), dtype))[0])


def nearest_bf16(value: float) -> float:
    """Round by exact fractions: the two neighbours of 8 bits, ties to even."""
    if value == 0:
        return 0.0
    exponent = max(int(np.floor(np.log2(abs(value)))), -126)
    if Fraction(abs(value)) < Fraction(2) ** exponent and exponent > -126:
        exponent -= 1
    if Fraction(abs(value)) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - 7)
    scaled = round(Fraction(value) / unit)
    found = scaled * unit
    return float(found) if abs(found) < Fraction(2) ** 128 else float(np.sign(value)) * np.inf


@given(st.one_of(FINITE, st.floats(-10, 10), st.floats(-1e-37, 1e-37)))
def test_bf16_is_rounded_once(value: float) -> None:
    assert one(value, "bf16") == nearest_bf16(value)


@given(st.floats(-65519, 65519))
def test_fp16_is_rounded_once(value: float) -> None:
    assert one(value, "fp16") == struct.unpack("<e", struct.pack("<e", value))[0]


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "fp16", "bf16"])
def test_what_is_not_a_number_stays_so(dtype: str) -> None:
    found = decode(encode(np.array([np.nan, np.inf, -np.inf]), dtype))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [np.inf, -np.inf]


@given(st.integers(0, 2**16 - 1))
def test_every_bf16_pattern_survives(bits: int) -> None:
    array = Array((1,), "bf16", struct.pack("<H", bits))
    value = decode(array)
    again = encode(value, "bf16")
    assert np.isnan(value[0]) or again.data == array.data


def test_a_hash_sees_type_shape_name_and_every_bit_but_the_sign_of_zero() -> None:
    base = {"y": encode(np.array([[0.0, 1.0]]), "fp32")}
    seen = digest(base, ("y",))
    assert digest({"y": encode(np.array([[-0.0, 1.0]]), "fp32")}, ("y",)) == seen
    others = [
        {"y": encode(np.array([0.0, 1.0]), "fp32")},
        {"y": encode(np.array([[0.0, 1.0]]), "fp64")},
        {"y": encode(np.array([[0.0, 1.0 + 2.0**-23]]), "fp32")},
        {"y": encode(np.array([[0.0, -1.0]]), "fp32")},
    ]
    assert seen not in {digest(other, ("y",)) for other in others}
