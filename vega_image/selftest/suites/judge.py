"""Turn a device's outcome into a judgement: hygiene first, then the trial's oracle."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array, Computed, Failed, Outcome
from vega_image.selftest.suites.compare import misfit
from vega_image.selftest.suites.prepared import Prepared
from vega_image.selftest.verdict import Verdict

MARGIN = 1.05
RADEON_VII = {"fp32": 13.44e12, "fp16": 26.88e12, "bf16": 26.88e12, "fp64": 3.36e12}
"""FLOP/s at 1.75 GHz: 60 compute units of 64 lanes, two operations each."""


def judge(
    prepared: Prepared, outcome: Outcome, *, peaks: Mapping[str, float] | None = None
) -> Judgement:
    """Judge one outcome.

    `peaks`: FLOP/s by format that the device cannot exceed (RADEON_VII for a card); faster
    than that nothing was computed, whatever the numbers.
    """
    if isinstance(outcome, Failed):
        text = f"{prepared.where}: {outcome.message}"
        return Judgement(Verdict(outcome.verdict), None, None, prepared.oracle.kind, text)
    unclean = _hygiene(prepared, outcome, peaks or {})
    if unclean:
        return _placed(prepared, Verdict.MISMATCH, "hygiene", unclean)
    misfits = [
        misfit(name, outcome.outputs.get(name), shape, dtype)
        for name, (shape, dtype) in prepared.oracle.expects.items()
    ]
    if any(misfits):
        return _placed(
            prepared, Verdict.MISMATCH, prepared.oracle.kind, "; ".join(filter(None, misfits))
        )
    found = prepared.oracle.judge(outcome.outputs, outcome.solver)
    if found.verdict is Verdict.MATCH:
        return found
    detail = f"{prepared.where}: {found.detail}"
    return Judgement(found.verdict, found.error, found.bound, found.oracle, detail)


def _placed(prepared: Prepared, verdict: Verdict, oracle: str, text: str) -> Judgement:
    return Judgement(verdict, None, None, oracle, f"{prepared.where}: {text}")


def _hygiene(prepared: Prepared, outcome: Computed, peaks: Mapping[str, float]) -> str:
    seen = list(outcome.hygiene)
    seen += [
        f"input {name} was changed on its way to the device"
        for name, digest in outcome.inputs_sha256.items()
        if name in prepared.request.inputs and digest != sha256(prepared.request.inputs[name])
    ]
    peak = peaks.get(prepared.request.dtype, 0.0)
    if peak and prepared.flops > MARGIN * peak * outcome.seconds:
        rate = prepared.flops / outcome.seconds if outcome.seconds else float("inf")
        seen.append(f"{rate:.3g} FLOP/s where {peak:.3g} is the peak: nothing was computed")
    return "; ".join(seen)


def sha256(array: Array) -> str:
    """Return the SHA-256 of an array's bytes, as devices report it of their copy."""
    return hashlib.sha256(array.data).hexdigest()
