"""The checker's check of itself: a planted fault must be seen, a right result must pass."""

from __future__ import annotations

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.seam import Computed
from vega_image.selftest.suites import registry
from vega_image.selftest.suites.judge import judge
from vega_image.selftest.suites.plan import trials
from vega_image.selftest.suites.plant import plant
from vega_image.selftest.tables import cases
from vega_image.selftest.verdict import Verdict

PLANTED = ("zeroed-channel", "bit-flip")
SEEDS = 8


def self_check(group: str) -> bool:
    """Whether a group's oracle accepts a right result and flags what is planted in it.

    `group` is `kind/family` (`op/gemm`, `conv/stem_c3`), or a kind alone.
    """
    return checks(smallest(group))


def smallest(group: str) -> tuple[Case, Trial]:
    """Return the cheapest trial of a group. Raises KeyError for a group that is none."""
    kind, _, family = group.partition("/")
    members = [case for case in cases() if case.kind == kind and family in {"", case.family}]
    if not members:
        raise KeyError(group)
    case = min(members, key=lambda one: (_size(one), one.id))
    return case, next(iter(trials([case], "r4")))


def _size(case: Case) -> float:
    if case.kind != "conv":
        return 0.0
    size = case.params["gflop_per_dir"]
    assert isinstance(size, (int, float))
    return float(size)


def checks(chosen: tuple[Case, Trial]) -> bool:
    """Whether one trial's oracle does both."""
    case, trial = chosen
    prepared = registry.prepare(trial, case)
    right = prepared.oracle.reference()
    clean = judge(prepared, Computed(right, 1.0))
    if clean.verdict is not Verdict.MATCH:
        return False
    for fault in PLANTED:
        spoiled = [plant(fault, prepared, right, seed=seed) for seed in range(SEEDS)]
        telling = [outputs for outputs in spoiled if outputs != right]
        flagged = [
            judge(prepared, Computed(outputs, 1.0)).verdict is not Verdict.MATCH
            for outputs in telling
        ]
        # A lowest bit lies within a rounding bound: one flip seen is enough there.
        if telling and not (all(flagged) if fault == PLANTED[0] else any(flagged)):
            return False
    return True
