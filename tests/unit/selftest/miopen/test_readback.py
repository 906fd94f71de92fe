"""Read-back against what the real libMIOpen 7.2.4 said (tests/data/miopen-logs/README)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.selftest.miopen.readback import (
    chosen,
    only_solver,
    parse_find_db,
    perf_config,
    read_back,
)

DATA = Path(__file__).resolve().parents[3] / "data" / "miopen-logs"
CONV1 = "64-112-112-7x7-3-224-224-1-3x3-2x2-1x1-0-NCHW-FP32-W"
FORWARD = "3-224-224-7x7-64-112-112-1-3x3-2x2-1x1-0-NCHW-FP32-F"
SMALL = "64-32-32-3x3-3-32-32-1-1x1-1x1-1x1-0-NCHW-FP32-W"


def log(name: str) -> str:
    return (DATA / f"{name}.log").read_text()


def find_db(name: str) -> str:
    path = DATA / f"{name}.ufdb.txt"
    return path.read_text() if path.is_file() else ""


def back(name: str, key: str = CONV1) -> tuple[str, bool]:
    found = read_back(log(name), find_db(name), keys=[key])
    return found.solver, found.refused


@pytest.mark.parametrize(
    ("name", "key", "solver"),
    [
        ("forced-gemm-F", FORWARD, "GemmFwdRest"),
        ("forced-gemm-B", CONV1[:-1] + "B", "GemmBwdRest"),
        ("forced-gemm-W", CONV1, "GemmWrwUniversal"),
        ("forced-naive-F", FORWARD, "ConvDirectNaiveConvFwd"),
        ("forced-naive-B", CONV1[:-1] + "B", "ConvDirectNaiveConvBwd"),
        ("forced-naive-W", CONV1, "ConvDirectNaiveConvWrw"),
        ("forced-ConvOclBwdWrW21-W", CONV1, "ConvOclBwdWrW2<1>"),
        ("forced-level6-W", CONV1, "GemmWrwUniversal"),
        ("forced-commands-W", CONV1, "GemmWrwUniversal"),
        (
            "forced-nhwc-F",
            "3-32-32-3x3-16-32-32-2-1x1-1x1-1x1-0-NHWC-NHWC-NHWC-FP16-F",
            "ConvDirectNaiveConvFwd",
        ),
        (
            "forced-nhwc-1x1-W",
            "16-32-32-1x1-3-32-32-2-0x0-1x1-1x1-0-NHWC-NHWC-NHWC-FP16-W",
            "ConvDirectNaiveConvWrw",
        ),
        (
            "forced-bf16-W",
            "16-32-32-3x3-3-32-32-2-1x1-1x1-1x1-0-NCHW-BF16-W",
            "ConvDirectNaiveConvWrw",
        ),
    ],
)
def test_a_forced_solver_is_read_back_from_log_and_db(name: str, key: str, solver: str) -> None:
    forced = json.loads((DATA / "recordings.json").read_text())[name]["environment"]
    assert forced["MIOPEN_DEBUG_FIND_ONLY_SOLVER"] == solver
    assert back(name, key) == (solver, False)
    assert only_solver(find_db(name)) == solver
    # Either source alone says the same.
    assert read_back(log(name), "", keys=[key]).solver == solver
    assert read_back("", find_db(name), keys=[key]).solver == solver


def test_numbers_come_with_it() -> None:
    found = read_back(log("forced-gemm-W"), find_db("forced-gemm-W"), keys=[CONV1])
    assert found.algo == "miopenConvolutionBwdWeightsAlgoGEMM"
    assert (found.time_ms, found.workspace) == (1.0754, 7375872)


@pytest.mark.parametrize(
    ("name", "key", "why"),
    [
        ("forced-not-applicable-W", CONV1, "not applicable"),
        ("forced-wrong-direction-W", CONV1, "not applicable"),
        ("forced-ConvOclBwdWrW53-W", CONV1, "not applicable"),
        ("forced-unknown-W", CONV1, "no such solver"),
        ("forced-asm-W", SMALL, "kernel source is not in this MIOpen"),
        ("forced-build-fails-W", CONV1, "does not compile"),
        ("list-switched-off-W", CONV1, "not applicable"),
        ("immediate-forced-W", CONV1, "not applicable"),
    ],
)
def test_refusals_are_told_apart(name: str, key: str, why: str) -> None:
    found = read_back(log(name), find_db(name), keys=[key])
    assert (found.solver, found.refused) == ("", True)
    assert why in found.why


def test_a_tuned_run_says_with_what_it_ran() -> None:
    tuned = (DATA / "tuned-W.udb.txt").read_text()
    assert back("tuned-W") == ("ConvOclBwdWrW2<1>", False)
    assert perf_config(tuned, "ConvOclBwdWrW2<1>") == "3,11,3,8,9"
    assert perf_config(tuned, "ConvOclBwdWrW2<2>") == "default"


def test_a_race_leaves_all_its_runners_and_only_the_log_knows_who_won() -> None:
    items = parse_find_db(find_db("normal-find-W"))[CONV1]
    assert {item.solver for item in items} >= {"GemmWrwUniversal", "ConvDirectNaiveConvWrw"}
    found = read_back(log("normal-find-W"), find_db("normal-find-W"), keys=[CONV1])
    assert (found.solver, found.time_ms) == ("ConvOclBwdWrW2<1>", 0.3919)
    blind = read_back("", find_db("normal-find-W"), keys=[CONV1])
    assert blind.solver == ""
    assert "more than one" in blind.why
    assert only_solver(find_db("normal-find-W")) == ""


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("hybrid-system-hit-W", "GemmWrwUniversal"),
        ("hybrid-system-hit-legacy-W", "ConvDirectNaiveConvWrw"),
        ("hybrid-user-hit-W", "ConvDirectNaiveConvWrw"),
        ("immediate-W", "GemmWrwUniversal"),
        ("immediate-system-hit-W", "GemmWrwUniversal"),
    ],
)
def test_hits_and_the_immediate_mode_name_their_solver(name: str, solver: str) -> None:
    assert back(name) == (solver, False)


@pytest.mark.parametrize(
    "name", ["only-list-system-hit-W", "only-list-user-hit-W", "immediate-list-W"]
)
def test_the_list_alone_does_not_force(name: str) -> None:
    rows = json.loads((DATA / "recordings.json").read_text())
    listed = rows[name]["environment"]["MIOPEN_DEBUG_FIND_ONLY_SOLVER"]
    assert listed == "ConvDirectNaiveConvWrw"
    assert back(name) == ("GemmWrwUniversal", False)


@pytest.mark.parametrize(
    "name",
    ["only-list-miss-W", "list-and-normal-system-hit-W", "list-and-normal-user-hit-W"],
)
def test_the_list_with_normal_find_forces_whatever_the_dbs_say(name: str) -> None:
    assert back(name) == ("ConvDirectNaiveConvWrw", False)


def test_a_record_in_the_db_does_not_answer_for_a_refused_find() -> None:
    # The real library drops the record that a refused find did not renew.
    name = "list-and-normal-user-hit-notapplicable-W"
    assert back(name) == ("", True)
    assert find_db(name) == ""
    stale = (DATA / f"{name}.user-before.txt").read_text()
    found = read_back(log(name), stale, keys=[CONV1])
    assert (found.solver, found.refused) == ("", True)


def test_each_choice_belongs_to_the_problem_before_it() -> None:
    both = log("forced-naive-F") + log("forced-gemm-W")
    assert [(said.solver, said.key) for said in chosen(both)] == [
        ("ConvDirectNaiveConvFwd", FORWARD),
        ("GemmWrwUniversal", CONV1),
    ]
    assert read_back(both, "", keys=[CONV1]).solver == "GemmWrwUniversal"
    # Lines of a hit name no problem: with another find beside them nothing is known.
    unsure = log("hybrid-user-hit-W") + log("forced-gemm-W")
    assert "more than one" in read_back(unsure, "", keys=[CONV1]).why


def test_a_db_of_another_problem_and_one_that_disagrees_prove_nothing() -> None:
    other = read_back("", find_db("forced-gemm-F"), keys=[CONV1])
    assert other.solver == ""
    assert FORWARD in other.why
    odd = read_back(log("forced-gemm-W"), find_db("forced-naive-W"), keys=[CONV1])
    assert odd.solver == ""
    assert "ConvDirectNaiveConvWrw" in odd.why


@given(st.text(), st.text(), st.text())
def test_no_text_is_an_error(text: str, records: str, key: str) -> None:
    read_back(text, records, keys=[key])
    only_solver(records)
    perf_config(text, key)


names = st.text(st.sampled_from("ConvWrG<>-123"), min_size=1, max_size=20)


@given(names, st.integers(0, 10**12), st.floats(0.001, 1e4))
def test_both_forms_of_a_record_are_read_alike(name: str, size: int, ms: float) -> None:
    algo, time = "miopenConvolutionFwdAlgoDirect", f"{ms:.5f}"
    current = parse_find_db(f"k={name}:{time},{size},{algo}\n")
    legacy = parse_find_db(f"k={algo}:{name},{time},{size},{algo},<unused>\n")
    assert current == legacy
    assert (current["k"][0].solver, current["k"][0].workspace) == (name, size)
