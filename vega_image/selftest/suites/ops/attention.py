"""Attention and recurrent networks."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import Calibrated, Input, Op, Variant, normal

FAMILY = "attention"
HIDDEN, WIDTH, STEPS = 32, 16, 25
BATCHES = (10, 100, 101, 513, 600)
RNN = ("fp32", "bf16")


def _sdpa(**settings: Any) -> Any:
    def run(t: Any, q: Any, k: Any, v: Any) -> Any:
        return t.nn.functional.scaled_dot_product_attention(q, k, v, **settings)

    return run


def _masked(t: Any, q: Any, k: Any, v: Any) -> Any:
    mask = t.ones(q.shape[-2], k.shape[-2], dtype=t.bool, device=q.device).tril(5)
    return t.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _heads(width: int) -> tuple[Input, ...]:
    return (normal(2, 4, 65, width), normal(2, 4, 77, width), normal(2, 4, 77, width))


def _attention(t: Any, x: Any, wi: Any, bi: Any, wo: Any, bo: Any) -> Any:  # noqa: PLR0913, PLR0917 - torch's own list
    forward = t.nn.functional.multi_head_attention_forward
    found = forward(
        x, x, x, 64, 4, wi, bi, None, None, False, 0.0, wo, bo,  # noqa: FBT003
        need_weights=False,
    )  # fmt: skip
    return found[0]


def _recurrent(kind: str) -> Any:
    def run(t: Any, x: Any, *weights: Any) -> Any:
        start = t.zeros(1, x.shape[1], HIDDEN, dtype=x.dtype, device=x.device)
        state = (start, start) if kind == "lstm" else start
        rest = (True, 1, 0.0, False, False, False)
        return getattr(t, kind)(x, state, list(weights), *rest)[0]

    return run


def _weights(batch: int, gates: int) -> tuple[Input, ...]:
    rows = HIDDEN * gates
    return (
        normal(STEPS, batch, WIDTH),
        normal(rows, WIDTH, scale=0.2),
        normal(rows, HIDDEN, scale=0.2),
        normal(rows),
        normal(rows),
    )


def _batches(gates: int) -> tuple[Variant, ...]:
    return tuple(
        Variant("r2" if batch < BATCHES[3] else "r3", _weights(batch, gates))
        for batch in BATCHES
    )


SIZES = "25 steps, 5 of 16 -> 32; batches of 10, 100, 101, 513, 600"
REPORTS = "pytorch#177834, pytorch PR#191912: batches above 100"

OPS = (
    Op("op85", "sdpa", _heads(64), _sdpa(), Calibrated(),
       shapes="(2,4,65,64) x 77; causal, masked, heads of 40, 80, 128",
       risk="pytorch#119772; flash kernels are not built for gfx906",
       opinfo="nn.functional.scaled_dot_product_attention",
       variants=(Variant("r2", _heads(64), run=_sdpa(is_causal=True)),
                 Variant("r2", _heads(64), run=_masked),
                 *(Variant("r3", _heads(width)) for width in (40, 80, 128)))),
    Op("op86", "multi_head_attention",
       (normal(21, 3, 64), normal(192, 64, scale=0.1), normal(192),
        normal(64, 64, scale=0.1), normal(64)), _attention, Calibrated(),
       shapes="21 steps, 3 of 64, 4 heads", opinfo="nn.MultiheadAttention"),
    Op("op87", "rnn_tanh", _weights(5, 1), _recurrent("rnn_tanh"), Calibrated(), dtypes=RNN,
       shapes=SIZES, risk="MIOpen RNN", opinfo="nn.RNN", variants=_batches(1)),
    Op("op88", "lstm", _weights(5, 4), _recurrent("lstm"), Calibrated(), dtypes=RNN,
       shapes=SIZES, risk=REPORTS, opinfo="nn.LSTM", variants=_batches(4)),
    Op("op89", "gru", _weights(5, 3), _recurrent("gru"), Calibrated(), dtypes=RNN,
       shapes=SIZES, risk=REPORTS, opinfo="nn.GRU", variants=_batches(3)),
)  # fmt: skip
"""One row per operation."""
