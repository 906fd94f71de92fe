"""One trial on one device: ask, look for flaws, judge, ask again and compare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vega_image.selftest import hygiene
from vega_image.selftest.case import Trial
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.seam import Array, Computed, Device, Failed, Outcome, Request
from vega_image.selftest.suite import Prepared, Suite
from vega_image.selftest.verdict import WRONG, Verdict

MAY_FAIL_WITH = frozenset(
    {Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.UNSUPPORTED, Verdict.SUBSTITUTED}
)
DETAIL_LIMIT = 4000


@dataclass(frozen=True)
class Examiner:
    """A suite and a device brought together.

    `runs` counts all asks of one trial; repeats stop after `repeat_seconds` of device time.
    `known` holds digests of answers that were judged before: the same bits are not judged
    again, and say UNPROVEN.
    """

    suite: Suite
    device: Device
    runs: int = 1
    repeat_seconds: float = math.inf
    known: Mapping[str, str] = field(default_factory=dict)
    plant: str = ""

    def examine(self, trial: Trial) -> TrialRecord:
        """Return what is known about the trial afterwards; raises nothing."""
        try:
            prepared = self.suite.prepare(trial)
        except Exception as error:  # noqa: BLE001 - a broken case must not stop the others
            return _invalid(trial, "could not be prepared", error)
        outcome = self._ask(prepared, prepared.request)
        if isinstance(outcome, Failed):
            return _failed(trial, outcome)
        record = self._judged(trial, prepared, outcome)
        return self._repeated(trial, record, prepared) if self.runs > 1 else record

    def _affords(self, run: int, seconds: float) -> bool:
        # On a slow device repeats would eat the time that other trials need.
        return run < self.runs and run * seconds <= self.repeat_seconds

    def _ask(self, prepared: Prepared, request: Request) -> Outcome:
        outcome = ask(self.device, request)
        if self.plant and isinstance(outcome, Computed):
            planted = self.suite.plant(self.plant, prepared, outcome.outputs)
            if planted == outcome.outputs:
                # A match here would read as a checker that did not see the fault.
                return Failed(Verdict.UNPROVEN.value, f"{self.plant} changes nothing here")
            return replace(outcome, outputs=planted)
        return outcome

    def _judged(self, trial: Trial, prepared: Prepared, outcome: Computed) -> TrialRecord:
        base = TrialRecord(
            key=trial.key,
            verdict=Verdict.UNPROVEN,
            seconds=outcome.seconds,
            solver=outcome.solver,
            digest=hygiene.digest(outcome.outputs, but=prepared.request.measured),
        )
        found = self._flaws(prepared, outcome)
        if found:
            return _flawed(base, found)
        if trial.solver and outcome.solver != trial.solver:
            return _not_that(base, trial.solver)
        same = bool(base.digest) and self.known.get(trial.key) == base.digest
        return base if same else self._oracle(base, prepared, outcome)

    def _oracle(self, base: TrialRecord, prepared: Prepared, outcome: Computed) -> TrialRecord:
        try:
            said = self.suite.judge(prepared, outcome)
        except Exception as error:  # noqa: BLE001 - an oracle's own fault is no device's
            text = f"could not be judged: {type(error).__name__}: {error}"
            return replace(base, verdict=Verdict.INVALID, detail=text[:DETAIL_LIMIT])
        return replace(
            base,
            verdict=said.verdict,
            error=said.error,
            bound=said.bound,
            oracle=said.oracle,
            detail=said.detail[:DETAIL_LIMIT],
        )

    def _repeated(self, trial: Trial, first: TrialRecord, prepared: Prepared) -> TrialRecord:
        run = 0
        while self._affords(run + 1, first.seconds):
            run += 1
            # Every second run finds other dirt in the memory it works in.
            scratch = "dirt" if run % 2 else "nan"
            again = self._ask(prepared, replace(prepared.request, scratch=scratch))
            if isinstance(again, Failed):
                return replace(_failed_key(first.key, again), digest=first.digest)
            where = f"run {run + 1} (memory filled with {scratch})"
            seen = hygiene.digest(again.outputs, but=prepared.request.measured)
            spoiled = first.verdict not in WRONG and self._flaws(prepared, again)
            if spoiled or seen != first.digest:
                return either(first, self._judged(trial, prepared, again), where)
        return replace(first, repeatable=True) if run else first

    def _flaws(self, prepared: Prepared, outcome: Computed) -> tuple[str, ...]:
        return hygiene.flaws(
            prepared.request,
            outcome,
            flops=prepared.flops,
            identity=self.device.identity(),
        )


def either(first: TrialRecord, again: TrialRecord, where: str) -> TrialRecord:
    """Return the worse of two answers that differ; `where` says how the second was got.

    An answer that is right once and wrong once is wrong: rare faults look like this.
    """
    if again.verdict == Verdict.MATCH or first.verdict in WRONG:
        return unrepeatable(first, f"{where} is not bit-equal to run 1")
    detail = f"{where}: {again.detail}"[:DETAIL_LIMIT]
    return replace(again, repeatable=False, digest=first.digest, detail=detail)


def unrepeatable(record: TrialRecord, text: str) -> TrialRecord:
    """Say that runs differ: wrong where the result is exact, else a remark (order may vary)."""
    record = replace(record, repeatable=False)
    if record.oracle in {"integer", "hygiene"} and record.verdict == Verdict.MATCH:
        return replace(record, verdict=Verdict.MISMATCH, oracle="hygiene", detail=text)
    detail = f"{record.detail}; {text}" if record.detail else text
    return replace(record, detail=detail[:DETAIL_LIMIT])


def ask(device: Device, request: Request) -> Outcome:
    """Run a request; a device that raises or answers nonsense has crashed."""
    try:
        outcome: object = device.run(request)
    except MemoryError:
        return Failed(Verdict.CRASHED.value, "memory limit: no memory left for this trial")
    except Exception as error:  # noqa: BLE001 - whatever a device raises is its failure
        return Failed(Verdict.CRASHED.value, f"{type(error).__name__}: {error}")
    if isinstance(outcome, Failed):
        return _sane(outcome)
    if isinstance(outcome, Computed) and _has_arrays(outcome.outputs):
        return outcome
    return Failed(Verdict.CRASHED.value, f"no outcome but {type(outcome).__name__}")


def _has_arrays(outputs: object) -> bool:
    if not isinstance(outputs, Mapping):
        return False
    return all(
        isinstance(name, str) and isinstance(array, Array) and isinstance(array.data, bytes)
        for name, array in outputs.items()
    )


def _sane(outcome: Failed) -> Failed:
    if outcome.verdict in {verdict.value for verdict in MAY_FAIL_WITH}:
        return outcome
    text = f"gave no numbers, yet says {outcome.verdict}: {outcome.message}"
    return Failed(Verdict.CRASHED.value, text)


def _failed(trial: Trial, outcome: Failed) -> TrialRecord:
    return _failed_key(trial.key, outcome)


def _failed_key(key: str, outcome: Failed) -> TrialRecord:
    return TrialRecord(
        key=key,
        verdict=Verdict(outcome.verdict),
        detail=outcome.message[:DETAIL_LIMIT],
        solver=outcome.solver,
    )


def _invalid(trial: Trial, what: str, error: Exception) -> TrialRecord:
    text = f"{what}: {type(error).__name__}: {error}"
    return TrialRecord(trial.key, Verdict.INVALID, detail=text[:DETAIL_LIMIT])


def _flawed(base: TrialRecord, found: tuple[str, ...]) -> TrialRecord:
    detail = "; ".join(found)[:DETAIL_LIMIT]
    return replace(base, verdict=Verdict.MISMATCH, oracle="hygiene", detail=detail)


def _not_that(base: TrialRecord, wanted: str) -> TrialRecord:
    """Say what a number is worth that the wanted solver is not known to have made."""
    if not base.solver:
        text = f"{wanted} was forced; which solver ran cannot be read back"
        return replace(base, verdict=Verdict.UNPROVEN, detail=text)
    text = f"{wanted} was forced, {base.solver} ran instead"
    return replace(base, verdict=Verdict.SUBSTITUTED, detail=text)
