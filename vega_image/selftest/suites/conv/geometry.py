"""The shape of a convolution and what follows from it; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import cast

Shape = tuple[int, int, int, int]
FORWARD, DATA, WEIGHTS = "F", "B", "W"


@dataclass(frozen=True)
class Geometry:
    """n images of c channels, h x w, into k channels through k filters of r x s."""

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the output."""
        size = zip(
            (self.h, self.w),
            self.pad,
            self.dilation,
            (self.r, self.s),
            self.stride,
            strict=False,
        )
        found = [(i + 2 * p - d * (f - 1) - 1) // t + 1 for i, p, d, f, t in size]
        return found[0], found[1]

    @property
    def x(self) -> Shape:
        """Shape of the input."""
        return self.n, self.c, self.h, self.w

    @property
    def weights(self) -> Shape:
        """Shape of the filters."""
        return self.k, self.c // self.groups, self.r, self.s

    @property
    def y(self) -> Shape:
        """Shape of the output."""
        return (self.n, self.k, *self.out)

    @property
    def flops(self) -> float:
        """Floating-point operations of one direction."""
        return 2.0 * prod(self.y) * prod(self.weights[1:])

    def operands(self, direction: str) -> tuple[Shape, Shape]:
        """Return the shapes of what a direction reads.

        F reads x and w, B reads dy and w, W reads x and dy.
        """
        shapes = {
            FORWARD: (self.x, self.weights),
            DATA: (self.y, self.weights),
            WEIGHTS: (self.x, self.y),
        }
        return shapes[direction]

    def result(self, direction: str) -> Shape:
        """Return the shape of what a direction writes."""
        return {FORWARD: self.y, DATA: self.x, WEIGHTS: self.weights}[direction]

    def terms(self, direction: str) -> int:
        """Return the most products that add up to one element of the result."""
        # A dilation that shares a divisor with the stride makes more taps meet one pixel.
        steps = (t // gcd(t, d) for t, d in zip(self.stride, self.dilation, strict=False))
        taps = prod(ceil(f / t) for f, t in zip((self.r, self.s), steps, strict=False))
        counts = {
            FORWARD: prod(self.weights[1:]),
            DATA: self.k // self.groups * min(self.r * self.s, taps),
            WEIGHTS: self.n * prod(self.out),
        }
        return counts[direction]

    def __str__(self) -> str:
        pairs = "s{}x{} p{}x{} d{}x{}".format(*self.stride, *self.pad, *self.dilation)
        sizes = f"{self.n}x{self.c}x{self.h}x{self.w} -> {self.k}, {self.r}x{self.s}"
        return f"{sizes} {pairs} g{self.groups}"


def from_params(params: Mapping[str, object]) -> Geometry:
    """Read a geometry from a case's parameters.

    >>> row = {"N": 1, "C": 3, "H": 8, "W": 8, "K": 4, "R": 3, "S": 3, "stride": [1, 1],
    ...        "pad": [1, 1], "dilation": [1, 1], "groups": 1}
    >>> from_params(row).y
    (1, 4, 8, 8)
    """
    sizes = [cast("int", params[key]) for key in "NCHWKRS"]
    pairs = [cast("list[int]", params[key]) for key in ("stride", "pad", "dilation")]
    stride, pad, dilation = ((pair[0], pair[1]) for pair in pairs)
    n, c, h, w, k, r, s = sizes
    groups = cast("int", params["groups"])
    return Geometry(n, c, h, w, k, r, s, stride, pad, dilation, groups)
