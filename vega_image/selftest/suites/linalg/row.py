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


def worst(ratios: NDArray) -> float:
    """Return the largest ratio; 0/0 counts as nothing."""
    return float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(initial=0.0))
