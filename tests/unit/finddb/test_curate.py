"""The curated db: only what is proven, or the fallback, and a reason for all that is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.finddbevidence import (
    C3W,
    DB,
    FWD,
    JOURNALS,
    curated,
    evidence,
    line,
    passed,
    served,
)
from vega_image.finddb.curate import curate
from vega_image.finddb.evidence import Terms
from vega_image.finddb.fallback import NAIVE, SOLVERS, fallback_items
from vega_image.finddb.lint import lint
from vega_image.finddb.manifest import check_folder, folder_of
from vega_image.finddb.problem import parse_key
from vega_image.finddb.proof import proofs
from vega_image.finddb.report import report_lines
from vega_image.finddb.rule import shipped_rules
from vega_image.finddb.text import FindDb

SUSPECT, GEMM = "ConvOclBwdWrW2<1>", "GemmWrwUniversal"
NAIVE_W = "ConvDirectNaiveConvWrw"


def test_without_evidence_the_fallback_serves_every_problem() -> None:
    result = curated()
    assert served(result) == [GEMM, NAIVE_W]
    assert served(result, FWD) == ["GemmFwdRest", "ConvDirectNaiveConvFwd"]
    assert (result.fallback_records, result.proven, result.lost) == (2, [], {})
    assert result.removed[SUSPECT, "no evidence"] == 1


def test_a_proven_solver_is_served_and_nothing_else() -> None:
    result = curated(passed(SUSPECT))
    assert served(result) == [SUSPECT]
    assert served(result, FWD)[0] == "GemmFwdRest"
    assert [row[:2] for row in result.proven] == [(C3W, SUSPECT)]


def test_the_wrong_c3_weight_gradient_disappears() -> None:
    data = (JOURNALS / "wrong-c3-wgrad.jsonl").read_bytes()
    key = "16-32-32-3x3-3-32-32-1-1x1-1x1-1x1-0-NCHW-FP32-W"
    direct = "miopenConvolutionBwdWeightsAlgoDirect"
    db = f"{key}={SUSPECT}:0.1,0,{direct};ConvOclBwdWrW53:0.2,0,{direct}\n".encode()
    result = curated(data, db=db, recordings=True)
    assert served(result, key) == [GEMM, NAIVE_W]
    reasons = {change.solver: change for change in result.changes}
    assert reasons[SUSPECT].reason.startswith("MISMATCH")
    assert reasons[SUSPECT].evidence.endswith(":1,2")
    assert result.removed.total() == 2
    text = "\n".join(report_lines(result, evidence(data, recordings=True)))
    assert "2 solvers removed" in text
    assert f"{SUSPECT} kept out: MISMATCH" in text


def test_refuted_everything_is_a_lost_shape() -> None:
    wrong = b"".join(line(one, verdict="MISMATCH") for one in (SUSPECT, GEMM, NAIVE_W))
    result = curated(wrong)
    assert served(result) == []
    assert result.lost == {C3W: "all its solvers are refuted or denied"}
    assert "1 shape lost" in "\n".join(report_lines(result, evidence(wrong)))


def test_strict_has_no_record_without_evidence() -> None:
    result = curated(passed(SUSPECT), profile="strict")
    assert [text.partition("=")[0] for text in result.lines] == [C3W]
    assert result.lost == {FWD: "no evidence"}
    assert curated(profile="strict").lines == []


def test_the_fastest_comes_first_and_four_are_enough() -> None:
    names = [GEMM, NAIVE_W, SUSPECT, "ConvOclBwdWrW2<2>", "ConvOclBwdWrW2<4>"]
    data = b"".join(passed(name, time_ms=5.0 - n) for n, name in enumerate(names))
    result = curated(data)
    assert served(result) == names[:0:-1]
    assert [change.solver for change in result.changes] == [GEMM]


def test_a_workspace_is_never_understated() -> None:
    result = curated(passed(GEMM, workspace_bytes=0))
    assert FindDb(result.data, "new")[C3W].items[0].workspace == 7375872


def test_evidence_of_a_problem_that_was_not_recorded_adds_it() -> None:
    key = "16-32-32-3x3-3-32-32-1-1x1-1x1-1x1-0-NCHW-FP32-W"
    result = curated(passed(SUSPECT, key=key))
    assert served(result, key) == [SUSPECT]
    assert result.added_records == 1


@pytest.mark.parametrize(
    ("solver", "key", "why"),
    [
        ("ConvNoSuch", C3W, "MIOpen 3.5.1 has no such solver"),
        ("GemmFwdRest", C3W, "the solver does not serve this direction"),
        ("ConvMlirIgemmWrW", C3W, "MLIR is compiled out of the library"),
        ("ConvAsmBwdWrW3x3", "64-28-28-3x3-64-56-56-8-1x1-2x2-1x1-0-NCHW-FP32-W",
         "rule asm-wrw3x3-stride"),
    ],
)  # fmt: skip
def test_proven_is_not_enough(solver: str, key: str, why: str) -> None:
    result = curated(passed(solver, key=key))
    assert solver not in served(result, key)
    assert [change.reason for change in result.changes] == [why]


def test_output_is_sorted_current_and_clean() -> None:
    result = curated(passed(SUSPECT))
    assert result.lines == sorted(result.lines)
    assert b"<unused>" not in result.data
    assert lint(FindDb(result.data, "new")).errors == 0


def test_a_broken_line_is_said_and_its_problem_served() -> None:
    db = DB.replace(b"2.11", b"fast") + b"no record\n" + DB.splitlines()[1] + b"\n"
    result = curated(db=db)
    assert [flaw.line for flaw in result.flawed] == [1, 3, 4]
    assert served(result) == [GEMM, NAIVE_W]


def test_the_folder_says_what_it_is() -> None:
    found = evidence(passed(SUSPECT))
    result = curate(FindDb(DB, "db"), proofs(found), rules=shipped_rules(), profile="safe")
    files = folder_of(result, found, rules=shipped_rules(), terms=Terms(), source=DB)
    manifest = check_folder(files, "out")
    assert (manifest.status, manifest.test_evidence) == ("partly-proven", False)
    assert manifest.counts.proven_records == manifest.counts.fallback_records == 1
    assert [one.id for one in manifest.evidence] == [found.journals[0].id]
    assert f"{C3W}\t{SUSPECT}\t{found.journals[0].id}:1,2,3" in files["evidence.tsv"].decode()
    assert json.loads(files["manifest.json"])["library"] == "ab" * 32


@pytest.mark.parametrize(
    ("data", "profile", "terms", "status"),
    [
        (passed(SUSPECT), "strict", {}, "proven"),
        (passed(SUSPECT), "safe", {}, "partly-proven"),
        (passed(SUSPECT, source="replay"), "strict", {"recordings": True}, "unproven"),
        (passed(SUSPECT, source="replay"), "safe", {}, "unproven"),
    ],
)
def test_the_status_is_never_more_than_the_evidence(
    data: bytes, profile: str, terms: dict[str, Any], status: str
) -> None:
    found = evidence(data, **terms)
    result = curate(FindDb(DB, "db"), proofs(found), rules=shipped_rules(), profile=profile)
    files = folder_of(result, found, rules=shipped_rules(), terms=Terms(**terms), source=DB)
    assert check_folder(files, "out").status == status


SIZE = st.integers(1, 300)


@given(st.sampled_from("FBW"), SIZE, SIZE, st.sampled_from([1, 3, 5]), st.sampled_from([1, 2]))
def test_every_problem_has_a_fallback_of_its_direction(
    direction: str, channels: int, batch: int, window: int, stride: int
) -> None:
    out = (32 - window) // stride + 1
    x, y = f"{channels}-32-32", f"8-{out}-{out}"
    first, last = (x, y) if direction == "F" else (y, x)
    text = f"{first}-{window}x{window}-{last}-{batch}-0x0-{stride}x{stride}-1x1-0-NCHW"
    problem = parse_key(f"{text}-FP16-{direction}")
    items = fallback_items(problem, ())
    assert [item.time for item in items] == sorted(item.time for item in items)
    assert {item.solver for item in items} <= set(SOLVERS)
    assert NAIVE[direction] in {item.solver for item in items}
    line_ = f"{problem.key}={';'.join(item.written('2.0') for item in items)}\n"
    assert lint(FindDb(line_.encode(), "x")).errors == 0
