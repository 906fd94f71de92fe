"""Faults of operations that are not convolutions of the table: those that operands can show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.seam import Array
from vega_image.selftest.suites import rng
from vega_image.selftest.suites.arrays import decode, encode, rounded
from vega_image.selftest.suites.ops.op import Bilinear
from vega_image.selftest.suites.ops.oracle import GUARD, OpOracle
from vega_image.selftest.suites.ops.reference import OpReference

NDArray = npt.NDArray[Any]
Change = Callable[[NDArray], NDArray]


def plant_op(
    fault: str, oracle: OpOracle, outputs: Mapping[str, Array], *, name: str
) -> Mapping[str, Array]:
    """Return the outputs with a fault; the same where the operation cannot have it."""
    if not isinstance(oracle.main.bound, Bilinear):
        return outputs
    found = dict(outputs)
    for prefix, reference in (("", oracle.main), (GUARD, oracle.guard)):
        if reference is None:
            continue
        for which, spoiled in enumerate(_spoiled(fault, reference, name)):
            key = prefix + oracle.names[which]
            changed = spoiled != reference.values[which]
            was = decode(outputs[key])
            found[key] = encode(np.where(changed, spoiled, was), outputs[key].dtype)
    return found


def _spoiled(fault: str, reference: OpReference, name: str) -> list[NDArray]:
    if fault in {"fp16-internal", "bf16-internal"}:
        return _again(reference, lambda x: rounded(x, fault.partition("-")[0]))
    if fault == "k-tail-dropped":
        return _again(reference, _without_last)
    if fault == "fp16-accumulation":
        return [_coarse(y) for y in reference.values]
    if fault == "swapped-channels":
        return [_swapped(y, name) for y in reference.values]
    if fault == "lost-update":
        return [_lost(y, reference, name) for y in reference.values]
    return reference.values


def _again(reference: OpReference, change: Change) -> list[NDArray]:
    def on(values: tuple[NDArray, ...]) -> tuple[NDArray, ...]:
        return tuple(change(x) if x.dtype == np.float64 else x for x in values)

    slopes = None if reference.slopes is None else on(reference.slopes)
    return replace(reference, operands=on(reference.operands), slopes=slopes).values


def _without_last(x: NDArray) -> NDArray:
    shorter = x.copy()
    shorter.reshape(-1)[-max(1, x.shape[-1] // 8) :] = 0.0
    return shorter


def _coarse(y: NDArray) -> NDArray:
    return rounded(y * (1 + 2.0**-10), "fp16")


def _swapped(y: NDArray, name: str) -> NDArray:
    if y.ndim == 0 or y.shape[0] < 2:  # noqa: PLR2004 - nothing to swap
        return y
    first = rng.seed_of(name) % y.shape[0]
    order = np.arange(y.shape[0])
    second = (first + 1) % y.shape[0]
    order[first], order[second] = second, first
    return y[order]


def _lost(y: NDArray, reference: OpReference, name: str) -> NDArray:
    lessened = y.copy()
    flat = lessened.reshape(-1)
    flat[rng.seed_of(name) % flat.size] -= float(np.abs(reference.operands[0]).max())
    return lessened
