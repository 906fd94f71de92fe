"""The first group of every level: what the machine's facts say, as results like any other.

Facts inform or refuse: what refuses ends the run with exit 7 before anything is computed, so
what is left here never decides a verdict. They are no cases of the suite, hence not listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import FACT, Result
from vega_image.selftest.verdict import Verdict

if TYPE_CHECKING:
    from vega_image.selftest.identity import Known

FAMILY = "machine"
CARD = "fact/card"


def machine_results(known: Known) -> tuple[Result, ...]:
    """Return a result for the card and one for each finding; a warning does not fail.

    What is no card gets one result that says so: nothing is read that could look like one.
    """
    if not (known.folder or known.gathered):
        text = f"not applicable: {_what(known)} is no card, so no facts of one were read"
        return (_result(CARD, 0, Verdict.UNSUPPORTED, text),)
    return tuple(_of_card(known))


def _of_card(known: Known) -> Iterator[Result]:
    told = ", ".join(f"{name} {value}" for name, value in known.identity.items())
    yield _result(CARD, 0, Verdict.MATCH, told)
    seen: dict[str, int] = {}
    for finding in known.findings:
        rep = seen[finding.code] = seen.get(finding.code, -1) + 1
        text = f"{finding.severity}: {finding.title}; {finding.detail}; {finding.action}"
        yield _result(f"fact/{finding.code}", rep, Verdict.MATCH, text)


def _what(known: Known) -> str:
    words = {"cpu": "the processor", "replay": "a recording"}
    return "code from outside the suite" if known.foreign else words.get(known.source, "this")


def _result(name: str, rep: int, verdict: Verdict, detail: str) -> Result:
    case = Case(
        id=name,
        kind=FACT,
        name=name,
        family=FAMILY,
        tier="r1",
        dtypes=(),
        directions=(),
        source="/sys, /proc and /dev read by selftest/facts.py, on Windows gathered facts",
        oracle="",
        bound="",
        why="numbers of a machine that is not what it seems are not worth judging",
        unsupported_allowed=True,
    )
    trial = Trial(name, "", "", "", rep)
    return Result(case, trial, TrialRecord(trial.key, verdict, detail))
