"""From a result to its journal line."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from vega_image.selftest.journal import Entry, device_of
from vega_image.selftest.miopen.problem import directed_key
from vega_image.selftest.result import Result

LETTERS = ("F", "B", "W")


def entry_of(result: Result, source: str, identity: Mapping[str, object], suite: str) -> Entry:
    """Return the line; the library's problem key ends in the direction's letter."""
    case, trial, record = result.case, result.trial, result.record
    return Entry(
        key=problem_key(result) or trial.key,
        trial=trial.key,
        case=case.id,
        direction=trial.direction,
        dtype=trial.dtype,
        verdict=record.verdict.value,
        source=source,
        suite=suite,
        device=device_of(identity),
        driver=str(identity.get("driver", "not available")),
        solver=trial.solver,
        solver_ran=record.solver,
        time_ms=record.seconds * 1e3 or None,
        oracle=record.oracle,
        seed=zlib.crc32(trial.key.encode()),
        rep=trial.rep,
        error=record.error,
        bound=record.bound,
        detail=record.detail,
    )


def problem_key(result: Result) -> str:
    """Return MIOpen's key for the direction; empty for what is no convolution."""
    params, direction = result.case.params, result.trial.direction
    forward = params.get("miopen_key")
    if not isinstance(forward, str) or direction not in LETTERS:
        return ""
    return directed_key(forward, direction)
