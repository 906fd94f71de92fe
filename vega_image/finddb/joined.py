"""Journals of several machines as one: the same line once, contradictions named. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vega_image.finddb.evidence import WRONG, Journal, Line

AGAINST = WRONG | {"DEGRADED"}
Question = tuple[str, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What one machine found right and another wrong; `where` names the lines."""

    key: str
    solver: str
    oracle: str
    right: str
    wrong: str

    @property
    def why(self) -> str:
        """Say it in words."""
        return f"{self.solver}, {self.oracle}: right in {self.right}, wrong in {self.wrong}"


def contradictions(journals: Sequence[Journal]) -> list[Contradiction]:
    """Return where journals disagree on a solver of one library, perf-config and card size."""
    right: dict[Question, tuple[Journal, int]] = {}
    wrong: dict[Question, tuple[Journal, int]] = {}
    for journal, number, line in _numbered(journals):
        side = right if line.verdict == "MATCH" else wrong
        if line.verdict == "MATCH" or line.verdict in AGAINST:
            side.setdefault(_question(line), (journal, number))
    return [
        Contradiction(
            question[0],
            question[1],
            question[5],
            _place(right[question]),
            _place(wrong[question]),
        )
        for question in sorted(right.keys() & wrong.keys())
        if right[question][0] is not wrong[question][0]
    ]


def joined(journals: Sequence[Journal], texts: Sequence[bytes]) -> bytes:
    """Return all whole lines, each once, in the journals' order; nothing is taken out.

    `texts` are the journals' bytes. Where they disagree both lines stay: curate counts the
    stricter, and can name the line that it rests on.
    """
    lines: dict[bytes, None] = {}
    for journal, text in zip(journals, texts, strict=True):
        rows = text.split(b"\n")
        for number, _ in journal.lines:
            lines.setdefault(rows[number - 1])
    return b"".join(line + b"\n" for line in lines)


def _numbered(journals: Sequence[Journal]) -> Iterator[tuple[Journal, int, Line]]:
    for journal in journals:
        for number, line in journal.lines:
            if line.solver or line.solver_ran:
                yield journal, number, line


def _question(line: Line) -> Question:
    solver = line.solver_ran or line.solver
    card = str(line.device.cu)
    return line.key, solver, line.lib_sha256, line.perf_config, card, line.oracle


def _place(found: tuple[Journal, int]) -> str:
    journal, number = found
    return f"{journal.name}:{number}"
