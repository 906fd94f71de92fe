"""Problems by role, and MIOpen's keys for them."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.finddbfiles import CONV1_W, CURRENT, SLICE, problems
from vega_image.finddb.problem import FormError, Problem, Sort, check_key, parse_key, parse_sort


def test_in_backward_keys_the_output_side_is_written_first() -> None:
    problem = parse_key(CONV1_W)
    assert (problem.x_channels, problem.x_size) == (3, (224, 224))
    assert (problem.y_channels, problem.y_size) == (64, (112, 112))
    assert problem.first_layer_rgb
    assert problem.expected_y_size == problem.y_size
    forward = parse_key("3-224-224-7x7-64-112-112-32-3x3-2x2-1x1-0-NCHW-FP32-F")
    assert forward.x_size == problem.x_size
    assert forward.y_channels == problem.y_channels
    assert forward.macs == problem.macs == 32 * 64 * 112 * 112 * 3 * 49


@given(problems(), st.sampled_from([None, 3]))
def test_what_is_counted_is_the_problems_own(problem: Problem, channels: int | None) -> None:
    if channels:
        problem = replace(problem, x_channels=channels, y_channels=channels + 1)
    sort = parse_sort(problem.key)
    assert sort == Sort(**{f.name: getattr(problem, f.name) for f in fields(Sort)})


def test_a_backward_key_with_64_channels_of_dy_is_no_first_layer() -> None:
    assert not parse_key("3-9-9-3x3-64-9-9-1-1x1-1x1-1x1-0-NCHW-FP32-B").first_layer_rgb


def test_layouts_types_and_casts_of_a_backward_key_are_swapped_too() -> None:
    key = "4-1-2-3x5-6-7-8-9-0x1-2x3-4x5-1-NHWC-NCHW-CHWN-INT8FP16INT32-B_g2_ciFP8_coBF8"
    p = parse_key(key)
    assert (p.x_layout, p.w_layout, p.y_layout) == ("CHWN", "NCHW", "NHWC")
    assert (p.x_dtype, p.w_dtype, p.y_dtype) == ("INT32", "FP16", "INT8")
    assert (p.x_cast, p.w_cast, p.y_cast, p.groups, p.bias) == ("BF8", None, "FP8", 2, 1)
    assert p.key == key


def test_a_volume_has_depth() -> None:
    p = parse_key("1024-4-14-15-1x2x3-2048-2-7-8-4-0x1x2-2x2x2-1x1x1-0-NCDHW-FP32-F")
    assert (p.dims, p.x_depth, p.x_height, p.x_width) == (3, 4, 14, 15)
    assert (p.y_depth, p.y_height, p.y_width) == (2, 7, 8)
    assert (p.filter, p.pads) == ((1, 2, 3), (0, 1, 2))


@given(problems())
def test_every_problem_comes_back_from_its_key(problem: Problem) -> None:
    assert parse_key(problem.key) == problem
    assert parse_key(problem.key).key == problem.key


@pytest.mark.parametrize("path", [SLICE, CURRENT], ids=["1.0", "2.0"])
def test_real_keys_come_back_byte_for_byte(path: object) -> None:
    lines = (SLICE if path is SLICE else CURRENT).read_text().splitlines()
    keys = [line.partition("=")[0] for line in lines]
    assert [parse_key(key).key for key in keys] == keys


REST = "-0x0-1x1-1x1-0-NCHW-FP32-F"


@pytest.mark.parametrize(
    ("key", "column", "says"),
    [
        ("", 1, "C-H-W"),
        (f"x-1-1-1x1-1-1-1-1{REST}", 1, "C-H-W"),
        (f"01-1-1-1x1-1-1-1-1{REST}", 1, "C-H-W"),
        (f"1-1-1-1x-1-1-1-1{REST}", 8, "filter"),
        (f"1-1-1-1x1-1-1-1{REST}", 16, "batch"),
        ("1-1-1-1x1-1-1-1-1-0x0-0x1-1x1-0-NCHW-FP32-F", 22, "strides"),
        ("1-1-1-1x1-1-1-1-1-0x0-1x1-1x1-2-NCHW-FP32-F", 30, "bias"),
        ("1-1-1-1x1-1-1-1-1-0x0-1x1-1x1-0-NHWC-FP32-F", 32, "layout"),
        ("1-1-1-1x1-1-1-1-1-0x0-1x1-1x1-0-NCDHW-FP32-F", 32, "layout"),
        ("1-1-1-1x1-1-1-1-1-0x0-1x1-1x1-0-NCHW-FP32FP16-F", 42, "direction"),
        ("1-1-1-1x1-1-1-1-1-0x0-1x1-1x1-0-NCHW-FP32FP32FP32-F", 38, "three equal data types"),
        ("1-1-1-1x1-1-1-1-1-0x0-1x1-1x1-0-NCHW-NCHW-NCHW-FP32-F", 33, "three default layouts"),
        (f"1-1-1-1x1-1-1-1-1{REST}_g1", 44, "end of the key"),
        (f"1-1-1-1x1-1-1-1-1{REST}_cwFP16_ciFP16", 51, "end of the key"),
        (f"1-1-1-1x1-1-1-1-1{REST} ", 44, "end of the key"),
        (f"{'9' * 5000}-1-1-1x1-1-1-1-1{REST}", 1, "C-H-W"),
    ],
)
def test_what_is_no_key_is_refused_with_its_column(key: str, column: int, says: str) -> None:
    with pytest.raises(FormError, match=says) as caught:
        parse_key(key)
    assert caught.value.column == column
    with pytest.raises(FormError):
        check_key(key)


@given(st.text(alphabet="0123456789-xFBWNCHPg_\n=", max_size=60))
def test_no_text_makes_a_traceback(text: str) -> None:
    try:
        problem = parse_key(text)
    except FormError as error:
        column = error.column
    else:
        column = 1
        assert problem.key == text
    assert 1 <= column <= len(text) + 1
