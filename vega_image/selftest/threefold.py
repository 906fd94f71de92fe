"""The three oracles of a solver sweep, out of the two trials that its child runs. Pure.

The integer and the real trial are each run several times in memory filled with other dirt, so
hygiene needs no third run: it is what the harness saw around them, and whether bits repeat.
"""

from __future__ import annotations

from collections.abc import Mapping

from vega_image.selftest.judgement import Judgement
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.verdict import Verdict

PROFILES = {"integer": "int", "real": "real"}
ORACLES = (*PROFILES, "hygiene")
NUMBERS = frozenset({Verdict.MATCH, Verdict.DEGRADED, Verdict.MISMATCH, Verdict.NOT_FINITE})
GRAVITY = (
    Verdict.CRASHED,
    Verdict.TIMED_OUT,
    Verdict.INVALID,
    Verdict.SUBSTITUTED,
    Verdict.UNSUPPORTED,
    Verdict.UNPROVEN,
)


def threefold(records: Mapping[str, TrialRecord]) -> Mapping[str, Judgement]:
    """Return a judgement for each oracle; `records` are by oracle, integer and real."""
    numeric = {name: _numeric(name, records[name]) for name in PROFILES}
    return {**numeric, "hygiene": _hygiene(records)}


def _numeric(oracle: str, record: TrialRecord) -> Judgement:
    verdict, detail = record.verdict, record.detail
    if record.oracle == "hygiene" and record.error is None:
        verdict, detail = Verdict.UNPROVEN, f"its numbers were not judged: {record.detail}"
    elif record.oracle == "hygiene":
        # The first run's numbers were right; that others differ is for hygiene to say.
        verdict, detail = Verdict.MATCH, ""
    return Judgement(verdict, record.error, record.bound, oracle, detail)


def _hygiene(records: Mapping[str, TrialRecord]) -> Judgement:
    unclean = [item.detail for item in records.values() if item.oracle == "hygiene"]
    if unclean:
        return _said(Verdict.MISMATCH, "; ".join(unclean))
    failed = [item for item in records.values() if item.verdict not in NUMBERS]
    if failed:
        worst = min(failed, key=lambda item: GRAVITY.index(item.verdict))
        return _said(worst.verdict, worst.detail)
    exact, real = records["integer"], records["real"]
    if exact.repeatable is None or real.repeatable is None:
        return _said(Verdict.UNPROVEN, "one run only: nothing to compare bit by bit")
    if not exact.repeatable:
        return _said(Verdict.MISMATCH, f"integers do not repeat: {exact.detail}")
    # The order of additions may vary where atomics add; on integers that cannot show.
    return _said(Verdict.MATCH, "" if real.repeatable else "real numbers differ in last bits")


def _said(verdict: Verdict, detail: str) -> Judgement:
    return Judgement(verdict, None, None, "hygiene", detail)
