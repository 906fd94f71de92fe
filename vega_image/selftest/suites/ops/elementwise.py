"""Operations on single elements. Ulp figures: OpenCL full profile, IEEE for the basic ones."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import (
    Conditioned,
    Exact,
    Input,
    Op,
    Ulp,
    Variant,
    flag,
    integer,
    normal,
    positive,
)

FAMILY = "elementwise"
MAIN = (33, 129)
OTHERS = ((1,), (0,), ((1 << 20) + 7,))
SHAPES = "(33,129), broadcast (129,); from r3 (1,), (0,), 2^20+7; compared also with NaN, inf"
OCML = "OCML precision, fast-math builds"


def _more(*inputs: Input) -> tuple[Variant, ...]:
    """Repeat the same operands with the shapes where blocks end and where nothing is."""
    return tuple(
        Variant("r3", tuple(Input(i.kind, shape, i.number, i.offset) for i in inputs))
        for shape in OTHERS
    )


def _addcmul_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    del t, reference
    a, b, c = inputs
    return 3 * u * (a.abs() + 0.5 * (b * c).abs())


X = normal(*MAIN)
ODD = Variant("r2", (Input("special", (17, 19)), Input("special", (17, 19))))
P = positive(*MAIN)
WAVE = normal(*MAIN, scale=3.0)

OPS = (
    Op("op01", "add", (integer(*MAIN), integer(129)), lambda t, a, b: t.add(a, b, alpha=2),
       Exact(), shapes=SHAPES, variants=_more(integer(1), integer(1))),
    Op("op02", "mul", (X, normal(129)), lambda _, a, b: a * b, Ulp(0.5), shapes=SHAPES,
       variants=_more(X, X)),
    Op("op03", "div", (X, P), lambda _, a, b: a / b, Ulp(2.5), shapes=SHAPES,
       variants=_more(X, P)),
    Op("op04", "pow", (P,), lambda _, a: a.pow(2.5), Ulp(16), shapes=SHAPES, risk=OCML,
       variants=_more(P)),
    Op("op05", "exp", (X,), lambda t, a: t.exp(a), Ulp(3), shapes=SHAPES, variants=_more(X)),
    Op("op06", "log", (P,), lambda t, a: t.log(a), Ulp(3), shapes=SHAPES, variants=_more(P)),
    Op("op07", "sqrt", (P,), lambda t, a: t.sqrt(a), Ulp(3), shapes=SHAPES,
       variants=_more(P)),
    Op("op08", "rsqrt", (P,), lambda t, a: t.rsqrt(a), Ulp(2, stored=1),
       shapes=SHAPES,
       variants=_more(P)),
    Op("op09", "sin_cos", (WAVE,), lambda _, a: (a.sin(), a.cos()), Ulp(4), shapes=SHAPES,
       variants=_more(WAVE), opinfo="sin, cos"),
    Op("op10", "tanh", (X,), lambda t, a: t.tanh(a), Ulp(5), shapes=SHAPES, risk=OCML,
       variants=_more(X)),
    Op("op11", "erf", (X,), lambda t, a: t.erf(a), Ulp(16, absolute=True),
       shapes=SHAPES, risk=OCML,
       variants=_more(X)),
    Op("op12", "abs_sign", (X,), lambda _, a: (a.abs(), a.sign(), -a), Exact(), shapes=SHAPES,
       variants=_more(X), opinfo="abs, sign, neg"),
    Op("op13", "clamp", (X,), lambda _, a: a.clamp(-0.5, 0.5), Exact(), shapes=SHAPES,
       variants=_more(X)),
    Op("op14", "where", (flag(*MAIN), X, X), lambda t, c, a, b: t.where(c, a, b),
       Exact(moved=True), shapes=SHAPES, variants=_more(flag(1), X, X)),
    Op("op15", "compare", (integer(*MAIN), integer(*MAIN)),
       lambda t, a, b: t.stack([a == b, a < b, a >= b]).to(a.dtype), Exact(), grad=False,
       shapes=SHAPES, variants=(*_more(integer(1), integer(1)), ODD),
       opinfo="eq, lt, ge"),
    Op("op16", "round_floor_remainder", (normal(*MAIN, scale=9.0),),
       lambda _, a: (a.round(), a.floor(), a.trunc()), Exact(), grad=False, shapes=SHAPES,
       variants=_more(normal(1, scale=9.0)), opinfo="round, floor, trunc"),
    Op("op17", "maximum_minimum", (X, X), lambda t, a, b: (t.maximum(a, b), t.minimum(a, b)),
       Exact(), shapes=SHAPES, variants=_more(X, X), opinfo="maximum, minimum"),
    Op("op18", "addcmul", (X, X, X), lambda t, a, b, c: t.addcmul(a, b, c, value=0.5),
       Conditioned(_addcmul_size, "3 u32 (|a| + |0.5 b c|) + u_out |ref| + tiny"),
       shapes=SHAPES, variants=_more(X, X, X)),
)  # fmt: skip
"""One row per operation."""
