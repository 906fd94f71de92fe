"""What a broken device might return that an oracle could let pass: none of it may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from vega_image.selftest import hygiene
from vega_image.selftest.case import Case, Trial
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array, Computed
from vega_image.selftest.suites.arrays import FLOATS, decode, encode, numbers
from vega_image.selftest.suites.compare import exactly, within
from vega_image.selftest.suites.matrix import computed
from vega_image.selftest.suites.prepared import Prepared
from vega_image.selftest.suites.registry import judge, prepare, trials
from vega_image.selftest.tables import cases
from vega_image.selftest.verdict import Verdict

pytest.importorskip("torch")
SLOW = {"la20"}
OPS = [case for case in cases() if case.kind == "op"]
LINALG = [case for case in cases() if case.kind == "linalg" and case.id not in SLOW]
GOOD = {Verdict.MATCH, Verdict.DEGRADED}
MOVES = ("gather", "index_select", "embedding", "cat_split", "pad", "where", "masked_fill")
JUDGED = [case for case in OPS if case.oracle != "statistic"]
# any_all gives flags; its variants ask for every value of them.
EXACT = [case for case in OPS if case.oracle == "integer" and case.name != "any_all"]


def first(case: Case) -> Prepared:
    return prepare(next(trial for trial in trials([case], "r2") if "stat" not in trial.profile))


def said(prepared: Prepared, outputs: Mapping[str, Array]) -> Judgement:
    return judge(prepared, Computed(outputs, 1.0))


def bent(array: Array, change: Callable[[np.ndarray], None]) -> Array:
    values = decode(array).copy()
    change(values)
    return encode(values, array.dtype)


def named(name: str) -> Case:
    return next(case for case in OPS if case.name == name)


@pytest.mark.parametrize("case", [*JUDGED, *LINALG], ids=lambda case: case.name)
def test_nothing_but_zeros_is_never_right(case: Case) -> None:
    prepared = first(case)
    right = computed(prepared)
    assert said(prepared, right).verdict in GOOD
    dead = {name: replace(a, data=bytes(len(a.data))) for name, a in right.items()}
    assert said(prepared, dead).verdict not in GOOD


@pytest.mark.parametrize("case", LINALG, ids=lambda case: case.name)
def test_no_output_of_linear_algebra_may_be_zero_or_huge(case: Case) -> None:
    for trial in trials([case], "r2"):
        prepared = prepare(trial)
        right = computed(prepared)
        for name, array in right.items():
            zero = replace(array, data=bytes(len(array.data)))
            if zero.data != array.data and decode(array).any():
                assert said(prepared, {**right, name: zero}).verdict not in GOOD, trial.key
            if array.dtype == "fp64" and array.shape:
                huge = bent(array, last(1e200))
                assert said(prepared, {**right, name: huge}).verdict not in GOOD, trial.key


def last(value: float) -> Callable[[np.ndarray], None]:
    def change(values: np.ndarray) -> None:
        values.reshape(-1)[-1] = value

    return change


@pytest.mark.parametrize("case", EXACT, ids=lambda case: case.name)
def test_no_exact_operation_expects_one_number_everywhere(case: Case) -> None:
    for name, array in first(case).oracle.reference().items():
        values = decode(array)
        assert (values != values.flat[0]).any(), name


@pytest.mark.parametrize("name", MOVES)
def test_numbers_that_are_moved_keep_the_sign_of_their_zeros(name: str) -> None:
    prepared = first(named(name))
    right = computed(prepared)
    turned = {key: bent(array, unsigned) for key, array in right.items()}
    assert said(prepared, right).verdict is Verdict.MATCH
    if any(turned[key].data != right[key].data for key in right):
        assert said(prepared, turned).verdict is Verdict.MISMATCH


def unsigned(values: np.ndarray) -> None:
    values[values == 0.0] = -0.0


def test_a_cast_keeps_the_sign_of_zero() -> None:
    prepared = prepare(Trial("op94", "fwd", "fp32", "real.1"))
    right = computed(prepared)
    lost = {key: bent(array, absolute) for key, array in right.items()}
    assert said(prepared, right).verdict is Verdict.MATCH
    assert said(prepared, lost).verdict is Verdict.MISMATCH


def absolute(values: np.ndarray) -> None:
    values[values == 0.0] = 0.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_not_a_number_among_whole_numbers_is_not_finite(dtype: str) -> None:
    want = np.arange(8.0)
    spoilt = want.copy()
    spoilt[3] = np.nan
    found = exactly("y", encode(spoilt, dtype), want)
    assert found.wrong == 1
    assert found.not_finite


def test_a_byte_that_is_no_truth_value_is_wrong() -> None:
    want = np.array([True, False])
    assert exactly("y", Array((2,), "bool", b"\x01\x00"), want).wrong == 0
    assert exactly("y", Array((2,), "bool", b"\x02\x00"), want).wrong == 1


@pytest.mark.parametrize("bound", [np.inf, np.nan])
def test_a_bound_that_excuses_anything_is_an_error(bound: float) -> None:
    want = np.ones(3)
    with pytest.raises(ValueError, match="not finite"):
        within("y", encode(want, "fp32"), want, np.array([1.0, bound, 1.0]))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda y: replace(y, shape=y.shape[::-1]),
        lambda y: replace(y, shape=(*y.shape, 1)),
        lambda y: replace(y, dtype="i32"),
        lambda y: replace(y, data=y.data[:-4]),
        lambda y: replace(y, data=b"", shape=(0, *y.shape[1:])),
    ],
)
def test_another_shape_or_type_is_wrong(spoil: Callable[[Array], Array]) -> None:
    prepared = prepare(Trial("op27", "fwd", "fp32", "int"))
    right = computed(prepared)
    assert said(prepared, {"y0": spoil(right["y0"])}).verdict is Verdict.MISMATCH
    assert said(prepared, {}).verdict is Verdict.MISMATCH


def test_answers_to_what_was_not_asked_and_unread_inputs_are_flaws() -> None:
    prepared = prepare(Trial("op27", "fwd", "fp32", "int"))
    request = prepared.request
    right = computed(prepared)
    hashes = {name: hygiene.input_hash(array) for name, array in request.inputs.items()}

    def flaws(outcome: Computed) -> str:
        return "; ".join(hygiene.flaws(request, outcome, flops=0.0, identity={}))

    assert not flaws(Computed(right, 1.0, inputs_sha256=hashes))
    assert "not asked for" in flaws(Computed({**right, "z": right["y0"]}, 1.0))
    partly = {"x0": hashes["x0"]}
    assert "was not read back" in flaws(Computed(right, 1.0, inputs_sha256=partly))


def test_a_reflector_that_is_stored_wrong_is_seen() -> None:
    case = next(case for case in LINALG if case.name == "householder_product")
    prepared = prepare(next(iter(trials([case], "r2"))))
    right = computed(prepared)
    held = numbers(right["h"]).copy()
    held[-1] = 0
    lost = replace(right["h"], data=held.tobytes())
    assert said(prepared, {**right, "h": lost}).verdict is Verdict.MISMATCH
