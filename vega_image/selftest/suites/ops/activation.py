"""Activations."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import (
    Conditioned,
    Exact,
    Op,
    Ulp,
    normal,
    positive,
)

FAMILY = "activation"
MAIN = (33, 129)
X = normal(*MAIN)
WIDE = normal(*MAIN, scale=4.0)


def _gelu(t: Any, x: Any) -> Any:
    gelu = t.nn.functional.gelu
    return gelu(x), gelu(x, approximate="tanh")


def _gelu_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t, reference
    return 32 * u * inputs[0].abs()


def _silu_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t
    return (16 + 2 * inputs[0].abs()) * u * reference.abs()


def _sigmoid_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t
    return (10 + 2 * inputs[0].abs()) * u * reference.abs()


def _softplus_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    size = reference.abs()
    return (12 + 2 * inputs[0].abs()) * u * size + 6 * u * t.clamp(size, max=1.0)


def _hardswish_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t, reference
    return 4 * u * inputs[0].abs()


OUT = " + u_out |ref| + tiny"

OPS = (
    Op("op59", "relu", (X,), lambda t, x: t.relu(x), Exact(), shapes="(33,129)",
       opinfo="nn.functional.relu"),
    Op("op60", "prelu", (normal(4, 8, 33), positive(8)),
       lambda t, x, w: t.nn.functional.prelu(x, w), Ulp(0.5), shapes="(4,8,33)",
       opinfo="nn.functional.prelu"),
    Op("op61", "gelu", (X,), _gelu, Conditioned(_gelu_size, "32 u32 |x|" + OUT),
       shapes="(33,129), erf and tanh", opinfo="nn.functional.gelu"),
    Op("op62", "silu", (X,), lambda t, x: t.nn.functional.silu(x),
       Conditioned(_silu_size, "(16 + 2|x|) u32 |ref|" + OUT), shapes="(33,129)",
       opinfo="nn.functional.silu"),
    Op("op63", "sigmoid", (WIDE,), lambda t, x: t.sigmoid(x),
       Conditioned(_sigmoid_size, "(10 + 2|x|) u32 |ref|" + OUT), shapes="(33,129)"),
    Op("op64", "softplus", (WIDE,), lambda t, x: t.nn.functional.softplus(x),
       Conditioned(_softplus_size, "(12 + 2|x|) u32 |ref| + 6 u32 min(|ref|, 1)" + OUT),
       shapes="(33,129)", opinfo="nn.functional.softplus"),
    Op("op65", "hardswish", (X,), lambda t, x: t.nn.functional.hardswish(x),
       Conditioned(_hardswish_size, "4 u32 |x|" + OUT), shapes="(33,129)",
       opinfo="nn.functional.hardswish"),
)  # fmt: skip
"""One row per operation."""
