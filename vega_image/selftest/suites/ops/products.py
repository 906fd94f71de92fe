"""Products of whole numbers in numpy: the answer that torch does not give itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.seam import Array
from vega_image.selftest.suites.arrays import encode
from vega_image.selftest.suites.ops.op import Bilinear, Contraction
from vega_image.selftest.suites.ops.oracle import GUARD, OpOracle
from vega_image.selftest.suites.ops.reference import OpReference

NDArray = npt.NDArray[Any]


def product(oracle: OpOracle) -> Mapping[str, Array]:
    """Return all outputs of a product's trial, guard included."""
    found = dict(zip(oracle.names, computed(oracle.main), strict=True))
    if oracle.guard is not None:
        guards = (GUARD + name for name in oracle.names)
        found.update(zip(guards, computed(oracle.guard), strict=True))
    return {name: encode(value, oracle.main.dtype) for name, value in found.items()}


def computed(reference: OpReference) -> list[NDArray]:
    """Return the result, or the gradient of each operand, of a contraction."""
    bound = reference.bound
    assert isinstance(bound, Bilinear)
    rule = bound.contraction
    assert rule is not None
    if reference.slopes is None:
        return [_forward(rule, reference.operands)]
    return _backward(rule, reference.operands, reference.slopes[0])


def _forward(rule: Contraction, operands: tuple[NDArray, ...]) -> NDArray:
    y: NDArray = rule.alpha * _einsum(rule.spec, *_pair(rule, operands))
    return y if rule.c < 0 else y + rule.beta * operands[rule.c]


def _backward(
    rule: Contraction, operands: tuple[NDArray, ...], slope: NDArray
) -> list[NDArray]:
    a, b = _pair(rule, operands)
    names, _, out = rule.spec.partition("->")
    first, _, second = names.partition(",")
    found = [np.zeros(())] * len(operands)
    found[rule.a] = rule.alpha * _einsum(f"{out},{second}->{first}", slope, b, like=a)
    found[rule.b] = rule.alpha * _einsum(f"{out},{first}->{second}", slope, a, like=b)
    if rule.c >= 0:
        found[rule.c] = rule.beta * _summed(slope, operands[rule.c].shape)
    return found


def _pair(rule: Contraction, operands: tuple[NDArray, ...]) -> tuple[NDArray, NDArray]:
    return operands[rule.a], operands[rule.b]


def _einsum(spec: str, a: NDArray, b: NDArray, *, like: NDArray | None = None) -> NDArray:
    names, _, out = spec.partition("->")
    missing = [i for i, letter in enumerate(out) if letter not in names.replace(",", "")]
    y: NDArray = np.einsum(names + "->" + "".join(x for x in out if x in names), a, b)
    for axis in missing:
        # A size of one that was broadcast away comes back as itself.
        y = np.expand_dims(y, axis)
    return y if like is None else y.reshape(like.shape)


def _summed(slope: NDArray, shape: tuple[int, ...]) -> NDArray:
    leading = tuple(range(slope.ndim - len(shape)))
    return slope.sum(axis=leading) if leading else slope
