"""Make a trial of an operation ready."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.datafiles import table
from vega_image.selftest.devices.tensors import to_array, to_tensor
from vega_image.selftest.seam import Array, Request
from vega_image.selftest.suites import rng
from vega_image.selftest.suites.arrays import FLOATS, HALVES, decode, encode
from vega_image.selftest.suites.backend import load_torch
from vega_image.selftest.suites.conv.inputs import Range, guard_range, integer_range
from vega_image.selftest.suites.ops.inputs import draw, slope, whole
from vega_image.selftest.suites.ops.op import Bilinear, Bound, Calibrated, Op, Statistic
from vega_image.selftest.suites.ops.oracle import GUARD, OpOracle
from vega_image.selftest.suites.ops.reference import OpReference, outputs_of
from vega_image.selftest.suites.ops.statistics import StatisticOracle
from vega_image.selftest.suites.ops.table import operations
from vega_image.selftest.suites.prepared import Prepared

NDArray = npt.NDArray[Any]
Operands = tuple[tuple[NDArray, ...], tuple[NDArray, ...] | None]
MARGIN = 8.0
SCALED = 4
"""Room for alpha and beta of 2 and 0.5: two more bits, and a term for the addend."""


def prepare_op(case: Case, trial: Trial) -> Prepared:
    """Draw operands, and the oracle that knows the answer."""
    op, bound = chosen(trial)
    name = stem(op, trial)
    if isinstance(bound, Statistic):
        return _random(case, trial, op, bound)
    integers = trial.profile.startswith("int")
    main = _operands(op, bound, trial, name=name)
    reference = _reference(op, bound, trial, operands=main)
    guard = None
    arrays = _arrays(op, main, trial.dtype)
    if isinstance(bound, Bilinear) and trial.dtype in HALVES:
        drawn = _whole_operands(op, bound, trial, name=f"{name}/guard")
        guard = _reference(op, bound, trial, operands=drawn)
        arrays.update({GUARD + k: v for k, v in _arrays(op, drawn, trial.dtype).items()})
    letter = "d" if trial.direction == "bwd" else "y"
    names = tuple(f"{letter}{i}" for i in range(len(reference.values)))
    formats = tuple(_format(y, trial.dtype) for y in reference.values)
    oracle = OpOracle(reference, integers, names, formats, guard, name)
    request = Request(
        trial.key,
        f"op.{op.id}",
        arrays,
        {"direction": trial.direction, "variant": _variant(trial)},
        trial.dtype,
        oracle.wanted,
    )
    return Prepared(trial, case, request, oracle, _where(op, trial), _flops(bound, reference))


def _random(case: Case, trial: Trial, op: Op, bound: Statistic) -> Prepared:
    name = stem(op, trial)
    drawn = tuple(draw(item, f"{name}/{i}") for i, item in enumerate(op.inputs))
    arrays = _arrays(op, (drawn, None), trial.dtype)
    torch = load_torch()
    given = [to_tensor(torch, array) for array in arrays.values()]
    right = {
        f"y{i}": to_array(torch, y) for i, y in enumerate(outputs_of(torch, op, given, None))
    }
    oracle = StatisticOracle(bound.test, arrays, right)
    request = Request(
        trial.key,
        f"op.{op.id}",
        arrays,
        {"direction": "fwd", "variant": 0},
        trial.dtype,
        oracle.wanted,
    )
    return Prepared(trial, case, request, oracle, _where(op, trial))


def chosen(trial: Trial) -> tuple[Op, Bound]:
    """Return the operation as the variant that a profile names sets it, and its bound."""
    op = operations()[trial.case]
    number = _variant(trial)
    bound = op.variants[number - 1].bound if number else None
    return op.as_variant(number), bound or op.bound


def _variant(trial: Trial) -> int:
    return int(trial.profile.partition(".")[2] or 0)


def stem(op: Op, trial: Trial) -> str:
    """Return what seeds and goldens are named by: not by the repeat, nor by the solver."""
    return f"{op.id}:{trial.dtype}:{trial.direction}:{trial.profile}"


def _operands(op: Op, bound: Bound, trial: Trial, *, name: str) -> Operands:
    if trial.profile.startswith("int"):
        return _whole_operands(op, bound, trial, name=name)
    given = tuple(draw(item, f"{name}/{i}") for i, item in enumerate(op.inputs))
    held = tuple(_held(x, trial.dtype) for x in given)
    if trial.direction != "bwd":
        return held, None
    shapes = [y.shape for y in OpReference(op, bound, trial.dtype, held).values]
    return held, tuple(slope(shape, f"{name}/v{i}") for i, shape in enumerate(shapes))


def _whole_operands(op: Op, bound: Bound, trial: Trial, *, name: str) -> Operands:
    assert isinstance(bound, Bilinear), "integers are for sums of products"
    backward = trial.direction == "bwd"
    terms = bound.slope_terms if backward else bound.terms
    if bound.contraction is not None and bound.contraction.c >= 0:
        terms = SCALED * (terms + 1)
    guarded = name.endswith("/guard")
    drawn = (
        guard_range(terms, trial.dtype) if guarded else integer_range(terms, trial.dtype, "int")
    )
    most = min(drawn.a, drawn.b)
    given = [whole(item.shape, most, f"{name}/{i}") for i, item in enumerate(op.inputs)]
    thinned = bound.contraction.a if bound.contraction is not None else 0
    if not backward:
        given[thinned] = _thinned(given[thinned], drawn, name)
        return tuple(given), None
    shape = OpReference(op, bound, trial.dtype, tuple(given)).values[0].shape
    return tuple(given), (_thinned(whole(shape, most, f"{name}/v0"), drawn, name),)


def _thinned(values: NDArray, drawn: Range, name: str) -> NDArray:
    if drawn.share >= 1.0:
        return values
    return np.where(
        rng.keep(rng.seed_of(f"{name}/keep"), drawn.share, values.shape), values, 0.0
    )


def _reference(op: Op, bound: Bound, trial: Trial, *, operands: Operands) -> OpReference:
    factors = calibrated(op, trial) if _needs_factors(bound, trial) else ()
    return OpReference(op, bound, trial.dtype, *operands, factors)


def _needs_factors(bound: Bound, trial: Trial) -> bool:
    return isinstance(bound, Calibrated) or trial.direction == "bwd"


def calibrated(op: Op, trial: Trial) -> tuple[float, ...]:
    """Return c of each output: the processor's own, at least 1, times 8."""
    measured = _calibration().get(f"{op.id}:{trial.dtype}:{trial.direction}", [])
    return tuple(MARGIN * max(1.0, c) for c in measured)


