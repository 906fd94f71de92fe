"""Run a solver sweep: children, what they leave behind, and what an earlier run has already."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from vega_image.selftest import sweep
from vega_image.selftest.devices.readingback import LIBRARY, user_text
from vega_image.selftest.isolate import Died, Isolation, Limits
from vega_image.selftest.journal import Entry
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.miopen.library import Digests, find_db_digest, loaded, noted
from vega_image.selftest.miopen.readback import ReadBack, perf_config, read_back
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result
from vega_image.selftest.seam import Device
from vega_image.selftest.spawn import Child, fork, own_command, spawn
from vega_image.selftest.suite import OWN, Work, group_of
from vega_image.selftest.threefold import ORACLES, PROFILES, threefold
from vega_image.selftest.verdict import Verdict
from vega_image.selftest.worker import DEVICE_LOST, encode_work, work_forked

RUNS = 3
REPEAT_SECONDS = 10.0
FAILURES_IN_A_ROW = 5
NO_ANSWER = frozenset({Verdict.CRASHED, Verdict.TIMED_OUT})
Heard = Callable[[Result, Entry], None]


@dataclass(frozen=True)
class Setting:
    """What all children of a sweep share; `open` opens the device in a forked child.

    `spawned`: start a fresh process instead, for libraries that must not have been loaded
    before their variables are set. `until` is a time of time.monotonic(), None for no budget.
    """

    device: str
    origin: sweep.Origin
    limits: Limits
    work: Path
    open: Callable[[], Device]
    spawned: bool
    plant: str = ""
    memory: int = 0
    record: str = ""
    until: float | None = None


@dataclass
class Sweep:
    """One sweep. `heard` gets every result with its line, `kept` those of an earlier run."""

    setting: Setting
    heard: Heard
    kept: Callable[[Result], None]
    alive: Callable[[str], None]
    digests: Digests = field(default_factory=Digests)
    row: int = 0

    def run(self, steps: Sequence[sweep.Step], done: Mapping[str, Entry]) -> tuple[Result, ...]:
        """Force every solver in a child of its own; `done` are lines that hold already."""
        results = [result for step in steps for result in self._step(step, done)]
        return tuple(required(results))

    def _step(self, step: sweep.Step, done: Mapping[str, Entry]) -> Iterator[Result]:
        lines = [done.get(step.trial(oracle).key) for oracle in ORACLES]
        if all(lines):
            for line in filter(None, lines):
                result = _result(step, line)
                self.kept(result)
                yield result
            return
        for line in self._asked(step):
            result = _result(step, line)
            self.heard(result, line)
            yield result

    def _asked(self, step: sweep.Step) -> list[Entry]:
        self.alive(step.trial("integer").key)
        if why := self._halted():
            said = [Judgement(Verdict.UNPROVEN, None, None, name, why) for name in ORACLES]
            return [self._line(step, one, ReadBack(""), self.setting.work) for one in said]
        folder = self.setting.work / step.name
        for name in ("system", "user"):
            (folder / name).mkdir(parents=True)
        try:
            return self._child(step, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _halted(self) -> str:
        until = self.setting.until
        if until is not None and time.monotonic() >= until:
            return f"{sweep.UNASKED}the budget ended"
        if self.row >= FAILURES_IN_A_ROW:
            text = f"{self.row} solvers in a row got no answer: the device needs a reset"
            return sweep.UNASKED + text
        return ""

    def _child(self, step: sweep.Step, folder: Path) -> list[Entry]:
        records, log = self._run(step, folder)
        ran = read_back(log, user_text(folder / "user", "ufdb"), keys=[step.key])
        died = any(isinstance(record, Died) for record in records.values())
        judged = [
            sweep.judge(step, judgement, ran, died=died)
            for judgement in threefold(records).values()
        ]
        lost = {judgement.verdict for judgement in judged} & NO_ANSWER
        self.row = self.row + 1 if lost else 0
        return [self._line(step, judgement, ran, folder) for judgement in judged]

    def _line(
        self, step: sweep.Step, judgement: Judgement, ran: ReadBack, folder: Path
    ) -> Entry:
        note = folder / LIBRARY
        library = noted(note.read_text(encoding="utf-8")) if note.is_file() else None
        origin = replace(
            self.setting.origin,
            lib_sha256=self.digests.of(library),
            db_sha256=find_db_digest(folder / "system"),
            perf_config=perf_config(user_text(folder / "user", "udb"), step.solver.name),
        )
        return sweep.entry(step, judgement, ran=ran, origin=origin)

    def _run(self, step: sweep.Step, folder: Path) -> tuple[dict[str, TrialRecord], str]:
        """Run both trials in one child, or as far as it gets."""
        trials = {oracle: step.trial(oracle) for oracle in PROFILES}
        by_key = {trial.key: oracle for oracle, trial in trials.items()}
        children: list[Child] = []

        def launch(work: Work) -> Child:
            children.append(self._launch(work, step, folder))
            return children[-1]

        work = self._work(step, folder)
        found: dict[str, TrialRecord] = {}
        with closing(
            Isolation(launch, self.setting.limits, time.monotonic).run(work)
        ) as events:
            for event in events:
                if not isinstance(event, TrialRecord):
                    self.alive(step.trial("integer").key)
                    continue
                found[by_key[event.key]] = _ended(event)
                if event.verdict in DEVICE_LOST:
                    break
        log = "\n".join(child.noise() for child in children)
        return {oracle: found.get(oracle) or _unasked(trial.key, found)
                for oracle, trial in trials.items()}, log  # fmt: skip

    def _work(self, step: sweep.Step, folder: Path) -> Work:
        trials = tuple(step.trial(oracle) for oracle in PROFILES)
        return Work(
            suite=OWN,
            device=self.setting.device,
            trials=trials,
            groups=tuple(group_of(step.case) for _ in trials),
            runs=1 if self.setting.plant else RUNS,
            repeat_seconds=REPEAT_SECONDS,
            plant=self.setting.plant,
            memory=self.setting.memory,
            record=self.setting.record,
            user_db=str(folder / "user"),
        )

    def _launch(self, work: Work, step: sweep.Step, folder: Path) -> Child:
        variables = sweep.forced(step.solver.name, folder)
        environ = sweep.child_environ(os.environ, variables)
        if self.setting.spawned:
            return spawn([*own_command(), "worker"], encode_work(work), environ=environ)

        def body(pipe: int) -> None:
            os.environ.clear()
            os.environ.update(environ)
            work_forked(work, self.setting.open, pipe)

        return fork(body)


def _ended(record: TrialRecord) -> TrialRecord:
    """Mark what a later run must ask again: no process could be started for it."""
    if isinstance(record, Died) and record.verdict == Verdict.UNPROVEN:
        return replace(record, detail=f"{sweep.UNASKED}{record.detail}")
    return record


def _unasked(key: str, found: Mapping[str, TrialRecord]) -> TrialRecord:
    """Say of a trial without a record why it has none."""
    before = next(iter(found.values()), None)
    if before is None or before.verdict not in DEVICE_LOST:
        text = "its group's checker did not see a fault planted for it"
        return TrialRecord(key, Verdict.INVALID, f"{sweep.UNASKED}{text}")
    # Once the child was lost on integers, real numbers would only cost the same time again.
    return TrialRecord(key, before.verdict, f"after {before.key}: {before.detail}")


def _result(step: sweep.Step, line: Entry) -> Result:
    """Return a line as a result of the report."""
    record = TrialRecord(
        key=line.trial,
        verdict=Verdict(line.verdict),
        detail=line.detail,
        oracle=line.oracle,
        error=line.error,
        bound=line.bound,
        seconds=(line.time_ms or 0.0) / 1e3,
        solver=line.solver_ran,
    )
    return Result(step.case, step.trial(line.oracle), record)


def required(results: Sequence[Result]) -> Iterator[Result]:
    """Let a solver be unsupported, as long as another can do the same problem."""
    done = {_problem(one) for one in results if one.verdict != Verdict.UNSUPPORTED}
    for result in results:
        spared = _problem(result) in done
        yield replace(result, case=replace(result.case, unsupported_allowed=spared))


def _problem(result: Result) -> tuple[str, str, str]:
    trial = result.trial
    return trial.case, trial.direction, trial.dtype


def origin_here(origin: sweep.Origin) -> sweep.Origin:
    """Return an origin with the library that this process has loaded."""
    return replace(origin, lib_sha256=Digests().of(loaded()))
