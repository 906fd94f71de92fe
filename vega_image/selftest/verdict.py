"""The words of a trial's verdict, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Verdict(str, Enum):  # noqa: UP042 - StrEnum is not in Python 3.10
    """Only MATCH is good; DEGRADED may be accepted; no answer is never a good answer."""

    MATCH = "MATCH"
    DEGRADED = "DEGRADED"
    MISMATCH = "MISMATCH"
    NOT_FINITE = "NOT_FINITE"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    SUBSTITUTED = "SUBSTITUTED"
    UNSUPPORTED = "UNSUPPORTED"
    UNPROVEN = "UNPROVEN"
    INVALID = "INVALID"
    UPSTREAM_OK = "UPSTREAM_OK"


WRONG = frozenset({Verdict.MISMATCH, Verdict.NOT_FINITE, Verdict.CRASHED, Verdict.TIMED_OUT})
"""Exit 8, whatever else was found."""


def exit_code(required: Iterable[Verdict], *, degraded_allowed: bool) -> int:
    """Return 0, 8 or 9 for the verdicts of all required trials; 8 outranks 9.

    >>> exit_code([Verdict.MATCH, Verdict.DEGRADED], degraded_allowed=True)
    0
    >>> exit_code([Verdict.UNPROVEN, Verdict.MISMATCH], degraded_allowed=True)
    8
    >>> exit_code([], degraded_allowed=True)
    9
    """
    found = set(required)
    if found & WRONG or (Verdict.DEGRADED in found and not degraded_allowed):
        return 8
    return 0 if found and found <= {Verdict.MATCH, Verdict.DEGRADED} else 9
