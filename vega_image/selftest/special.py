"""The solver sweep: every applicable solver of a convolution, each in a child of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from vega_image.selftest import sweep
from vega_image.selftest.case import Case
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.isolate import Isolation, Limits
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result
from vega_image.selftest.runner import Item
from vega_image.selftest.spawn import Child, own_command, spawn
from vega_image.selftest.suite import OWN, Work, group_of
from vega_image.selftest.verdict import Verdict
from vega_image.selftest.worker import encode_work

Heard = Callable[[Result], None]


@dataclass(frozen=True)
class Sweep:
    """A solver sweep over convolution trials of one device."""

    items: tuple[Item, ...]
    device: str
    limits: Limits
    work: Path

    def steps(self) -> tuple[tuple[Case, sweep.Step], ...]:
        """List every child process. Raises SelftestError if no trial is a convolution."""
        keys = {
            case.id: str(case.params["miopen_key"])
            for case, _ in self.items
            if "miopen_key" in case.params
        }
        by_id = {case.id: case for case, _ in self.items}
        command = ("vega-image", "selftest", "--device", self.device, "--case")
        trials = [trial for _, trial in self.items]
        planned = sweep.plan(trials, keys, command=command, work=self.work)
        if not planned:
            raise SelftestError("NOTHING_TO_RUN", "no convolution among these cases")
        return tuple((by_id[step.trial.case], step) for step in planned)

    def run(self, heard: Heard, alive: Callable[[str], None]) -> tuple[Result, ...]:
        """Force every solver in a child of its own and read back which one ran."""
        return tuple(self._step(*pair, heard, alive) for pair in self.steps())

    def _step(
        self, case: Case, step: sweep.Step, heard: Heard, alive: Callable[[str], None]
    ) -> Result:
        alive(step.trial.key)
        for folder in ("MIOPEN_SYSTEM_DB_PATH", "MIOPEN_USER_DB_PATH"):
            Path(step.environ[folder]).mkdir(parents=True)
        record, log = self._child(case, step)
        judgement = Judgement(
            record.verdict, record.error, record.bound, record.oracle, record.detail
        )
        judged, ran = sweep.judge(step, judgement, log, sweep.user_find_db(step.user_db))
        settled = replace(
            record,
            key=step.trial.key,
            verdict=judged.verdict,
            detail=judged.detail,
            solver=ran.solver,
        )
        result = Result(case, step.trial, settled)
        heard(result)
        return result

    def _child(self, case: Case, step: sweep.Step) -> tuple[TrialRecord, str]:
        trial = replace(step.trial, solver="")
        children: list[Child] = []

        def launch(work: Work) -> Child:
            environ = sweep.child_environ(os.environ, step)
            argv = [*own_command(), "worker"]
            children.append(spawn(argv, encode_work(work), environ=environ))
            return children[-1]

        work = Work(OWN, self.device, (trial,), (group_of(case),))
        found = TrialRecord(trial.key, Verdict.INVALID, "its group's checker failed")
        with closing(Isolation(launch, self.limits, time.monotonic).run(work)) as events:
            for event in events:
                found = event if isinstance(event, TrialRecord) else found
        return found, "\n".join(child.noise() for child in children)
