"""What every external suite says: `{case, verdict, error, bound}` per line, judged here.

A program that dies in the middle of its cases has proved nothing of the rest: the case it was
at is CRASHED or TIMED_OUT, those behind it are UNPROVEN. Pure: text in, results out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from vega_image.selftest.verdict import Verdict

WORDS = {verdict.value: verdict for verdict in Verdict}
FORBIDDEN = frozenset({Verdict.UPSTREAM_OK})
"""What a suite of ours may not say of its own cases."""


@dataclass(frozen=True)
class Command:
    """A program to start: argv, additions to its environment, seconds it may be silent.

    `folder`: where it starts; empty: here.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    silence: float = 120.0
    folder: str = ""


@dataclass(frozen=True)
class Ended:
    """How it went: exit code or minus the signal, all of stdout, the end of stderr."""

    code: int
    stdout: str
    stderr: str = ""
    timed_out: bool = False


@dataclass(frozen=True)
class Line:
    """One case's result. `error` and `bound` are None where there is no number."""

    case: str
    verdict: Verdict
    error: float | None = None
    bound: float | None = None
    device: str = ""
    detail: str = ""
    seconds: float = 0.0

    def to_json(self) -> str:
        """Write the protocol's line."""
        return json.dumps({**vars(self), "verdict": self.verdict.value}, allow_nan=False)


def parse_line(text: str) -> Line | None:
    """Read one line, or None if it is not one of the protocol.

    >>> parse_line('{"case": "add", "verdict": "MATCH", "error": 0, "bound": 0}').verdict.value
    'MATCH'
    """
    value = _object(text)
    if not {"case", "verdict", "error", "bound"} <= set(value):
        return None
    case, word = value["case"], value["verdict"]
    numbers = [_number(value["error"]), _number(value["bound"])]
    if not (isinstance(case, str) and case and isinstance(word, str) and word in WORDS):
        return None
    if any(isinstance(number, str) for number in numbers):
        return None
    error, bound = (None if isinstance(number, str) else number for number in numbers)
    verdict = _consistent(WORDS[word], error, bound)
    device, detail = (str(value.get(name, "")) for name in ("device", "detail"))
    seconds = _number(value.get("seconds", 0))
    took = seconds if isinstance(seconds, float) else 0.0
    return Line(case, verdict, error, bound, device, detail, took)


def _no_number(_word: str) -> float:
    raise ValueError


def _number(value: object) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "no number"
    try:
        number = float(value)
    except OverflowError:
        return "no number"
    return number if math.isfinite(number) and number >= 0 else "no number"


def _consistent(verdict: Verdict, error: float | None, bound: float | None) -> Verdict:
    good = verdict in {Verdict.MATCH, Verdict.DEGRADED}
    within = error is not None and bound is not None and error <= bound
    return Verdict.INVALID if verdict in FORBIDDEN or (good and not within) else verdict


def parse_lines(text: str, expected: Sequence[str]) -> dict[str, Line]:
    """Read a program's output: the cases asked for, each once; a second answer is INVALID."""
    found: dict[str, Line] = {}
    wanted = set(expected)
    for line in map(parse_line, text.split("\n")):
        if line is None or line.case not in wanted:
            continue
        twice = line.case in found and not _same(found[line.case], line)
        found[line.case] = (
            Line(line.case, Verdict.INVALID, detail="two answers") if twice else line
        )
    return found


def _same(one: Line, other: Line) -> bool:
    return replace(one, seconds=0.0) == replace(other, seconds=0.0)


@dataclass(frozen=True)
class Introduced:
    """The device as the suite's program names it: ggml's name, words, cpu|gpu|igpu|accel."""

    device: str
    description: str
    kind: str


def parse_device(text: str) -> Introduced | None:
    """Find the line in which a program says what it computes on; the first one counts."""
    for line in text.split("\n"):
        value = _object(line)
        names = ("device", "description", "kind")
        if "case" not in value and all(isinstance(value.get(name), str) for name in names):
            return Introduced(*(str(value[name]) for name in names))
    return None


def parse_problem(text: str) -> str:
    """Find the line in which a program says why it refuses; empty without one."""
    found = [
        value["problem"] for line in text.split("\n") if "problem" in (value := _object(line))
    ]
    return str(found[0]) if found else ""


def _object(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def stopped_at(expected: Sequence[str], found: Collection[str]) -> str | None:
    """Name the first case without an answer: where a dead program was.

    >>> stopped_at(["a", "b", "c"], {"a"})
    'b'
    """
    return next((case for case in expected if case not in found), None)


def failed_at(case: str, ended: Ended) -> Line:
    """Say what became of the case a program did not answer for."""
    tail = ended.stderr.strip().split("\n")[-1]
    if ended.timed_out:
        return Line(case, Verdict.TIMED_OUT, detail=f"no answer in time; {tail}")
    if ended.code < 0:
        return Line(case, Verdict.CRASHED, detail=f"signal {-ended.code}; {tail}")
    return Line(case, Verdict.CRASHED, detail=f"ended with {ended.code} without it; {tail}")
