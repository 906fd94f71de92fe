"""What a row of an operation's family says; standard library only.

A row's functions take the torch module first, so that nothing is imported to list the cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Union

ALL = ("fp32", "fp16", "bf16")
FP32 = ("fp32",)
Function = Callable[..., Any]


@dataclass(frozen=True)
class Input:
    """One operand: how its values are drawn, its shape, and the one number some kinds take.

    `normal` (times `number`, plus `offset`), `positive` in [0.1, 3.1), `uniform` in
    [-1, 1), `integer` in +-8, `distinct` integers, `index` below `number`, `flag`.
    """

    kind: str
    shape: tuple[int, ...]
    number: float = 1.0
    offset: float = 0.0

    @property
    def is_float(self) -> bool:
        """Whether it has the trial's number format, and a gradient."""
        return self.kind not in {"index", "flag", "bytes"}


@dataclass(frozen=True)
class Exact:
    """Right to the bit: the fp64 result rounded once.

    `moved`: the forward result is operands, moved; then zeros keep their signs.
    """

    moved: bool = False
    formula: str = "bit-exact against the fp64 result rounded once; integers make sums exact"


@dataclass(frozen=True)
class Ulp:
    """At most `ulps` of fp32, doubled, and the rounding to a shorter output.

    For 16-bit formats, where a kernel was seen to need it: `stored` intermediate results that
    it rounds to the format as well; `absolute`: polynomials made for the largest value.
    """

    ulps: float
    stored: int = 0
    absolute: bool = False

    @property
    def formula(self) -> str:
        """The bound in words."""
        size = "max |ref|" if self.absolute else "|ref|"
        times = f"{1 + self.stored} " if self.stored else ""
        return f"2 * {self.ulps} u32 {size} + [16 bit] {times}u_out |ref| + tiny"


@dataclass(frozen=True)
class Reduced:
    """A sum of `lengths[i]` terms in output i; `magnitude` is the op on magnitudes."""

    lengths: tuple[int, ...]
    formula: str = "min(gamma_n(u32), 8 sqrt(n) u32) * op(|x|) + u_out |ref| + tiny"


@dataclass(frozen=True)
class Contraction:
    """y = alpha * einsum(spec, a, b) + beta * c: how numpy does what torch is asked.

    `c`, `a` and `b` are positions of the operands; c is -1 where there is none.
    """

    spec: str
    a: int = 0
    b: int = 1
    c: int = -1
    alpha: float = 1.0
    beta: float = 1.0


@dataclass(frozen=True)
class Bilinear:
    """Linear in each operand; `terms` products an output, `slope_terms` a gradient."""

    terms: int
    slope_terms: int
    contraction: Contraction | None = None

    @property
    def formula(self) -> str:
        """The bound in words."""
        return (
            f"min(gamma_n(u32), 8 sqrt(n) u32) * op(|a|, |b|) + u_out |ref| + tiny, "
            f"n = {self.terms} + 2, gradients {self.slope_terms} + 2; integers: bit-exact; "
            "DEGRADED: sums rounded in a 16-bit format, guard exact"
        )


@dataclass(frozen=True)
class Conditioned:
    """Per element from the operation's condition number.

    `size(torch, inputs, reference, u)` gives the fp32 part of the bound for each output.
    `stored` says why 16-bit formats are allowed the same with their own u, if they are:
    intermediate values that kernels keep in the format.
    """

    size: Function
    formula: str
    stored: str = ""


@dataclass(frozen=True)
class Calibrated:
    """max |error| <= c u_out max |ref|, c = 8 max(1, c of the processor): measured."""

    formula: str = "max |e| <= c u_out max |ref|, c = 8 max(1, c measured on a CPU)"


@dataclass(frozen=True)
class Statistic:
    """Judged as a distribution by the test of this name in ops/statistics.py."""

    test: str
    formula: str


Bound = Union[  # noqa: UP007 - evaluated when imported
    Exact, Ulp, Reduced, Bilinear, Conditioned, Calibrated, Statistic
]


@dataclass(frozen=True)
class Variant:
    """The same operation on other shapes, or otherwise set, from a level on."""

    tier: str
    inputs: tuple[Input, ...]
    bound: Bound | None = None
    run: Function | None = None


@dataclass(frozen=True)
class Op:
    """One of the 98 operations; `run(torch, *operands)` returns a tensor or a tuple."""

    id: str
    name: str
    inputs: tuple[Input, ...]
    run: Function
    bound: Bound
    dtypes: tuple[str, ...] = ALL
    grad: bool = True
    shapes: str = ""
    risk: str = ""
    variants: tuple[Variant, ...] = field(default=())
    opinfo: str = ""

    @property
    def directions(self) -> tuple[str, ...]:
        """Forward, and backward where it is differentiable."""
        return ("fwd", "bwd") if self.grad else ("fwd",)

    def as_variant(self, number: int) -> Op:
        """Return the operation as a variant sets it, counting from 1; 0 is itself."""
        if not number:
            return self
        variant = self.variants[number - 1]
        return replace(self, inputs=variant.inputs, run=variant.run or self.run)


def normal(*shape: int, scale: float = 1.0, offset: float = 0.0) -> Input:
    """Draw numbers around an offset, bell-shaped."""
    return Input("normal", shape, scale, offset)


def positive(*shape: int) -> Input:
    """Draw numbers in [0.1, 3.1)."""
    return Input("positive", shape)


def uniform(*shape: int) -> Input:
    """Draw numbers in [-1, 1)."""
    return Input("uniform", shape)


def integer(*shape: int) -> Input:
    """Draw whole numbers in +-8."""
    return Input("integer", shape)


def distinct(*shape: int) -> Input:
    """Draw whole numbers, no two alike, around zero."""
    return Input("distinct", shape)


def index(limit: int, *shape: int) -> Input:
    """Draw indices below a limit, repeats included."""
    return Input("index", shape, limit)


def flag(*shape: int, share: float = 0.5) -> Input:
    """Draw True for about a share of the places, False elsewhere."""
    return Input("flag", shape, share)


def constant(value: float, *shape: int) -> Input:
    """Put the same number everywhere."""
    return Input("constant", shape, value)
