"""The numpy convolution against loops over Python's integers, and torch against both."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vega_image.selftest.suites.conv.exact import convolve
from vega_image.selftest.suites.conv.geometry import Geometry
from vega_image.selftest.suites.conv.inputs import (
    guard_range,
    integer_range,
    operands,
    winograd_range,
)

pytest.importorskip("torch")
Ints = npt.NDArray[np.int64]
PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    few, size, pad = st.integers(1, 2), st.integers(1, 7), st.integers(0, 2)
    n, c, h, w, k = (draw(one) for one in (few, few, size, size, few))
    r, s = draw(PAIR)
    stride, pads, dilation = draw(PAIR), draw(st.tuples(pad, pad)), draw(PAIR)
    g = Geometry(n, groups * c, h, w, groups * k, r, s, stride, pads, dilation, groups)
    assume(min(g.out) >= 1)
    return g


def by_loops(g: Geometry, direction: str, a: Ints, b: Ints) -> tuple[Ints, int]:
    """All products one by one; also the most that meet in one element."""
    out = np.zeros(g.result(direction), dtype=np.int64)
    count = np.zeros_like(out)
    per = g.c // g.groups
    for n, k, y, x, c, r, s in product(
        range(g.n),
        range(g.k),
        range(g.out[0]),
        range(g.out[1]),
        range(per),
        range(g.r),
        range(g.s),
    ):
        row = y * g.stride[0] + r * g.dilation[0] - g.pad[0]
        col = x * g.stride[1] + s * g.dilation[1] - g.pad[1]
        if not (0 <= row < g.h and 0 <= col < g.w):
            continue
        source = (n, k // (g.k // g.groups) * per + c, row, col)
        places = {"x": source, "w": (k, c, r, s), "y": (n, k, y, x)}
        roles = {"F": "xwy", "B": "ywx", "W": "xyw"}[direction]
        left, right, into = (places[role] for role in roles)
        out[into] += a[left] * b[right]
        count[into] += 1
    return out, int(count.max(initial=0))


@settings(max_examples=60, deadline=None)
@given(geometries(), st.sampled_from("FBW"))
def test_unfolding_is_the_sum_of_all_products(g: Geometry, direction: str) -> None:
    a, b = operands(g, direction, "fp32", profile="int", name="loops")
    want, most = by_loops(g, direction, a.astype(np.int64), b.astype(np.int64))
    found = convolve(g, direction, a.astype(np.float64), b.astype(np.float64))
    assert (found == want).all()
    # The ranges rest on this: no element has more terms than `terms` says.
    assert most <= g.terms(direction)


def test_a_dilation_that_divides_the_stride_makes_more_terms_meet() -> None:
    g = Geometry(1, 1, 9, 9, 1, 3, 3, (2, 2), (2, 2), (2, 2))
    ones = [np.ones(shape, dtype=np.int64) for shape in g.operands("B")]
    assert by_loops(g, "B", ones[0], ones[1])[1] == g.terms("B") == 9


@given(st.integers(1, 1 << 20), st.sampled_from(["fp32", "fp16", "bf16"]))
def test_ranges_keep_every_partial_sum_a_whole_number(terms: int, dtype: str) -> None:
    drawn = integer_range(terms, dtype, "int")
    assert drawn.a * drawn.b * terms <= 1 << 24
    guard = guard_range(terms, dtype)
    bits = {"fp32": 24, "fp16": 11, "bf16": 8}[dtype]
    kept = terms * guard.share
    assert guard.a * guard.b * (kept + 5 * np.sqrt(kept) * (guard.share < 1)) <= 1 << bits


@given(st.integers(1, 1 << 20), st.sampled_from(["wide-a", "wide-b"]))
def test_wide_operands_have_more_bits_than_fp16(terms: int, profile: str) -> None:
    drawn = integer_range(terms, "fp32", profile)
    kept = terms * drawn.share
    assert max(drawn.a, drawn.b) >= 1 << 13
    assert drawn.a * drawn.b * (kept + 5 * np.sqrt(kept) * (drawn.share < 1)) <= 1 << 24


def test_the_winograd_range_is_the_documented_one() -> None:
    g = Geometry(1, 3, 8, 8, 4, 3, 3)
    assert winograd_range(g).a * winograd_range(g).b * 3 * 4 * 81 <= 1 << 24
