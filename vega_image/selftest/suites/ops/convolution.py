"""Convolutions as an operation: one of each kind; the geometries are in conv.jsonl."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import Bilinear, Op, normal

FAMILY = "conv"


def _conv2d(**settings: Any) -> Any:
    return lambda t, x, w: t.nn.functional.conv2d(x, w, **settings)


def _channels_last(t: Any, x: Any, w: Any) -> Any:
    last = t.channels_last
    x, w = x.contiguous(memory_format=last), w.contiguous(memory_format=last)
    return t.nn.functional.conv2d(x, w, padding=1)


OPS = (
    Op("op35", "conv1d", (normal(2, 16, 101), normal(24, 16, 5)),
       lambda t, x, w: t.nn.functional.conv1d(x, w, stride=2, padding=2), Bilinear(80, 102),
       shapes="2x16x101, 24 filters of 5, stride 2", opinfo="nn.functional.conv1d"),
    Op("op36", "conv2d", (normal(2, 16, 19, 23), normal(24, 16, 3, 3)), _conv2d(padding=1),
       Bilinear(144, 874), shapes="2x16x19x23, 24 of 3x3", opinfo="nn.functional.conv2d",
       risk="Winograd solvers"),
    Op("op37", "conv2d_c3_stem", (normal(2, 3, 64, 64), normal(64, 3, 7, 7)),
       _conv2d(stride=2, padding=3), Bilinear(147, 2048), shapes="2x3x64x64, 64 of 7x7, s2",
       risk="the shape of the historic bug: weight gradient of three channels",
       opinfo="nn.functional.conv2d"),
    Op("op38", "conv2d_depthwise", (normal(2, 32, 20, 21), normal(32, 1, 3, 3)),
       _conv2d(padding=1, groups=32), Bilinear(9, 840), shapes="2x32x20x21, 32 groups",
       risk="MIOpen#2492", opinfo="nn.functional.conv2d"),
    Op("op39", "conv2d_grouped", (normal(2, 32, 14, 15), normal(48, 8, 3, 3)),
       _conv2d(padding=1, groups=4), Bilinear(72, 420), shapes="2x32x14x15, 4 groups",
       opinfo="nn.functional.conv2d"),
    Op("op40", "conv2d_dilated", (normal(2, 16, 21, 21), normal(16, 16, 3, 3)),
       _conv2d(padding=2, dilation=2), Bilinear(144, 882), shapes="2x16x21x21, dilation 2",
       risk="on gfx906 left to GEMM or naive solvers", opinfo="nn.functional.conv2d"),
    Op("op41", "conv2d_channels_last", (normal(2, 16, 19, 23), normal(24, 16, 3, 3)),
       _channels_last, Bilinear(144, 874), shapes="2x16x19x23 NHWC",
       risk="the find-db of gfx906 has 59 records of NHWC", opinfo="nn.functional.conv2d"),
    Op("op42", "conv3d", (normal(2, 4, 9, 10, 11), normal(8, 4, 3, 3, 3)),
       lambda t, x, w: t.nn.functional.conv3d(x, w, padding=1), Bilinear(108, 1980),
       shapes="2x4x9x10x11, 8 of 3x3x3", risk="the find-db has 69 records of 3-D",
       opinfo="nn.functional.conv3d"),
    Op("op43", "conv_transpose2d", (normal(2, 16, 9, 10), normal(16, 8, 4, 4)),
       lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, stride=2, padding=1),
       Bilinear(64, 180), shapes="2x16x9x10, 4x4, stride 2",
       risk="uses backward-data solvers", opinfo="nn.functional.conv_transpose2d"),
    Op("op44", "conv_transpose3d", (normal(1, 4, 5, 6, 7), normal(4, 4, 3, 3, 3)),
       lambda t, x, w: t.nn.functional.conv_transpose3d(
           x, w, stride=2, padding=1, output_padding=1),
       Bilinear(108, 210), shapes="1x4x5x6x7, 3x3x3, stride 2",
       opinfo="nn.functional.conv_transpose3d"),
)  # fmt: skip
"""One row per operation. The bounds' second number is n of the longer gradient sum."""
