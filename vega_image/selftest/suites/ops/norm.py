"""Normalisation."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import (
    Calibrated,
    Op,
    Variant,
    normal,
    positive,
)

FAMILY = "norm"
IMAGE = (4, 16, 9, 11)


def _batch_norm(*, training: bool) -> Any:
    def run(t: Any, x: Any, w: Any, b: Any) -> Any:
        wide = x.dtype if x.dtype == t.float64 else t.float32
        mean = t.zeros(x.shape[1], dtype=wide, device=x.device)
        spread = t.ones(x.shape[1], dtype=wide, device=x.device)
        y = t.nn.functional.batch_norm(x, mean, spread, w.to(wide), b.to(wide), training)
        return (y, mean.to(x.dtype), spread.to(x.dtype)) if training else y

    return run


def _per_channel(n: int, c: int, *size: int) -> tuple[Any, ...]:
    return normal(n, c, *size), positive(c), normal(c)


OPS = (
    Op("op53", "batch_norm_train", _per_channel(*IMAGE), _batch_norm(training=True),
       Calibrated(), shapes="4x16x9x11, running statistics; n = 1, 2; 256x64x18x18",
       opinfo="nn.functional.batch_norm",
       risk="MIOpen#1549, MIOpen#1109; the variant for n < 3 is off (SWDEV-253606)",
       variants=(Variant("r3", _per_channel(1, 16, 9, 11)),
                 Variant("r3", _per_channel(2, 16, 9, 11)),
                 Variant("r3", _per_channel(32, 64, 18, 18)))),
    Op("op54", "batch_norm_eval", _per_channel(*IMAGE), _batch_norm(training=False),
       Calibrated(), shapes="4x16x9x11", opinfo="nn.functional.batch_norm"),
    Op("op55", "layer_norm", (normal(31, 768), positive(768), normal(768)),
       lambda t, x, w, b: t.nn.functional.layer_norm(x, (x.shape[-1],), w, b), Calibrated(),
       shapes="(31,768)", opinfo="nn.functional.layer_norm"),
    Op("op56", "group_norm", (normal(2, 32, 9, 9), positive(32), normal(32)),
       lambda t, x, w, b: t.nn.functional.group_norm(x, 8, w, b), Calibrated(),
       shapes="2x32x9x9, 8 groups", opinfo="nn.functional.group_norm"),
    Op("op57", "instance_norm", (normal(2, 8, 13, 13),),
       lambda t, x: t.nn.functional.instance_norm(x), Calibrated(), shapes="2x8x13x13",
       opinfo="nn.functional.instance_norm"),
    Op("op58", "rms_norm", (normal(31, 1024), positive(1024)),
       lambda t, x, w: t.nn.functional.rms_norm(x, (x.shape[-1],), w), Calibrated(),
       shapes="(31,1024)", opinfo="nn.functional.rms_norm"),
)  # fmt: skip
"""One row per operation."""
