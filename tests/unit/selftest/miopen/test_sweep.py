"""Forcing a solver, and reading back which one ran, from texts written after MIOpen's formats.

tests/data/miopen/README says what these texts are, and that no card wrote them.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.selftest.case import Trial
from vega_image.selftest.journal import read_entries
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.miopen.problem import directed_key
from vega_image.selftest.miopen.readback import log_solvers, parse_find_db, read_back
from vega_image.selftest.miopen.solvers import candidates, parse, solvers
from vega_image.selftest.sweep import (
    Origin,
    Step,
    child_environ,
    dry_run,
    entry,
    judge,
    plan,
    user_find_db,
)
from vega_image.selftest.verdict import Verdict

DATA = Path(__file__).resolve().parents[3] / "data" / "miopen"
FORWARD = "3-224-224-7x7-64-112-112-1-3x3-2x2-1x1-0-NCHW-FP32-F"
KEY = "64-112-112-7x7-3-224-224-1-3x3-2x2-1x1-0-NCHW-FP32-W"
TRIAL = Trial("conv0000", "W", "fp32", "int")
MATCH = Judgement(Verdict.MATCH, 0, 0, "integer")
ORIGIN = Origin("replay", {"arch": "gfx906", "cu": 60}, "6.19", "test")


def text(name: str) -> str:
    return (DATA / name).read_text()


GEMM_LOG, GEMM_DB = text("gemm-wrw.log"), text("gemm-wrw.ufdb.txt")
LEGACY_DB = text("legacy.ufdb.txt")


def steps(tmp_path: Path) -> dict[str, Step]:
    made = plan([TRIAL], {"conv0000": FORWARD}, command=["vega-selftest", "run"], work=tmp_path)
    return {step.solver.name: step for step in made}


@given(st.text(), st.text(), st.text())
def test_no_text_is_an_error(log: str, find_db: str, key: str) -> None:
    read_back(log, find_db, keys=[key])


names = st.text(st.sampled_from("ConvWrG<>-123"), min_size=1, max_size=20)


@given(names, st.integers(0, 10**12), st.floats(0.001, 1e4))
def test_both_forms_of_a_record_are_read_alike(name: str, size: int, ms: float) -> None:
    algo, time = "miopenConvolutionFwdAlgoDirect", f"{ms:.5f}"
    current = parse_find_db(f"k={name}:{time},{size},{algo}\n")
    legacy = parse_find_db(f"k={algo}:{name},{time},{size},{algo},<unused>\n")
    assert current == legacy
    assert current["k"][0].solver == name
    assert current["k"][0].workspace == size


@given(names)
def test_a_name_comes_back_from_either_log_line(name: str) -> None:
    assert log_solvers(f"x FW Chosen Algorithm: {name} , 0, 1.5") == (name,)
    assert log_solvers(f"x solver_id = {name}, workspace = 0") == (name,)


def test_keys_of_backward_directions_begin_with_dy() -> None:
    assert directed_key(FORWARD, "W") == KEY
    assert directed_key(FORWARD, "F") == FORWARD
    with pytest.raises(ValueError, match="not a forward key"):
        directed_key(KEY, "W")


def test_every_case_of_the_table_has_a_key_in_each_direction() -> None:
    table = Path(__file__).resolve().parents[4] / "vega_image/selftest/data/conv.jsonl"
    keys = [json.loads(line)["miopen_key"] for line in table.read_text().splitlines()]
    assert len(keys) == 1016
    assert len({directed_key(key, way) for key in keys for way in "FBW"}) == 3048


def test_the_solver_table() -> None:
    assert len(solvers()) == 102
    assert len({solver.name for solver in solvers()}) == 102
    assert not any("MPBidirect" in solver.name for solver in candidates("F"))
    assert not any("Mlir" in solver.name for way in "FBW" for solver in candidates(way))
    assert {"GemmWrwUniversal", "ConvOclBwdWrW2<1>"} <= {s.name for s in candidates("W")}
    with pytest.raises(ValueError, match="fields"):
        parse("name\nConvX\n")


def test_each_candidate_is_forced_alone_in_a_fresh_place(tmp_path: Path) -> None:
    made = steps(tmp_path)
    assert set(made) == {solver.name for solver in candidates("W")}
    assert len({step.user_db for step in made.values()}) == len(made)
    for name, step in made.items():
        assert step.environ["MIOPEN_DEBUG_FIND_ONLY_SOLVER"] == name
        assert step.environ["MIOPEN_FIND_MODE"] == "1"
        assert step.trial.solver == name


def test_nothing_of_miopen_is_inherited(tmp_path: Path) -> None:
    step = steps(tmp_path)["GemmWrwUniversal"]
    base = {"PATH": "/bin", "MIOPEN_FIND_ENFORCE": "4", "MIOPEN_DEBUG_CONV_GEMM": "0"}
    assert child_environ(base, step) == {"PATH": "/bin", **step.environ}


def test_the_dry_run_prints_what_would_run(tmp_path: Path) -> None:
    step = steps(tmp_path)["ConvOclBwdWrW2<1>"]
    (line,) = dry_run([step])
    words = shlex.split(line)
    assert "MIOPEN_DEBUG_FIND_ONLY_SOLVER=ConvOclBwdWrW2<1>" in words
    assert f"MIOPEN_USER_DB_PATH={step.user_db}" in words
    assert words[-len(step.argv) :] == list(step.argv)


def test_the_forced_solver_ran(tmp_path: Path) -> None:
    step = steps(tmp_path)["GemmWrwUniversal"]
    judgement, ran = judge(step, MATCH, log=GEMM_LOG, find_db=GEMM_DB)
    assert judgement.verdict is Verdict.MATCH
    assert (ran.time_ms, ran.workspace) == (2.77183, 73859072)


def test_a_right_answer_of_another_solver_is_substituted(tmp_path: Path) -> None:
    step = steps(tmp_path)["ConvOclBwdWrW53"]
    judgement, ran = judge(step, MATCH, log=GEMM_LOG, find_db=GEMM_DB)
    assert judgement.verdict is Verdict.SUBSTITUTED
    assert ran.solver == "GemmWrwUniversal"
    wrong = Judgement(Verdict.MISMATCH, 1, 0, "integer")
    assert judge(step, wrong, log=GEMM_LOG, find_db="")[0].verdict is Verdict.SUBSTITUTED


def test_the_find_db_alone_tells(tmp_path: Path) -> None:
    step = steps(tmp_path)["ConvOclBwdWrW2<1>"]
    judgement, ran = judge(step, MATCH, log="", find_db=LEGACY_DB)
    assert judgement.verdict is Verdict.MATCH
    assert ran.algo == "miopenConvolutionBwdWeightsAlgoDirect"


def test_log_and_find_db_that_disagree_prove_nothing(tmp_path: Path) -> None:
    step = steps(tmp_path)["GemmWrwUniversal"]
    judgement, ran = judge(step, MATCH, log=GEMM_LOG, find_db=LEGACY_DB)
    assert judgement.verdict is Verdict.UNPROVEN
    assert "ConvOclBwdWrW2<1>" in ran.why


def test_silence_proves_nothing_and_a_refusal_is_unsupported(tmp_path: Path) -> None:
    step = steps(tmp_path)["GemmWrwUniversal"]
    assert judge(step, MATCH, log="", find_db="")[0].verdict is Verdict.UNPROVEN
    refused = judge(step, MATCH, log=text("refused.log"), find_db="")[0]
    assert refused.verdict is Verdict.UNSUPPORTED
    crashed = Judgement(Verdict.CRASHED, None, None, "integer")
    assert judge(step, crashed, log=GEMM_LOG, find_db="")[0].verdict is Verdict.CRASHED


def test_immediate_mode_names_its_solver() -> None:
    assert log_solvers(text("immediate.log")) == ("ConvDirectNaiveConvFwd",)


def test_the_journal_says_what_was_forced_and_what_ran(tmp_path: Path) -> None:
    step = steps(tmp_path)["ConvOclBwdWrW53"]
    judgement, ran = judge(step, MATCH, log=GEMM_LOG, find_db=GEMM_DB)
    (line,) = read_entries(entry(step, judgement, ran=ran, origin=ORIGIN).to_line())
    assert (line.key, line.solver, line.solver_ran) == (
        KEY,
        "ConvOclBwdWrW53",
        "GemmWrwUniversal",
    )
    assert (line.verdict, line.source, line.oracle) == ("SUBSTITUTED", "replay", "integer")


def test_the_db_a_child_wrote_is_found_by_its_ending(tmp_path: Path) -> None:
    assert user_find_db(tmp_path) == ""
    (tmp_path / "gfx906_60.HIP.3_5_1_.ufdb.txt").write_text(text("gemm-wrw.ufdb.txt"))
    (tmp_path / "gfx906_60.HIP.3_5_1_.ufdb.txt.time").write_text("1")
    assert list(parse_find_db(user_find_db(tmp_path))) == [KEY]
