"""What a row of linear algebra says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]
Arrays = Mapping[str, NDArray]
Params = Mapping[str, Any]
Draw = Callable[[Params, str], dict[str, NDArray]]
Compute = Callable[[Any, Mapping[str, Any], Params], dict[str, Any]]
Residual = Callable[[Arrays, Arrays, float, Params], float]


@dataclass(frozen=True)
class Row:
    """One case: operands drawn, what the device computes, how far off that is.

    `residual(inputs, outputs, u, params)` gets fp64 arrays and gives the criterion's value,
    to be compared with the threshold of the case.
    """

    id: str
    name: str
    outputs: tuple[str, ...]
    draw: Draw
    compute: Compute
    residual: Residual

    def returned(self, params: Params) -> tuple[str, ...]:
        """Return the outputs' names; a batch sequence has four for each of its sizes."""
        if self.outputs:
            return self.outputs
        return tuple(f"{letter}{i}" for i in range(len(params["batch"])) for letter in "xiwv")

    def run(self, torch: Any, inputs: Mapping[str, Any], params: Params) -> dict[str, Any]:
        """Compute on the device whose tensors the inputs are."""
        return self.compute(torch, inputs, params)


def gamma(terms: int, u: float) -> float:
    """Return n u / (1 - n u)."""
    return terms * u / (1 - terms * u)


def norm1(a: NDArray) -> float:
    """Return the largest column sum of magnitudes."""
    return float(np.abs(a).sum(axis=-2).max(initial=0.0))


def frobenius(a: NDArray) -> float:
    """Return the root of the sum of squares."""
    return float(np.sqrt(np.sum(np.abs(a) ** 2)))


def backward(a: NDArray, x: NDArray, b: NDArray, u: float) -> float:
    """Return the backward error of a x = b over n u, of each right side by itself."""
    size = norm1(a.T) * np.abs(x).max(axis=0) + np.abs(b).max(axis=0)
    return worst(np.abs(b - a @ x).max(axis=0), size * a.shape[0] * u)


def worst(off: NDArray, size: NDArray) -> float:
    """Return the largest share; 0/0 counts as nothing, what is no number as infinite."""
    shares = np.where(off == 0.0, 0.0, off / size)
    return _largest(shares)


def largest(*values: float) -> float:
    """Return the largest value; infinite where one is no number, which `max` would lose."""
    return _largest(np.asarray(values, dtype=np.float64))


def _largest(values: NDArray) -> float:
    found = float(np.max(values, initial=0.0))
    return float("inf") if np.isnan(found) else found
