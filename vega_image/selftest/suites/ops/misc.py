"""Copies, casts, transforms, random numbers, optimisers and a training step."""

from __future__ import annotations

from math import log2
from typing import Any

from vega_image.selftest.suites.ops.op import (
    FP32,
    Calibrated,
    Conditioned,
    Exact,
    Input,
    Op,
    Statistic,
    Variant,
    index,
    normal,
    positive,
)

FAMILY = "misc"
SEED = 906
DRAWS = 1 << 18
STEPS = 10
LEARNING = 20
RATE = 0.05
SCALE, HALVED = 4.0, 2.0


def _dropout(t: Any, x: Any) -> Any:
    t.manual_seed(SEED)
    leaf = x.detach().requires_grad_(requires_grad=True)
    with t.enable_grad():
        dropped = t.nn.functional.dropout(leaf, 0.5)
        (slope,) = t.autograd.grad(dropped.sum(), leaf)
    t.manual_seed(SEED)
    again = t.nn.functional.dropout(x, 0.5)
    return dropped.detach(), slope, again, t.nn.functional.dropout(x, 0.1)


def _uniform_normal(t: Any, x: Any) -> Any:
    t.manual_seed(SEED)
    first = (t.rand_like(x), t.randn_like(x))
    t.manual_seed(SEED)
    return (*first, t.rand_like(x))


def _bernoulli_multinomial(t: Any, weights: Any) -> Any:
    t.manual_seed(SEED)
    coins = t.bernoulli(t.full((DRAWS,), 0.3, dtype=weights.dtype, device=weights.device))
    return coins, t.multinomial(weights, DRAWS, replacement=True)


def _fft(t: Any, a: Any) -> Any:
    return t.view_as_real(t.fft.fft2(a))


def _fft_size(t: Any, inputs: Any, reference: Any, u: float) -> Any:
    points = inputs[0].shape[-1] * inputs[0].shape[-2]
    size = inputs[0].pow(2).sum((-2, -1)).sqrt().amax()
    return t.full_like(reference, 6 * log2(points) * u * float(size))


def _cast(t: Any, a: Any) -> Any:
    return t.stack([a.to(t.float16).to(a.dtype), a.to(t.bfloat16).to(a.dtype)])


def _optimise(name: str, **settings: Any) -> Any:
    def run(t: Any, p: Any, g: Any) -> Any:
        weight = p.detach().clone().requires_grad_(requires_grad=True)
        optimiser = getattr(t.optim, name)([weight], foreach=True, **settings)
        for _ in range(STEPS):
            weight.grad = g + 0.5 * weight.detach()
            optimiser.step()
        return weight.detach()

    return run


def _learn(t: Any, x: Any, labels: Any, *weights: Any) -> Any:
    """Train three layers under autocast; fp64 operands mean: the reference, without it."""
    f = t.nn.functional
    exact = x.dtype == t.float64
    wide = t.float64 if exact else t.float32
    leaves = [w.detach().to(wide).clone().requires_grad_(requires_grad=True) for w in weights]
    losses = []
    for _ in range(LEARNING):
        with t.enable_grad(), t.autocast(x.device.type, dtype=x.dtype, enabled=not exact):
            hidden = f.relu(f.conv2d(x.to(wide), leaves[0], padding=1, stride=2))
            hidden = f.relu(f.conv2d(hidden, leaves[1], padding=1, stride=2))
            scores = f.linear(hidden.mean((2, 3)), leaves[2])
            loss = f.cross_entropy(scores.to(wide), labels)
        slopes = t.autograd.grad(loss, leaves)
        leaves = [
            (w - RATE * s).detach().requires_grad_(requires_grad=True)
            for w, s in zip(leaves, slopes, strict=False)
        ]
        losses.append(loss.detach())
    return t.stack(losses).to(x.dtype), _skips(t, x)


def _skips(t: Any, x: Any) -> Any:
    """Return 1 where a scaled step with an infinite gradient leaves its weight alone."""
    if x.dtype == t.float64:
        return t.ones((), dtype=x.dtype)
    weight = t.ones(3, device=x.device, requires_grad=True)
    optimiser = t.optim.SGD([weight], lr=1.0)
    scaler = t.amp.GradScaler(x.device.type, init_scale=SCALE)
    with t.enable_grad():
        scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimiser)
    scaler.update()
    return ((weight.detach() == 1.0).all() & (scaler.get_scale() == HALVED)).to(x.dtype)


