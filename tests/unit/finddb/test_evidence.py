"""Journals as evidence: what counts, what is set aside and why, what is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.finddbevidence import C3W, JOURNALS, LIBRARY, evidence, line, passed
from vega_image.errors import UsageError
from vega_image.finddb import evidence as module
from vega_image.finddb.evidence import Line, read_journal
from vega_image.finddb.proof import proofs
from vega_image.selftest.journal import Entry
from vega_image.selftest.verdict import Verdict

GOOD = "ConvOclBwdWrW2<1>"


def refused(*journals: bytes, **terms: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        evidence(*journals, **terms)
    return caught.value


def test_the_line_is_the_journals_own() -> None:
    names = {field.alias or name for name, field in Line.model_fields.items()}
    assert names == {item.name for item in fields(Entry)}
    verdicts = Line.model_json_schema()["properties"]["verdict"]["enum"]
    assert set(verdicts) == {verdict.value for verdict in Verdict}


def test_three_oracles_on_one_card_prove_a_solver() -> None:
    proof = proofs(evidence(passed(GOOD)))[C3W][GOOD]
    assert proof.proven
    assert proof.evidence.endswith(":1,2,3")


@pytest.mark.parametrize("oracle", ["integer", "real", "hygiene"])
def test_two_oracles_are_not_enough(oracle: str) -> None:
    lines = [line(GOOD, one) for one in ("integer", "real", "hygiene") if one != oracle]
    proof = proofs(evidence(b"".join(lines)))[C3W][GOOD]
    assert not proof.proven
    assert proof.reason == f"evidence is incomplete: no MATCH of {oracle}"


@pytest.mark.parametrize(
    "other",
    [
        {"lib_sha256": "cd" * 32},
        {"perf_config": "4,8"},
        {"card": {"unique_id": "0x2"}},
        {"driver": "6.20.0"},
    ],
)
def test_oracles_of_two_bindings_do_not_add_up(other: dict[str, Any]) -> None:
    data = line(GOOD, "integer") + line(GOOD, "real") + line(GOOD, "hygiene", **other)
    proof = proofs(evidence(data, library=LIBRARY))[C3W][GOOD]
    assert proof.missing == ("hygiene",)


@pytest.mark.parametrize(
    "verdict", [v.value for v in Verdict if v.value not in {"MATCH", "UNSUPPORTED"}]
)
def test_whatever_speaks_against_a_solver_wins(verdict: str) -> None:
    for data in (
        [passed(GOOD) + line(GOOD, verdict=verdict, trial="u")],
        [line(GOOD, verdict=verdict), passed(GOOD)],
        [passed(GOOD), line(GOOD, verdict=verdict, card={"unique_id": "0x2"}, driver="x")],
    ):
        proof = proofs(evidence(*data))[C3W][GOOD]
        assert proof.proven == (verdict == "UNPROVEN")
        assert proof.conflict == (verdict != "UNPROVEN")


@pytest.mark.parametrize("verdict", ["MISMATCH", "CRASHED", "SUBSTITUTED"])
def test_what_went_wrong_counts_even_where_the_line_does_not_say_all(verdict: str) -> None:
    vague = line(GOOD, verdict=verdict, perf_config="", driver="", lib_sha256="")
    assert proofs(evidence(passed(GOOD) + vague))[C3W][GOOD].against == verdict


def test_a_number_is_of_the_solver_that_ran() -> None:
    other = "GemmWrwUniversal"
    found = proofs(evidence(passed(GOOD, solver_ran=other)))[C3W]
    assert found[GOOD].against == "SUBSTITUTED"
    assert not found[other].proven
    wrong = line(GOOD, solver_ran=other, verdict="MISMATCH")
    assert proofs(evidence(passed(other) + wrong))[C3W][other].against == "MISMATCH"
    assert not evidence(passed(GOOD, solver_ran="")).trials


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"source": "replay"}, module.RECORDING),
        ({"source": "cpu", "card": {"arch": "x86_64"}}, module.RECORDING),
        ({"lib_sha256": ""}, module.NO_LIBRARY),
        ({"lib_sha256": "cd" * 32}, module.OTHER_LIBRARY),
        ({"perf_config": "1,2"}, module.OTHER_CONFIG),
        ({"perf_config": ""}, module.OTHER_CONFIG),
        ({"card": {"cu": 64}}, module.OTHER_CU),
        ({"card": {"cu": "not available"}}, module.OTHER_CU),
        ({"driver": "not available"}, module.NO_DRIVER),
        ({"card": {"pci": "not available", "unique_id": ""}}, module.NO_DEVICE),
        ({"solver_ran": ""}, module.NO_SOLVER),
        ({"key": f"{C3W}_g1"}, module.NO_KEY),
        ({"key": "t", "solver_ran": ""}, module.OTHER_TRIAL),
        ({"direction": "F"}, module.OTHER_KEY),
        ({"dtype": "fp16"}, module.OTHER_KEY),
        ({"error": 2.0, "bound": 1.0}, module.OVER_BOUND),
        ({"error": float("nan"), "bound": 1.0}, module.OVER_BOUND),
    ],
)
def test_what_cannot_count_is_set_aside_with_a_reason(
    changed: dict[str, Any], why: str
) -> None:
    found = evidence(line(GOOD, **changed), library=LIBRARY)
    assert not found.trials
    assert dict(found.aside) == {why: 1}


def test_each_line_is_held_against_its_key() -> None:
    """A right line before it does not vouch for a line of the same key."""
    found = evidence(line(GOOD) + line(GOOD, "real", direction="B"))
    assert len(found.trials) == 1
    assert dict(found.aside) == {module.OTHER_KEY: 1}


def test_what_went_wrong_is_not_forgotten_for_its_data_type() -> None:
    data = passed(GOOD) + line(GOOD, verdict="MISMATCH", dtype="?")
    assert proofs(evidence(data))[C3W][GOOD].against == "MISMATCH"


@pytest.mark.parametrize("workspace", [10**18, 10**30])
def test_a_workspace_that_no_db_can_hold_is_refused(workspace: int) -> None:
    with pytest.raises(UsageError, match=r"j\.jsonl:1: workspace_bytes") as caught:
        evidence(line(GOOD, workspace_bytes=workspace))
    assert caught.value.code == "EVIDENCE_LINE"


def test_recordings_count_only_when_asked_for() -> None:
    data = passed(GOOD, source="replay")
    assert not proofs(evidence(data))
    found = evidence(data, recordings=True)
    assert found.recorded
    assert proofs(found)[C3W][GOOD].recorded


def test_another_card_is_refused() -> None:
    error = refused(passed(GOOD, card={"arch": "gfx1030"}))
    assert (error.code, error.exit_code) == ("EVIDENCE_DEVICE", 2)
    assert "j.jsonl:1" in error.message
    assert refused(line(GOOD, card={"arch": "not available"})).code == "EVIDENCE_DEVICE"
    assert refused(line(GOOD, card={"arch": "gfx9060"})).code == "EVIDENCE_DEVICE"


def test_two_libraries_need_a_word() -> None:
    data = [passed(GOOD), passed(GOOD, lib_sha256="cd" * 32)]
    assert refused(*data).code == "EVIDENCE_LIBRARIES"
    assert proofs(evidence(*data, library="cd" * 32))[C3W][GOOD].proven
    assert not proofs(evidence(*data, library="ef" * 32))


def test_a_last_line_cut_short_is_left_out_and_said() -> None:
    whole = passed(GOOD)
    journal = read_journal(whole + line(GOOD)[:50], "j")
    assert (len(journal.lines), journal.cut) == (3, (4,))
    assert read_journal(whole[:-1], "j").cut == ()


@pytest.mark.parametrize("left", [1, 7, 100, 300, len(line(GOOD)) - 2])
def test_a_line_cut_short_before_a_resumed_run_is_left_out_and_said(left: int) -> None:
    """The next run ends it with a newline and goes on below."""
    journal = read_journal(line(GOOD)[:left] + b"\n" + passed(GOOD), "j")
    assert ([number for number, _ in journal.lines], journal.cut) == ([2, 3, 4], (1,))
    again = read_journal(line(GOOD)[:left] + b"\n" + passed(GOOD) + line(GOOD)[:left], "j")
    assert again.cut == (1, 5)


def test_every_cut_of_a_line_is_known_as_one() -> None:
    whole = line(GOOD, detail='a "quoted" \u00e9 \n word').rstrip()
    for left in range(1, len(whole)):
        assert read_journal(whole[:left] + b"\n" + line(GOOD), "j").cut == (1,)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (line(GOOD)[40:], "EVIDENCE_LINE"),
        (line(GOOD)[:99] + line(GOOD), "EVIDENCE_LINE"),
        (b"[1, 2\n", "EVIDENCE_LINE"),
        (b"\xff\xfe\n", "EVIDENCE_LINE"),
        (b"[]\n", "EVIDENCE_SCHEMA"),
        (line(GOOD, schema="vega-selftest-journal/2"), "EVIDENCE_SCHEMA"),
        (line(GOOD, schema="other/1"), "EVIDENCE_SCHEMA"),
        (line(GOOD, verdict="PASS"), "EVIDENCE_LINE"),
        (line(GOOD, oracle="guess"), "EVIDENCE_LINE"),
        (line(GOOD, time_ms=-1.0), "EVIDENCE_LINE"),
        (line(GOOD, time_ms=float("nan")), "EVIDENCE_LINE"),
        (line(GOOD, workspace_bytes=True), "EVIDENCE_LINE"),
        (line(GOOD, surprise=1), "EVIDENCE_LINE"),
        (line(GOOD, driver=None), "EVIDENCE_LINE"),
    ],
)
def test_a_damaged_line_in_the_middle_is_an_error_with_its_number(
    damage: bytes, code: str
) -> None:
    error = refused(passed(GOOD) + damage + line(GOOD))
    assert error.code == code
    assert error.at == "j.jsonl:4"


def test_a_later_schema_says_so() -> None:
    error = refused(line(GOOD, schema="vega-selftest-journal/2"))
    assert "vega-selftest-journal/2" in error.message
    assert "newer" in str(error.hint)
    assert refused(b"\n").code == "EVIDENCE_EMPTY"


def test_order_and_repetition_of_journals_do_not_matter() -> None:
    one, two = passed(GOOD), passed("GemmWrwUniversal") + line(GOOD, verdict="MISMATCH")
    assert proofs(evidence(one, two)) == proofs(evidence(two, one, two))


def test_the_sweeps_own_journals_are_read() -> None:
    for path in sorted(JOURNALS.glob("*.jsonl")):
        journal = read_journal(path.read_bytes(), path.name)
        assert len(journal.lines) == len(path.read_bytes().splitlines())


@given(st.binary(max_size=300), st.integers(0, 600))
def test_garbage_is_refused_and_never_a_traceback(noise: bytes, at: int) -> None:
    whole = passed(GOOD)
    data = whole[: at % len(whole)] + noise + whole[at % len(whole) :]
    with suppress(UsageError):
        assert read_journal(data, "j").lines


@pytest.mark.parametrize("verdict", ["INVALID", "SUBSTITUTED", "UPSTREAM_OK"])
def test_the_last_line_on_a_trial_counts(verdict: str) -> None:
    bad = line(GOOD, "real", verdict=verdict)
    assert proofs(evidence(bad + passed(GOOD)))[C3W][GOOD].proven
    assert not proofs(evidence(passed(GOOD) + bad))[C3W][GOOD].proven
    assert not proofs(evidence(bad, passed(GOOD)))[C3W][GOOD].proven
    other = line(GOOD, "real", verdict=verdict, driver="another")
    assert not proofs(evidence(other + passed(GOOD)))[C3W][GOOD].proven


@pytest.mark.parametrize(
    "verdict", ["MISMATCH", "NOT_FINITE", "CRASHED", "TIMED_OUT", "DEGRADED"]
)
def test_a_wrong_result_is_never_taken_back(verdict: str) -> None:
    data = line(GOOD, verdict=verdict) + passed(GOOD)
    assert proofs(evidence(data))[C3W][GOOD].against == verdict


def test_that_a_solver_does_not_apply_says_nothing() -> None:
    no = line(GOOD, verdict="UNSUPPORTED", trial="u")
    assert proofs(evidence(no + passed(GOOD)))[C3W][GOOD].proven
    assert not proofs(evidence(no))[C3W][GOOD].proven
    assert not proofs(evidence(no))[C3W][GOOD].against
    found = proofs(evidence(passed(GOOD) + line(GOOD, "real", verdict="UNSUPPORTED")))
    assert found[C3W][GOOD].missing == ("real",)


def test_a_question_that_was_not_asked_to_the_end_says_nothing() -> None:
    data = line(GOOD, verdict="INVALID", detail="not asked: no process") + passed(GOOD)
    assert proofs(evidence(data))[C3W][GOOD].proven
    assert json.loads(line(GOOD))["schema"] == "vega-selftest-journal/1"
