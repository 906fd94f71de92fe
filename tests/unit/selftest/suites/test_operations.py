"""Operations and linear algebra: the processor is right in all, and spoilt results are not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.seam import Array, Computed
from vega_image.selftest.suites.arrays import decode, encode
from vega_image.selftest.suites.linalg.scalar import exponential
from vega_image.selftest.suites.matrix import computed
from vega_image.selftest.suites.ops.statistics import TESTS
from vega_image.selftest.suites.registry import judge, plant, prepare, trials
from vega_image.selftest.tables import cases
from vega_image.selftest.verdict import WRONG, Verdict

pytest.importorskip("torch")
OPS = [case for case in cases() if case.kind == "op"]
LINALG = [case for case in cases() if case.kind == "linalg"]


def main_trials(case: Case) -> list[Trial]:
    """Every format and direction, without the variants of other shapes."""
    return [trial for trial in trials([case], "r4") if "." not in trial.profile]


@pytest.mark.parametrize("case", OPS, ids=lambda case: case.name)
def test_the_processor_passes_every_operation(case: Case) -> None:
    for trial in main_trials(case):
        prepared = prepare(trial)
        judgement = judge(prepared, Computed(computed(prepared), 1.0))
        allowed = {Verdict.MATCH} | ({Verdict.DEGRADED} if trial.dtype != "fp32" else set())
        assert judgement.verdict in allowed, judgement.detail


@pytest.mark.parametrize("case", LINALG, ids=lambda case: case.name)
def test_the_processor_passes_linear_algebra_and_a_spoilt_factor_does_not(case: Case) -> None:
    wanted = [trial for trial in trials([case], "r2") if trial.profile == "real.0"]
    for trial in wanted:
        prepared = prepare(trial)
        right = computed(prepared)
        assert judge(prepared, Computed(right, 1.0)).verdict is Verdict.MATCH
        doubled = {name: _doubled(array) for name, array in right.items()}
        assert judge(prepared, Computed(doubled, 1.0)).verdict is not Verdict.MATCH


def _doubled(array: Array) -> Array:
    values = decode(array)
    return encode(values * 2 + 1, array.dtype)


@pytest.mark.parametrize("case", OPS, ids=lambda case: case.name)
def test_a_dropped_tile_is_wrong_in_every_operation(case: Case) -> None:
    prepared = prepare(main_trials(case)[0])
    right = prepared.oracle.reference()
    spoilt = plant("last-tile-dropped", prepared, right)
    if spoilt != right:
        assert judge(prepared, Computed(spoilt, 1.0)).verdict in WRONG


def test_an_eigenvector_of_another_matrix_of_the_batch_is_wrong() -> None:
    prepared = prepare(Trial("la20", "fwd", "fp64", "real.0"))
    right = dict(computed(prepared))
    vectors = decode(right["v3"]).copy()
    vectors[[500, 501]] = vectors[[501, 500]]
    right["v3"] = encode(vectors, "fp64")
    assert judge(prepared, Computed(right, 1.0)).verdict is Verdict.MISMATCH


def test_the_exponential_of_the_oracle_is_right_where_it_is_known() -> None:
    turned = exponential(np.array([[0.0, -np.pi / 2], [np.pi / 2, 0.0]]))
    assert np.abs(turned - np.array([[0.0, -1.0], [1.0, 0.0]])).max() < 1e-15
    assert np.abs(exponential(np.diag([20.0, -1.0])) / np.exp([20.0, -1.0])).diagonal() == (
        pytest.approx([1.0, 1.0], rel=1e-15)
    )


def spoilt_draws() -> list[tuple[str, str, int]]:
    return [("op90", "y0", 0), ("op90", "y1", 1), ("op91", "y0", 2), ("op92", "y1", 3)]


@pytest.mark.parametrize(("case", "output", "kind"), spoilt_draws())
def test_draws_that_do_not_follow_the_law_are_wrong(case: str, output: str, kind: int) -> None:
    prepared = prepare(Trial(case, "fwd", "fp32", "stat"))
    right = dict(prepared.oracle.reference())
    assert judge(prepared, Computed(right, 1.0)).verdict is Verdict.MATCH
    values = decode(right[output]).copy()
    spoilt: Mapping[int, np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = {
        0: np.where(np.arange(values.size) % 64 == 63, 0.0, values),
        1: np.roll(values, 1),
        2: values * 0.99,
        3: np.where(values == 5, 6, values),
    }
    right[output] = encode(spoilt[kind], right[output].dtype)
    assert judge(prepared, Computed(right, 1.0)).verdict is Verdict.MISMATCH
    assert set(TESTS) == {"dropout", "uniform_normal", "bernoulli_multinomial"}