def _bytes(*shape: int) -> tuple[Input, ...]:
    return (Input("bytes", shape),)


def _image(*shape: int) -> Variant:
    return Variant("r3", (normal(*shape),))


STATISTICS = "2^18 draws; z <= 6 (2.0e-9 false alarms)"

OPS = (
    Op("op90", "dropout", (positive(DRAWS),), _dropout,
       Statistic("dropout", "|z| <= 6; kept values exactly x / (1 - p); the masks of "
                 "gradient and repeat are the output's"),
       dtypes=FP32, grad=False, shapes=STATISTICS, risk="offsets of the Philox generator",
       opinfo="nn.functional.dropout"),
    Op("op91", "rng_uniform_normal", (positive(DRAWS + 3),), _uniform_normal,
       Statistic("uniform_normal", "|z| <= 6 of mean and variance; Kolmogorov-Smirnov "
                 "D sqrt(n) <= 3.2; none equal to 1; the same seed, the same bits"),
       dtypes=FP32, grad=False, shapes="2^18 + 3", opinfo="rand_like, randn_like"),
    Op("op92", "bernoulli_multinomial", (positive(64),), _bernoulli_multinomial,
       Statistic("bernoulli_multinomial", "|z| <= 6; chi-squared with p > 1e-9"),
       dtypes=FP32, grad=False, shapes="2^18 draws, 64 classes",
       opinfo="bernoulli, multinomial"),
    Op("op93", "fft", (normal(4, 60, 64),), _fft,
       Conditioned(_fft_size, "6 log2(n) u32 max ||x||_2: Higham, 24.1"), dtypes=FP32,
       shapes="4x60x64; 97x97, 1x1000, 1x65536 at r3", risk="rocFFT; odd and prime lengths",
       opinfo="fft.fft2",
       variants=(_image(2, 97, 97), _image(1, 1, 1000), _image(1, 1, 1 << 16))),
    Op("op94", "cast_fp16_bf16", (normal(65, 257),), _cast, Exact(moved=True),
       dtypes=FP32, grad=False,
       shapes="(65,257); every fp16 number, ties of bf16, NaN, infinities",
       risk="gfx906 has no bf16: rounding is software", opinfo="to",
       variants=(Variant("r2", (Input("patterns", (4, 1 << 16)),)),)),
    Op("op95", "h2d_d2h_roundtrip", _bytes((1 << 20) + 1), lambda _, x: x.clone(), Exact(),
       dtypes=FP32, grad=False, shapes="1 MiB + 1; 1, 4095, 64 Ki + 3 bytes; 16 and 64 MiB + 7",
       risk="ROCm#2156: NaN after the copy on a Radeon VII; rocm-systems PR#1469",
       variants=(Variant("r1", _bytes(1)), Variant("r1", _bytes(4095)),
                 Variant("r2", _bytes((1 << 16) + 3)), Variant("r3", _bytes(1 << 24)),
                 Variant("r3", _bytes((1 << 26) + 7)))),
    Op("op96", "sgd_momentum", (normal(65, 33), normal(65, 33)),
       _optimise("SGD", lr=0.1, momentum=0.9, weight_decay=0.01), Calibrated(), dtypes=FP32,
       grad=False, shapes="(65,33), 10 steps", opinfo="optim.SGD"),
    Op("op97", "adamw", (normal(65, 33), normal(65, 33)), _optimise("AdamW", lr=0.01),
       Calibrated(), dtypes=FP32, grad=False, shapes="(65,33), 10 steps",
       opinfo="optim.AdamW"),
    Op("op98", "autocast_amp_step",
       (normal(16, 3, 16, 16), index(4, 16), normal(8, 3, 3, 3, scale=0.3),
        normal(16, 8, 3, 3, scale=0.2), normal(4, 16, scale=0.5)), _learn, Calibrated(),
       dtypes=("fp16", "bf16"), grad=False,
       shapes="3 layers on 3 channels, 20 steps; the scaler skips a step with infinities",
       risk="the historic bug: training that does not learn", opinfo="autocast, GradScaler"),
)  # fmt: skip
"""One row per operation."""
