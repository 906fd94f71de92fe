"""Results: what the report, the summary and the exit code are made of. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from vega_image.selftest import verdict as words
from vega_image.selftest.case import Case, Trial
from vega_image.selftest.levels import acceptable
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.suite import group_of
from vega_image.selftest.verdict import Verdict

FACT = "fact"
"""The kind of results that tell of the machine and decide nothing."""
GOOD = frozenset({Verdict.MATCH, Verdict.DEGRADED})
Number = Union[float, None]  # noqa: UP007 - evaluated when imported


@dataclass(frozen=True)
class Result:
    """One judged trial of one case."""

    case: Case
    trial: Trial
    record: TrialRecord

    @property
    def verdict(self) -> Verdict:
        """Its word."""
        return self.record.verdict

    @property
    def group(self) -> str:
        """Kind and family."""
        return group_of(self.case)

    @property
    def required(self) -> bool:
        """Whether the level rests on it; facts and another suite's word never count."""
        if self.verdict == Verdict.UPSTREAM_OK or self.case.kind == FACT:
            return False
        return not (self.case.unsupported_allowed and self.verdict == Verdict.UNSUPPORTED)

    @property
    def accepted(self) -> bool:
        """Whether it is good enough here."""
        if self.verdict == Verdict.DEGRADED:
            return acceptable(self.trial.dtype)
        return self.verdict == Verdict.MATCH

    @property
    def failing(self) -> bool:
        """Whether it makes the whole wrong (exit 8)."""
        forbidden = self.verdict == Verdict.DEGRADED and not self.accepted
        return forbidden or self.verdict in words.WRONG

    @property
    def usage(self) -> float | None:
        """The share of its bound that the error used; None if there are no numbers.

        Endless where a result must be exact and is not.
        """
        error, bound = self.record.error, self.record.bound
        if error is None or bound is None:
            return None
        if bound <= 0:
            return 0.0 if error == 0 else math.inf
        return error / bound


def exit_code(results: Sequence[Result]) -> int:
    """Return 0, 8 or 9; DEGRADED counts as good only in the formats that allow it."""
    required = [item for item in results if item.required]
    if any(item.failing for item in required):
        return 8
    found = [Verdict.MATCH if item.accepted else item.verdict for item in required]
    return words.exit_code(found, degraded_allowed=False)


def counts(results: Iterable[Result]) -> Mapping[str, int]:
    """Count trials by verdict, in the order of the words, leaving out those that did not occur.

    Facts of the machine are no trials.
    """
    found = [item.verdict for item in results if item.case.kind != FACT]
    return {word.value: found.count(word) for word in Verdict if word in found}


def gravest_first(results: Iterable[Result]) -> list[Result]:
    """Return everything that is not good: what is wrong first, then what is unproven."""
    return sorted(
        (item for item in results if not item.accepted and item.required),
        key=lambda item: not item.failing,
    )
