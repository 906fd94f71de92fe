"""What the harness calls: which trials, what each asks, what an answer is worth.

    for trial in trials(cases(), "r2"):
        prepared = prepare(trial)              # pure: the same trial, the same bytes
        outcome = device.run(prepared.request)
        judgement = judge(prepared, outcome)

`plant` and `self_check` are for the checker's check of itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import DTYPE_BYTES
from vega_image.selftest.suites.judge import judge
from vega_image.selftest.suites.plan import trials
from vega_image.selftest.suites.plant import FAULTS, plant
from vega_image.selftest.suites.prepared import Prepared
from vega_image.selftest.tables import find_case

__all__ = [
    "FAULTS",
    "Judgement",
    "Prepared",
    "judge",
    "plant",
    "prepare",
    "self_check",
    "trials",
]


def prepare(trial: Trial, case: Case | None = None) -> Prepared:
    """Make a trial ready. Deterministic: seeds come from its name, without repeat and solver.

    Raises UnknownCaseError for a case that is none.
    """
    made = _prepare(trial, case if case is not None else find_case(trial.case))
    room = {
        name: math.prod(shape) * DTYPE_BYTES[dtype]
        for name, (shape, dtype) in made.oracle.expects.items()
    }
    return replace(made, request=replace(made.request, room=room))


def _prepare(trial: Trial, found: Case) -> Prepared:
    if found.kind == "op":
        from vega_image.selftest.suites.ops.prepare import prepare_op  # noqa: PLC0415 - numpy

        return prepare_op(found, trial)
    if found.kind == "conv":
        from vega_image.selftest.suites.conv.prepare import prepare_conv  # noqa: PLC0415

        return prepare_conv(found, trial)
    if found.kind == "linalg":
        from vega_image.selftest.suites.linalg.prepare import prepare_linalg  # noqa: PLC0415

        return prepare_linalg(found, trial)
    from vega_image.selftest.suites.replay_case import prepare_regression  # noqa: PLC0415

    return prepare_regression(found, trial)


def self_check(group: str) -> bool:
    """Plant a fault in a right result of a group; False if the oracle does not flag it."""
    from vega_image.selftest.suites.selfcheck import self_check as check  # noqa: PLC0415 - circle

    return check(group)
