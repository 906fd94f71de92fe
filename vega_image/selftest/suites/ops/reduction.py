"""Reductions and scans."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import (
    FP32,
    Calibrated,
    Conditioned,
    Exact,
    Op,
    Reduced,
    Variant,
    distinct,
    flag,
    normal,
)

FAMILY = "reduction"
WIDE = (37, 4099)
CLASSES = 1003


def _prod_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t, inputs
    return 31 * 2 * u * reference.abs()


def _logsumexp_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t
    peak = inputs[0].abs().amax(1)
    return (CLASSES + 8) * u + u * (reference.abs() + 2 * peak)


def _any_all(_: Any, b: Any) -> Any:
    return b.any().float(), b.all().float(), b.any(1).float(), b.all(0).float()


OPS = (
    Op("op19", "sum", (normal(*WIDE),), lambda _, a: (a.sum(), a.sum(0), a.sum(1)),
       Reduced((WIDE[0] * WIDE[1], WIDE[0], WIDE[1])), shapes="(37,4099): all, by column, row",
       risk="pytorch#150853 rarely wrong, pytorch#94891 no kernel ran"),
    Op("op20", "mean", (normal(*WIDE),), lambda _, a: (a.mean(), a.mean(0)),
       Reduced((WIDE[0] * WIDE[1], WIDE[0])), shapes="(37,4099)"),
    Op("op21", "prod", (normal(64, 31, offset=1.0),), lambda _, a: a.prod(1),
       Conditioned(_prod_size, "62 u32 |ref| + tiny"), dtypes=FP32, shapes="(64,31)"),
    Op("op22", "var_std", (normal(*WIDE, offset=100.0),), lambda _, a: (a.var(1), a.std(1)),
       Calibrated(), dtypes=FP32, shapes="(37,4099) around 100: cancellation",
       risk="one pass where two are needed", opinfo="var, std"),
    Op("op23", "amax_argmax", (distinct(37, 55),),
       lambda _, a: (a.amax(1), a.amin(0), a.argmax(1).to(a.dtype)), Exact(), grad=False,
       shapes="(37,55), all different", opinfo="amax, amin, argmax"),
    Op("op24", "logsumexp", (normal(64, CLASSES, scale=5.0),), lambda t, a: t.logsumexp(a, 1),
       Conditioned(_logsumexp_size, "(n + 8) u32 + u32 (|ref| + 2 max|x|) + u_out |ref|"),
       shapes="(64,1003)"),
    Op("op25", "cumsum", (normal(17, 2049),), lambda _, a: a.cumsum(1), Reduced((2049,)),
       shapes="(17,2049): across blocks of 64", risk="rocPRIM scan on waves of 64"),
    Op("op26", "any_all", (flag(3, 257),), _any_all, Exact(), dtypes=FP32, grad=False,
       shapes="(3,257), all False, all True, (1,2)", opinfo="any, all",
       risk="pytorch#99721: all() of nothing but False was True",
       variants=(Variant("r2", (flag(3, 257, share=0.0),)),
                 Variant("r2", (flag(3, 257, share=1.0),)),
                 Variant("r2", (flag(1, 2, share=0.0),)))),
)  # fmt: skip
"""One row per operation."""
