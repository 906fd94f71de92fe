"""Runs that are not trials of the own suite on one device: external suites, solver sweeps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from vega_image.selftest import sweep
from vega_image.selftest.case import Case, Trial
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.adapter import judge_installation
from vega_image.selftest.external.ggml.installation import Installation
from vega_image.selftest.external.ggml.program import cases
from vega_image.selftest.external.protocol import Line
from vega_image.selftest.isolate import Isolation, Limits
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result
from vega_image.selftest.runner import Item
from vega_image.selftest.spawn import Child, own_command, spawn
from vega_image.selftest.suite import OWN, Work, group_of
from vega_image.selftest.verdict import Verdict
from vega_image.selftest.worker import encode_work

GGML_DEVICES = {"cpu": "CPU", "vulkan": "Vulkan0", "hip": "ROCm0"}
Heard = Callable[[Result], None]


def ggml_device(spec: str) -> str:
    """Translate --device to ggml's name; raises SelftestError for one it cannot have.

    >>> ggml_device("hip:1"), ggml_device("vulkan")
    ('ROCm1', 'Vulkan0')
    """
    word, _, number = spec.partition(":")
    if word not in GGML_DEVICES or not (number or "0").isdigit():
        raise SelftestError(
            "UNKNOWN_DEVICE", f"ggml has no device {spec}", hint="cpu, vulkan, hip or hip:N"
        )
    name = GGML_DEVICES[word]
    return name if word == "cpu" else name.rstrip("0") + str(int(number or "0"))


def run_ggml(root: Path, spec: str, level: str, heard: Heard) -> tuple[Result, ...]:
    """Judge a llama.cpp installation; upstream's lines count for nothing but what is wrong.

    Raises SelftestError: no device (7), no libggml (7).
    """
    with TemporaryDirectory(prefix="vega-ggml-") as folder:
        installation = Installation(root, ggml_device(spec))
        verdicts = judge_installation(installation, level, Path(folder))
    # Upstream need not support every variant it knows; what it calls wrong counts.
    spared = {row.id for row in cases(level) if not row.required}
    ours = [_external(line, "ours", spared=line.case in spared) for line in verdicts.lines]
    theirs = [_external(line, "upstream", spared=True) for line in verdicts.upstream]
    for result in (*ours, *theirs):
        heard(result)
    return (*ours, *theirs)


def _external(line: Line, family: str, *, spared: bool) -> Result:
    ours = family == "ours"
    case = Case(
        id=f"{family}/{line.case}",
        kind="ggml",
        name=line.case,
        family=family,
        tier="r1",
        dtypes=(),
        directions=("fwd",),
        source="libggml" if ours else "ggml tests/test-backend-ops.cpp",
        oracle="integer" if ours else "",
        bound="bit-exact" if ours else "upstream's global error norm, which proves nothing",
        why="the operations a language model runs",
        unsupported_allowed=spared,
    )
    record = TrialRecord(
        key=case.id,
        verdict=line.verdict,
        detail=line.detail,
        oracle=case.oracle,
        error=line.error,
        bound=line.bound,
    )
    return Result(case, Trial(case.id, "fwd", "", family), record)


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
