"""The tables are whole, and every trial of a level is one thing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from vega_image.selftest import tables
from vega_image.selftest.case import LEVELS, Case
from vega_image.selftest.suites.plan import trials
from vega_image.selftest.suites.replay_case import replayed


def test_all_cases_are_there() -> None:
    kinds = Counter(case.kind for case in tables.cases())
    assert kinds == {"op": 98, "linalg": 20, "conv": 1016, "regression": 29}
    checks = sum(len(case.directions) for case in tables.cases() if case.kind == "conv")
    assert checks == 3048
    assert {case.layout for case in tables.cases() if case.kind == "conv"} == {"NCHW", "NHWC"}


@pytest.mark.parametrize("level", LEVELS)
def test_trials_have_names_of_their_own_and_levels_add_up(level: str) -> None:
    keys = [trial.key for trial in trials(tables.cases(), level)]
    assert len(keys) == len(set(keys))
    for lower in LEVELS[: LEVELS.index(level)]:
        assert {trial.key for trial in trials(tables.cases(), lower)} <= set(keys)


def test_what_all_else_rests_on_comes_first() -> None:
    first = list(dict.fromkeys(trial.case for trial in trials(tables.cases(), "r2")))
    assert first[:2] == ["op95", "op27"]


def test_r4_asks_every_case_in_every_direction_and_format() -> None:
    asked = {(t.case, t.direction, t.dtype) for t in trials(tables.cases(), "r4")}
    for case in tables.cases():
        if case.kind == "regression":
            assert any(case.id == name for name, _, _ in asked)
            continue
        wanted = {(case.id, way, dtype) for way in case.directions for dtype in case.dtypes}
        assert wanted <= asked


def test_repeats_ask_the_same_again() -> None:
    case = tables.find_case("op01")
    reps = [trial.rep for trial in trials([case], "r2", repeats=3)]
    assert reps == [0, 1, 2] * 2


def test_every_replay_names_something_that_exists() -> None:
    for case in tables.cases():
        if case.kind != "regression":
            continue
        for trial in trials([case], "r4"):
            replay = replayed(case, trial)
            if replay["kind"] == "conv":
                continue
            target = tables.find_case(replay.get("op") or replay["case"])
            assert replay["direction"] in target.directions
            assert replay["dtype"] in target.dtypes


FIRST = tables.cases()[0]


@pytest.mark.parametrize(
    "broken",
    [
        replace(FIRST, source=""),
        replace(FIRST, why=""),
        replace(FIRST, tier="r9"),
        replace(FIRST, bound=""),
    ],
)
def test_a_case_without_a_reason_is_refused(broken: Case) -> None:
    with pytest.raises(tables.TableError):
        tables.check((broken, *tables.cases()[1:]))


def test_a_shorter_suite_is_refused() -> None:
    with pytest.raises(tables.TableError, match="97 cases instead of 98"):
        tables.check(tables.cases()[1:])


def test_an_unknown_case_is_offered_what_is_near() -> None:
    with pytest.raises(tables.UnknownCaseError, match="cholesky"):
        tables.find_case("cholesk")
    assert tables.find_case("MIOpen#1242").kind == "regression"
