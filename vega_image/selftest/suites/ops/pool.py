"""Pooling and resampling."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import (
    FP32,
    Calibrated,
    Conditioned,
    Exact,
    Op,
    distinct,
    integer,
    normal,
    uniform,
)

FAMILY = "pool"
SMALL = (2, 3, 13, 15)
TARGET = (29, 31)


def _adaptive(t: Any, x: Any) -> Any:
    return t.nn.functional.adaptive_avg_pool2d(x, (5, 7))


def _adaptive_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del reference
    return _adaptive(t, inputs[0].abs()) * 20 * u


def _resize(mode: str) -> Any:
    def run(t: Any, x: Any) -> Any:
        return t.nn.functional.interpolate(x, size=TARGET, mode=mode, align_corners=False)

    return run


OPS = (
    Op("op45", "max_pool2d", (distinct(2, 8, 17, 19),),
       lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1), Exact(), dtypes=FP32,
       shapes="2x8x17x19, 3x3, stride 2, all different", opinfo="nn.functional.max_pool2d",
       risk="MIOpen keeps indices in a workspace"),
    Op("op46", "avg_pool2d", (integer(2, 8, 17, 19),),
       lambda t, x: t.nn.functional.avg_pool2d(x, 2), Exact(),
       shapes="2x8x17x19 by 2: quarters of whole numbers", opinfo="nn.functional.avg_pool2d"),
    Op("op47", "adaptive_avg_pool2d", (normal(2, 8, 17, 19),), _adaptive,
       Conditioned(_adaptive_size, "20 u32 op(|x|) + u_out |ref| + tiny"),
       shapes="2x8x17x19 -> 5x7", risk="backward adds by atomics",
       opinfo="nn.functional.adaptive_avg_pool2d"),
    Op("op48", "interpolate_nearest", (integer(*SMALL),),
       lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="nearest"), Exact(),
       shapes="2x3x13x15, twice", opinfo="nn.functional.interpolate"),
    Op("op49", "interpolate_bilinear", (normal(*SMALL),), _resize("bilinear"), Calibrated(),
       shapes="13x15 -> 29x31: rounding of coordinates", opinfo="nn.functional.interpolate"),
    Op("op50", "interpolate_bicubic", (normal(*SMALL),), _resize("bicubic"), Calibrated(),
       dtypes=FP32, shapes="13x15 -> 29x31", opinfo="nn.functional.interpolate"),
    Op("op51", "grid_sample", (normal(*SMALL), uniform(2, 9, 9, 2)),
       lambda t, x, g: t.nn.functional.grid_sample(x, g, align_corners=False), Calibrated(),
       dtypes=FP32, shapes="2x3x13x15, grid 9x9", risk="backward adds by atomics",
       opinfo="nn.functional.grid_sample"),
    Op("op52", "pixel_shuffle", (integer(2, 12, 7, 9),),
       lambda t, x: t.nn.functional.pixel_shuffle(x, 2), Exact(), shapes="2x12x7x9 by 2",
       opinfo="nn.functional.pixel_shuffle"),
)  # fmt: skip
"""One row per operation."""
