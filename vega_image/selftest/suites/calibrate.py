"""Measure c of the calibrated bounds on this processor.

The bound of an operation without an a-priori one is c u_out max |ref|; c is eight times what
a processor's own kernels need in the same format, never below eight. Measured over several
seeds, written to data/calibration.json, and honest about being measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import numpy as np

from vega_image.selftest.case import Trial
from vega_image.selftest.devices import programs
from vega_image.selftest.devices.tensors import to_array, to_tensor
from vega_image.selftest.files import write_whole
from vega_image.selftest.out import show
from vega_image.selftest.suites.arrays import UNIT, decode
from vega_image.selftest.suites.backend import load_torch
from vega_image.selftest.suites.golden_word import data_folder, note
from vega_image.selftest.suites.ops.op import Bilinear, Calibrated, Exact, Op, Statistic
from vega_image.selftest.suites.ops.oracle import OpOracle
from vega_image.selftest.suites.ops.prepare import prepare_op
from vega_image.selftest.suites.ops.table import operations
from vega_image.selftest.tables import find_case

SCHEMA = "vega-selftest-calibration/1"


def measured() -> dict[str, list[float]]:
    """Return c of each output of each calibrated trial, over an operation's variants."""
    found: dict[str, list[float]] = {}
    for op, dtype, direction in calibrated_trials():
        factors: list[float] = []
        for number in range(len(op.variants) + 1):
            profile = "real" + (f".{number}" if number else "")
            factors = _merged(factors, _of(Trial(op.id, direction, dtype, profile)))
        found[f"{op.id}:{dtype}:{direction}"] = [round(c, 4) for c in factors]
    return found


def calibrated_trials() -> Iterator[tuple[Op, str, str]]:
    """Return operation, format and direction wherever the bound is a calibrated one."""
    for op in operations().values():
        if isinstance(op.bound, (Exact, Bilinear, Statistic)):
            continue
        forward = isinstance(op.bound, Calibrated)
        for dtype in op.dtypes:
            for direction in op.directions:
                if forward or direction == "bwd":
                    yield op, dtype, direction


def _merged(one: list[float], other: list[float]) -> list[float]:
    return [max(pair) for pair in zip(one, other, strict=False)] if one else other


def _of(trial: Trial) -> list[float]:
    torch = load_torch()
    prepared = prepare_op(find_case(trial.case), trial)
    request = prepared.request
    tensors = {name: to_tensor(torch, array) for name, array in request.inputs.items()}
    outputs = programs.run(torch, request.program, tensors, request.attributes)
    oracle = prepared.oracle
    assert isinstance(oracle, OpOracle)
    factors = []
    for name, want in zip(oracle.names, oracle.main.values, strict=False):
        got = decode(to_array(torch, outputs[name]))
        size = UNIT[trial.dtype] * float(np.max(np.abs(want), initial=0.0))
        off = float(np.max(np.abs(got - want), initial=0.0))
        factors.append(off / size if size else 0.0)
    return factors


def main() -> int:
    """Write data/calibration.json from this processor."""
    folder = data_folder()
    body = {"schema": SCHEMA, "factors": measured()}
    write_whole(folder / "calibration.json", (json.dumps(body, indent=0) + "\n").encode())
    show(note(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
