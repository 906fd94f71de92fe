"""What one answer is worth before and beside its numbers."""

from __future__ import annotations

import pytest

from tests import selftestfakes as fakes
from vega_image.selftest.examine import Examiner
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.verdict import Verdict


def examined(name: str, device: fakes.Device | None = None, **rest: object) -> TrialRecord:
    examiner = Examiner(fakes, device or fakes.make_card(), **rest)  # type: ignore[arg-type]
    return examiner.examine(fakes.item(name)[1])


@pytest.mark.parametrize(
    ("act", "verdict", "words"),
    [
        ("right", "MATCH", ""),
        ("wrong", "MISMATCH", "y[0]"),
        ("raises", "CRASHED", "illegal memory access"),
        ("liar", "CRASHED", "says MATCH"),
        ("nothing", "CRASHED", "NoneType"),
        ("absent", "UNSUPPORTED", "no such operation"),
        ("short", "MISMATCH", "3 bytes"),
        ("unnamed", "MISMATCH", "output y is missing"),
        ("guard", "MISMATCH", "overwritten"),
        ("moved", "MISMATCH", "input x"),
        ("back", "MISMATCH", "impossible time"),
        ("fast", "MISMATCH", "impossible speed"),
        ("unpreparable", "INVALID", "no such shape"),
        ("unjudgeable", "INVALID", "oracle bug"),
    ],
)
def test_an_answer_gets_the_word_it_deserves(act: str, verdict: str, words: str) -> None:
    found = examined(act)
    assert found.verdict == verdict
    assert words in found.detail


def test_speed_is_judged_only_where_the_peak_is_known() -> None:
    assert examined("fast", fakes.make()).verdict == Verdict.MATCH


def test_a_planted_fault_is_seen() -> None:
    assert examined("right", plant="off-by-one").verdict == Verdict.MISMATCH


def test_a_planted_fault_that_changes_nothing_proves_nothing() -> None:
    found = examined("right", plant="nothing")
    assert found.verdict == Verdict.UNPROVEN
    assert "nothing here" in found.detail


def test_repeats_stop_when_their_time_is_spent() -> None:
    assert examined("rare", runs=9, repeat_seconds=0.0005).repeatable is None
    assert examined("rare", runs=9, repeat_seconds=0.0015).repeatable is True
    assert examined("rare", runs=9).repeatable is False


@pytest.mark.parametrize(("name", "words"), [("real-rare", "y[0]"), ("real-spill", "beside")])
def test_an_answer_that_is_wrong_once_is_wrong(name: str, words: str) -> None:
    assert examined(name, runs=2).verdict == Verdict.MATCH
    found = examined(name, runs=3)
    assert found.verdict == Verdict.MISMATCH
    assert found.repeatable is False
    assert "run 3" in found.detail
    assert words in found.detail


def test_bits_that_were_judged_before_are_not_judged_again() -> None:
    first = examined("right")
    again = examined("right", known={first.key: first.digest})
    assert (again.verdict, again.digest) == (Verdict.UNPROVEN, first.digest)
    assert examined("wrong", known={"other": "bits"}).verdict == Verdict.MISMATCH
