"""Journals of several machines become one, and contradict each other aloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from vega_image.finddb.evidence import read_journal
from vega_image.finddb.joined import contradictions, joined

FOLDER = Path(__file__).parents[2] / "data" / "journals"


def texts(*names: str) -> list[bytes]:
    return [(FOLDER / f"{name}.jsonl").read_bytes() for name in names]


def test_the_same_line_stands_once_and_nothing_is_lost() -> None:
    healthy, mixed = texts("healthy", "mixed")
    given = [healthy, mixed + b'{"cut', healthy]
    journals = [read_journal(text, f"j{number}") for number, text in enumerate(given)]
    data = joined(journals, given)
    rows = data.splitlines()
    assert len(rows) == len(set(rows))
    assert set(rows) == {row for text in (healthy, mixed) for row in text.splitlines() if row}
    assert read_journal(data, "all").cut == ()


def test_right_here_and_wrong_there_is_a_contradiction() -> None:
    (right,) = texts("healthy")
    rows = right.splitlines(keepends=True)
    first = next(row for row in rows if b'"verdict":"MATCH"' in row and b'"solver":"C' in row)
    wrong = first.replace(b'"verdict":"MATCH"', b'"verdict":"MISMATCH"')
    journals = [read_journal(right, "a"), read_journal(wrong, "b")]
    (found,) = contradictions(journals)
    assert "wrong in b:1" in found.why
    assert "right in a:" in found.why
    assert not contradictions([journals[0], journals[0]])


@pytest.mark.parametrize("verdict", [b"UNPROVEN", b"UNSUPPORTED"])
def test_no_answer_contradicts_nothing(verdict: bytes) -> None:
    (right,) = texts("healthy")
    silent = right.replace(b'"verdict":"MATCH"', b'"verdict":"' + verdict + b'"')
    assert not contradictions([read_journal(right, "a"), read_journal(silent, "b")])
