"""The checker finds what kernels get wrong, and nothing else."""

from __future__ import annotations

import pytest

from vega_image.selftest.suites import matrix
from vega_image.selftest.suites.matrixdoc import false_alarms, written
from vega_image.selftest.suites.plant import FAULTS

pytest.importorskip("torch")

# A format's own numbers lose nothing when they are rounded to it, nor to a wider one.
POWERLESS = {("fp16-internal", dtype, way) for dtype in ("fp16", "bf16") for way in "FBW"} | {
    ("bf16-internal", "bf16", way) for way in "FBW"
}
# Gradients times 2^-20 leave the range of fp16 while they are numbers of bf16.
POWERLESS_SMALL = POWERLESS - {("fp16-internal", "bf16", way) for way in "BW"}


@pytest.mark.parametrize("scale", [1.0, matrix.SMALL], ids=["as drawn", "gradients 1e-6"])
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_seen_wherever_it_has_power(fault: str, scale: float) -> None:
    cells = [
        matrix.cell(fault, direction, dtype, seeds=len(matrix.EVERY) // 2, scale=scale)
        for dtype in matrix.DTYPES
        for direction in matrix.DIRECTIONS
    ]
    assert not matrix.shortfalls(tuple(cells))
    powerless = {(c.fault, c.dtype, c.direction) for c in cells if not c.applicable}
    expected = POWERLESS if scale == 1.0 else POWERLESS_SMALL
    assert powerless == {key for key in expected if key[0] == fault}


def test_no_false_alarm_in_more_than_300_clean_runs() -> None:
    runs, alarms = false_alarms(seeds=1)
    assert runs >= 300
    assert alarms == 0


@pytest.mark.slow
def test_the_whole_matrix_keeps_its_promise() -> None:
    _, short = written()
    assert not short


def test_a_matrix_that_misses_something_says_so() -> None:
    place = matrix.Place(matrix.EVERY[0], "F", "fp32", 0)
    missed = matrix.Run("lost-update", place, applicable=True, seen=False)
    cell = matrix.Cell("lost-update", "F", "fp32", (missed,))
    assert matrix.shortfalls((cell,)) == ["lost-update F fp32: 0 % of 1"]
