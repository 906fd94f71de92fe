"""Right answers and bounds of operations: fp64 on the processor, of the rounded operands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites.arrays import HALVES, TINY, UNIT
from vega_image.selftest.suites.backend import load_torch
from vega_image.selftest.suites.conv.bounds import growth
from vega_image.selftest.suites.ops.op import (
    Bilinear,
    Bound,
    Calibrated,
    Conditioned,
    Exact,
    Op,
    Reduced,
    Ulp,
)

NDArray = npt.NDArray[Any]


def outputs_of(torch: Any, op: Op, operands: list[Any], slopes: list[Any] | None) -> list[Any]:
    """Run an operation forward, or backward where slopes (cotangents) are given.

    Backward returns a gradient for each floating operand, zero where none flows.
    """
    if slopes is None:
        return _tuple(op.run(torch, *operands))
    leaves = [
        operand.detach().requires_grad_(requires_grad=True) if given.is_float else operand
        for given, operand in zip(op.inputs, operands, strict=False)
    ]
    results = _tuple(op.run(torch, *leaves))
    flowing = [(y, v) for y, v in zip(results, slopes, strict=False) if y.requires_grad]
    sought = [leaf for leaf, given in zip(leaves, op.inputs, strict=False) if given.is_float]
    found = torch.autograd.grad(
        [y for y, _ in flowing], sought, [v.to(y.dtype) for y, v in flowing], allow_unused=True
    )
    return [
        torch.zeros_like(x) if g is None else g for g, x in zip(found, sought, strict=False)
    ]


def _tuple(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


@dataclass(frozen=True)
class OpReference:
    """fp64 results of one operation and what a device may differ from them.

    `operands` and `slopes` are fp64 numpy arrays (indices int64, flags bool); `factors` are
    the calibrated c of each output where the bound is one.
    """

    op: Op
    bound: Bound
    dtype: str
    operands: tuple[NDArray, ...]
    slopes: tuple[NDArray, ...] | None = None
    factors: tuple[float, ...] = ()

    @cached_property
    def values(self) -> list[NDArray]:
        """The fp64 results in order."""
        return [np.asarray(y) for y in self._run(self.operands, self.slopes)]

    def limits(self) -> list[NDArray]:
        """Return the bound of each element of each output; zero where it must be exact."""
        bound, u = self.bound, UNIT["fp32"]
        if isinstance(bound, Exact):
            return [np.zeros(()) for _ in self.values]
        if isinstance(bound, Bilinear):
            return self._bilinear(bound)
        if isinstance(bound, Calibrated) or self.slopes is not None:
            return self._calibrated()
        if isinstance(bound, Ulp):
            return [self._ulps(bound, np.abs(y)) for y in self.values]
        if isinstance(bound, Reduced):
            sizes = zip(bound.lengths, self._magnitudes(), self.values, strict=False)
            return [self._out(growth(n, u) * size, y) for n, size, y in sizes]
        assert isinstance(bound, Conditioned)
        return self._conditioned(bound)

    def _out(self, single: NDArray, want: NDArray) -> NDArray:
        low = UNIT[self.dtype] * np.abs(want) if self.dtype in HALVES else 0.0
        total: NDArray = single + low + TINY[self.dtype]
        return total

    def _ulps(self, bound: Ulp, size: NDArray) -> NDArray:
        low = self.dtype in HALVES
        largest = np.max(size, initial=0.0) if low and bound.absolute else size
        stored = bound.stored * UNIT[self.dtype] * size if low else 0.0
        return self._out(2 * bound.ulps * UNIT["fp32"] * largest + stored, size)

    def _bilinear(self, bound: Bilinear) -> list[NDArray]:
        terms = bound.terms if self.slopes is None else bound.slope_terms
        factor = growth(terms, UNIT["fp32"])
        unit = UNIT[self.dtype]
        return [
            factor * size + unit * np.abs(y) + TINY[self.dtype]
            for size, y in zip(self._magnitudes(), self.values, strict=False)
        ]

    def _calibrated(self) -> list[NDArray]:
        unit = UNIT[self.dtype]
        return [
            np.asarray(c * unit * np.max(np.abs(y), initial=0.0) + TINY[self.dtype])
            for c, y in zip(self.factors, self.values, strict=False)
        ]

    def _conditioned(self, bound: Conditioned) -> list[NDArray]:
        torch = load_torch()
        results = [torch.from_numpy(y) for y in self.values]
        given = [torch.from_numpy(x) for x in self.operands]
        unit = UNIT[self.dtype if bound.stored else "fp32"]
        sizes = [bound.size(torch, given, y, unit) for y in results]
        return [
            self._out(np.asarray(size), y) for size, y in zip(sizes, self.values, strict=False)
        ]

    def _magnitudes(self) -> list[NDArray]:
        absolute = tuple(np.abs(x) if x.dtype == np.float64 else x for x in self.operands)
        slopes = None if self.slopes is None else tuple(np.abs(v) for v in self.slopes)
        return [np.asarray(y) for y in self._run(absolute, slopes)]

    def squares(self) -> list[NDArray]:
        """Return the sums of the squares of the products of each element of each output."""
        squared = tuple(x * x if x.dtype == np.float64 else x for x in self.operands)
        slopes = None if self.slopes is None else tuple(v * v for v in self.slopes)
        return [np.asarray(y) for y in self._run(squared, slopes)]

    def _run(
        self, operands: tuple[NDArray, ...], slopes: tuple[NDArray, ...] | None
    ) -> list[NDArray]:
        torch = load_torch()
        given = [torch.from_numpy(np.array(x)) for x in operands]
        back = None if slopes is None else [torch.from_numpy(np.array(v)) for v in slopes]
        return [y.detach().numpy() for y in outputs_of(torch, self.op, given, back)]
