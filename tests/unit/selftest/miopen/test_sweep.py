"""Steps of a sweep, what its verdicts are worth, and what an earlier run leaves to do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vega_image.selftest.case import Case
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.journal import Entry, read_entries
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.miopen.problem import directed_key
from vega_image.selftest.miopen.readback import ReadBack, read_back
from vega_image.selftest.miopen.solvers import candidates, parse, solvers
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result
from vega_image.selftest.sweep import (
    UNASKED,
    Origin,
    Step,
    child_environ,
    entry,
    forced,
    judge,
    plan,
    settled,
    wanted_solvers,
)
from vega_image.selftest.sweeping import required
from vega_image.selftest.tables import find_case
from vega_image.selftest.threefold import threefold
from vega_image.selftest.verdict import Verdict

ROOT = Path(__file__).resolve().parents[4]
LOGS = ROOT / "tests" / "data" / "miopen-logs"
FORWARD = "3-224-224-7x7-64-112-112-1-3x3-2x2-1x1-0-NCHW-FP32-F"
KEY = "64-112-112-7x7-3-224-224-1-3x3-2x2-1x1-0-NCHW-FP32-W"
MATCH = Judgement(Verdict.MATCH, 0, 0, "integer")
ORIGIN = Origin("replay", {"arch": "gfx906", "cu": 60, "driver": "6.19"}, "1", "a" * 64, "none")
GEMM = "GemmWrwUniversal"


def case() -> Case:
    return find_case("conv0000")


def steps(direction: str = "W") -> dict[str, Step]:
    made = plan([(case(), direction, "fp32")], wanted_solvers("all"))
    return {step.solver.name: step for step in made}


def ran(name: str) -> ReadBack:
    db = LOGS / f"{name}.ufdb.txt"
    text = db.read_text() if db.is_file() else ""
    return read_back((LOGS / f"{name}.log").read_text(), text, keys=[KEY])


def test_keys_of_backward_directions_begin_with_dy() -> None:
    assert directed_key(FORWARD, "W") == KEY == steps()[GEMM].key
    assert directed_key(FORWARD, "F") == FORWARD
    with pytest.raises(ValueError, match="not a forward key"):
        directed_key(KEY, "W")


def test_every_case_of_the_table_has_a_key_in_each_direction() -> None:
    table = ROOT / "vega_image/selftest/data/conv.jsonl"
    keys = [json.loads(line)["miopen_key"] for line in table.read_text().splitlines()]
    assert len(keys) == 1016
    assert len({directed_key(key, way) for key in keys for way in "FBW"}) == 3048


def test_the_solver_table() -> None:
    assert len({solver.name for solver in solvers()}) == len(solvers()) == 102
    assert not any("MPBidirect" in solver.name for solver in candidates("F"))
    assert not any("Mlir" in solver.name for way in "FBW" for solver in candidates(way))
    assert {GEMM, "ConvOclBwdWrW2<1>"} <= {s.name for s in candidates("W")}
    with pytest.raises(ValueError, match="fields"):
        parse("name\nConvX\n")


def test_each_candidate_is_a_step_with_a_name_fit_for_a_folder() -> None:
    made = steps()
    assert set(made) == {solver.name for solver in candidates("W")}
    assert len({step.name for step in made.values()}) == len(made)
    assert all(set(step.name) <= set("convfpFBW-0123456789") for step in made.values())


def test_forcing_leaves_nothing_of_miopens_but_the_one_solver(tmp_path: Path) -> None:
    variables = forced(GEMM, tmp_path / "step")
    recorded = json.loads((LOGS / "recordings.json").read_text())["forced-gemm-W"]
    shown = {name: value.replace("WORK", str(tmp_path / "step"))
             for name, value in recorded["environment"].items()}  # fmt: skip
    cache = {"MIOPEN_CUSTOM_CACHE_DIR": str(tmp_path / "kernels")}
    assert variables == {**shown, **cache}
    base = {"PATH": "/bin", "MIOPEN_FIND_ENFORCE": "4", "MIOPEN_DEBUG_CONV_GEMM": "0"}
    assert child_environ(base, variables) == {"PATH": "/bin", **variables}


def test_solvers_may_be_named() -> None:
    names = wanted_solvers(f"{GEMM},ConvOclBwdWrW2<1>")
    made = plan([(case(), way, "fp32") for way in "FW"], names)
    assert [step.solver.name for step in made] == ["ConvOclBwdWrW2<1>", GEMM]
    with pytest.raises(SelftestError, match="no convolution solver 'Gemm'") as caught:
        wanted_solvers("Gemm")
    assert "GemmBwdRest" in caught.value.hint
    with pytest.raises(SelftestError, match="no convolution among"):
        plan([(case(), "F", "fp32")], names)
    for nonsense in ("", ",", "all,"):
        with pytest.raises(SelftestError):
            wanted_solvers(nonsense)


def test_the_forced_solver_ran() -> None:
    assert judge(steps()[GEMM], MATCH, ran("forced-gemm-W")) == MATCH


def test_a_right_answer_of_another_solver_is_substituted() -> None:
    step = steps()["ConvOclBwdWrW53"]
    for given in (MATCH, Judgement(Verdict.MISMATCH, 1, 0, "integer")):
        found = judge(step, given, ran("only-list-system-hit-W"))
        assert found.verdict is Verdict.SUBSTITUTED
        assert GEMM in found.detail


def test_a_refusal_is_unsupported_unless_the_child_died() -> None:
    step, refused = steps()[GEMM], ran("forced-not-applicable-W")
    crashed = Judgement(Verdict.CRASHED, None, None, "integer")
    assert judge(step, MATCH, refused).verdict is Verdict.UNSUPPORTED
    assert judge(step, crashed, refused).verdict is Verdict.UNSUPPORTED
    assert judge(step, crashed, refused, died=True) == crashed
    late = Judgement(Verdict.TIMED_OUT, None, None, "integer")
    assert judge(step, late, refused) == late
    assert judge(step, crashed, ran("forced-gemm-W")) == crashed


def test_silence_proves_nothing() -> None:
    found = judge(steps()[GEMM], MATCH, ReadBack("", "neither"))
    assert (found.verdict, found.detail) == (Verdict.UNPROVEN, "neither")


def record(kind: str, **rest: object) -> TrialRecord:
    base = TrialRecord(kind, Verdict.MATCH, "", kind, 0.0, 0.0, repeatable=True)
    return replace(base, **rest)  # type: ignore[arg-type]


def words(**records: TrialRecord) -> list[str]:
    given = {"integer": record("integer"), "real": record("real"), **records}
    return [judgement.verdict.value for judgement in threefold(given).values()]


def test_three_oracles_from_two_trials() -> None:
    wrong = record("integer", verdict=Verdict.MISMATCH, error=1.0)
    late = record("real", verdict=Verdict.TIMED_OUT, repeatable=None)
    odd = record("integer", verdict=Verdict.MISMATCH, oracle="hygiene", repeatable=False)
    dirty = record("integer", verdict=Verdict.MISMATCH, oracle="hygiene", error=None,
                   detail="memory beside", repeatable=True)  # fmt: skip
    assert words() == ["MATCH", "MATCH", "MATCH"]
    assert words(integer=wrong) == ["MISMATCH", "MATCH", "MATCH"]
    assert words(real=late) == ["MATCH", "TIMED_OUT", "TIMED_OUT"]
    assert words(integer=odd) == ["MATCH", "MATCH", "MISMATCH"]
    assert words(integer=dirty) == ["UNPROVEN", "MATCH", "MISMATCH"]
    once = record("integer", repeatable=None)
    assert words(integer=once) == ["MATCH", "MATCH", "UNPROVEN"]
    # A wrong result that does not repeat keeps its own oracle; hygiene still says no.
    both = record("integer", verdict=Verdict.MISMATCH, error=1.0, repeatable=False)
    assert words(integer=both) == ["MISMATCH", "MATCH", "MISMATCH"]
    # Real sums may be added in any order.
    assert words(real=record("real", repeatable=False)) == ["MATCH", "MATCH", "MATCH"]


def line(solver: str = GEMM, **rest: object) -> Entry:
    judgement = Judgement(Verdict.MATCH, 0, 0, str(rest.pop("oracle", "integer")))
    made = entry(steps()[solver], judgement, ran=ran("forced-gemm-W"), origin=ORIGIN)
    return replace(made, **rest)  # type: ignore[arg-type]


def test_the_journal_line_is_complete() -> None:
    (made,) = read_entries(line().to_line())
    assert (made.key, made.solver, made.solver_ran) == (KEY, GEMM, GEMM)
    assert made.algo == "miopenConvolutionBwdWeightsAlgoGEMM"
    assert (made.time_ms, made.workspace_bytes) == (1.0754, 7375872)
    assert (made.perf_config, made.driver, made.source) == ("default", "6.19", "replay")
    assert (made.lib_sha256, made.db_sha256, made.suite) == ("a" * 64, "none", "1")
    assert made.seed == line("ConvOclBwdWrW53").seed != line(oracle="real").seed


def test_what_an_earlier_run_settled_holds_for_the_same_question_only() -> None:
    held = line()
    assert settled([held], ORIGIN) == {held.trial: held}
    for other in (
        replace(ORIGIN, lib_sha256="b" * 64),
        replace(ORIGIN, suite="2"),
        replace(ORIGIN, source="cpu"),
        replace(ORIGIN, identity={**ORIGIN.identity, "driver": "6.20"}),
        replace(ORIGIN, identity={**ORIGIN.identity, "unique_id": "0x2"}),
    ):
        assert settled([held], other) == {}
    again = replace(held, detail=f"{UNASKED}the budget ended")
    assert settled([again], ORIGIN) == {}
    assert settled([replace(held, solver="")], ORIGIN) == {}


def test_a_solver_may_be_unsupported_where_another_is_not() -> None:
    def one(direction: str, solver: str, verdict: Verdict) -> Result:
        trial = steps(direction)[solver].trial("integer")
        return Result(case(), trial, TrialRecord(trial.key, verdict))

    no, yes = Verdict.UNSUPPORTED, Verdict.MATCH
    found = list(
        required(
            [one("W", GEMM, yes), one("W", "ConvOclBwdWrW53", no), one("F", "GemmFwdRest", no)]
        )
    )
    assert [result.required for result in found] == [True, False, True]
