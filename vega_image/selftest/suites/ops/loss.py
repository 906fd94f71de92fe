"""Softmax and losses."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import (
    Calibrated,
    Conditioned,
    Op,
    Variant,
    flag,
    index,
    normal,
)

FAMILY = "loss"
CLASSES = 1003
LOGITS = normal(64, CLASSES, scale=3.0)
ROWS = (64, 33)


def _below_peak(x: Any) -> Any:
    return (x - x.amax(-1, keepdim=True)).abs()


def _softmax_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t
    return reference * ((inputs[0].shape[-1] + 12) * u + 2 * u * _below_peak(inputs[0]))


def _log_softmax_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t
    # The sum over the classes is kept in fp32, whatever is stored.
    total = (CLASSES + 8) * 2.0**-24
    return total + 2 * u * (_below_peak(inputs[0]) + reference.abs())


def _kl_div(t: Any, a: Any, b: Any) -> Any:
    f = t.nn.functional
    return f.kl_div(f.log_softmax(a, 1), f.softmax(b, 1), reduction="batchmean")


OPS = (
    Op("op66", "softmax", (LOGITS,), lambda t, x: t.softmax(x, -1),
       Conditioned(_softmax_size, "ref ((n + 12) u32 + 2 u32 |x - max|) + u_out |ref| + tiny"),
       shapes="(64,1003); (8,32000) at r3", risk="reduction over waves of 64",
       variants=(Variant("r3", (normal(8, 32000, scale=3.0),)),)),
    Op("op67", "log_softmax", (LOGITS,), lambda t, x: t.log_softmax(x, -1),
       Conditioned(_log_softmax_size,
                   "(n + 8) u32 + 2 u32 (|x - max| + |ref|) + u_out |ref| + tiny",
                   stored="2 u_out (|x - max| + |ref|): kernels may store x - max"),
       shapes="(64,1003)"),
    Op("op68", "cross_entropy", (LOGITS, index(CLASSES, 64)),
       lambda t, x, y: t.nn.functional.cross_entropy(x, y, label_smoothing=0.1), Calibrated(),
       dtypes=("fp32", "bf16"), shapes="(64,1003), label smoothing",
       risk="sums of 1003 classes overflow fp16: fp32 under autocast",
       opinfo="nn.functional.cross_entropy"),
    Op("op69", "bce_with_logits", (normal(*ROWS, scale=3.0), flag(*ROWS)),
       lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y.to(x.dtype)),
       Calibrated(), shapes="(64,33)", opinfo="nn.functional.binary_cross_entropy_with_logits"),
    Op("op70", "mse_loss", (normal(*ROWS), normal(*ROWS)),
       lambda t, x, y: t.nn.functional.mse_loss(x, y), Calibrated(), shapes="(64,33)",
       opinfo="nn.functional.mse_loss"),
    Op("op71", "kl_div", (normal(*ROWS), normal(*ROWS)), _kl_div, Calibrated(),
       shapes="(64,33)", opinfo="nn.functional.kl_div"),
)  # fmt: skip
"""One row per operation."""