@lru_cache(maxsize=1)
def _calibration() -> Mapping[str, list[float]]:
    factors: Mapping[str, list[float]] = json.loads(table("calibration.json"))["factors"]
    return factors


def _held(values: NDArray, dtype: str) -> NDArray:
    return decode(encode(values, dtype)) if values.dtype == np.float64 else values


def _arrays(op: Op, operands: Operands, dtype: str) -> dict[str, Array]:
    given, slopes = operands
    arrays = {
        f"x{i}": encode(x, dtype if item.is_float else _format(x, dtype))
        for i, (item, x) in enumerate(zip(op.inputs, given, strict=False))
    }
    arrays.update({f"v{i}": encode(v, dtype) for i, v in enumerate(slopes or ())})
    return arrays


def _format(values: NDArray, dtype: str) -> str:
    kinds = {"f": dtype, "i": "i64", "b": "bool", "u": "u8"}
    found = kinds[values.dtype.kind]
    assert found in FLOATS or found in {"i64", "bool", "u8"}
    return found


def _where(op: Op, trial: Trial) -> str:
    shapes = ", ".join(str(tuple(item.shape)) for item in op.inputs)
    return f"{op.id} {op.name} {trial.direction} {trial.dtype} {trial.profile} [{shapes}]"


def _flops(bound: Bound, reference: OpReference) -> float:
    if not isinstance(bound, Bilinear):
        return 0.0
    if reference.slopes is None:
        return 2.0 * bound.terms * float(reference.values[0].size)
    return 2.0 * bound.terms * float(reference.slopes[0].size) * 2
