"""Run trials through children, keep what they answer, and settle what nobody answered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.examine import either
from vega_image.selftest.isolate import Alive, Checked, Event, Isolation, Left
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result
from vega_image.selftest.suite import Work, group_of
from vega_image.selftest.verdict import Verdict
from vega_image.selftest.worker import DEVICE_LOST

FAILURES_IN_A_ROW = 5
CANARY_TRIES = 2
CANARY_SECONDS = 1.0
Item = tuple[Case, Trial]


@dataclass(frozen=True)
class Part:
    """Trials of one suite, in the order they run."""

    suite: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Settings:
    """How to run: see `Work`. `until` is a time of the runner's clock, None for no budget.

    `merge` puts all groups of a kind into one child: for children that are slow to start.
    """

    device: str
    runs: int = 1
    repeat_seconds: float = 1e9
    nth: int = 0
    plant: str = ""
    memory: int = 0
    record: str = ""
    until: float | None = None
    merge: bool = False


@dataclass
class Runner:
    """One run. `heard` gets every result as it comes, `alive` a sign of life each second."""

    isolation: Isolation
    settings: Settings
    clock: Callable[[], float]
    heard: Callable[[Result], None]
    alive: Callable[[str], None]
    results: dict[str, Result] = field(default_factory=dict)
    failed_checks: set[str] = field(default_factory=set)
    row: int = 0
    lost: str = ""
    dead: str = ""
    canary: tuple[str, Item] | None = None

    def run(self, parts: Sequence[Part]) -> tuple[Result, ...]:
        """Run everything; every trial gets exactly one result, in the given order."""
        for part in parts:
            for batch in self._batches(part.items):
                self._batch(part.suite, batch)
            self._second_process(part)
        order = [trial.key for part in parts for _, trial in part.items]
        return tuple(self.results[key] for key in order)

    def _batches(self, items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
        def name(item: Item) -> str:
            return item[0].kind if self.settings.merge else group_of(item[0])

        for _, batch in itertools.groupby(items, key=name):
            yield tuple(batch)

    def _batch(self, suite: str, batch: tuple[Item, ...]) -> None:
        by_key = {trial.key: (case, trial) for case, trial in batch}
        if self._may_start():
            with closing(self.isolation.run(self._work(suite, batch))) as events:
                self._follow(suite, by_key, events)
        for case, trial in batch:
            if trial.key not in self.results:
                self._settle(case, trial)

    def _follow(self, suite: str, items: Mapping[str, Item], events: Iterator[Event]) -> None:
        for event in events:
            if isinstance(event, TrialRecord):
                self._keep(suite, items[event.key], event)
            elif isinstance(event, Checked):
                self.failed_checks |= set() if event.ok else {event.group}
            elif isinstance(event, Left):
                self._look_after(event)
            else:
                self.alive(event.key)
            if self.dead:
                return

    def _may_start(self) -> bool:
        in_time = self.settings.until is None or self.clock() < self.settings.until
        return in_time and not self.dead

    def _work(self, suite: str, items: Sequence[Item]) -> Work:
        left = 0.0
        if self.settings.until is not None:
            left = max(self.settings.until - self.clock(), 1e-3)
        return Work(
            suite=suite,
            device=self.settings.device,
            trials=tuple(trial for _, trial in items),
            groups=tuple(group_of(case) for case, _ in items),
            runs=self.settings.runs,
            repeat_seconds=self.settings.repeat_seconds,
            plant=self.settings.plant,
            seconds=left,
            memory=self.settings.memory,
            record=self.settings.record,
        )

    def _keep(self, suite: str, item: Item, record: TrialRecord) -> None:
        self._add(Result(*item, record))
        if record.verdict == Verdict.MATCH and self.canary is None:
            self.canary = (suite, item)
        if record.verdict not in DEVICE_LOST:
            self.row = 0
            return
        self.row += 1
        self.lost = record.key
        if self.row >= FAILURES_IN_A_ROW:
            self.dead = f"{self.row} trials in a row got no answer, last {record.key}"

    def _look_after(self, left: Left) -> None:
        """See whether the device lives, once nothing is left of a child that crashed."""
        lost, self.lost = self.lost, ""
        if not lost:
            return
        if left.held:
            self.dead = f"process {left.pid} died in {lost} and the driver does not let it go"
        elif self.canary is not None and not self._canary_lives(*self.canary):
            self.dead = f"it computes nothing right any more since {lost}"

    def _canary_lives(self, suite: str, item: Item) -> bool:
        # After a crash the device may be lost: something that was right must be right again.
        work = replace(self._work(suite, (item,)), runs=1, plant="", seconds=0.0)
        for _ in range(CANARY_TRIES):
            for event in self.isolation.run(work):
                if isinstance(event, TrialRecord) and event.verdict == Verdict.MATCH:
                    return True
        return False

    def _settle(self, case: Case, trial: Trial) -> None:
        verdict, why = Verdict.UNPROVEN, "not run: the budget ended"
        if group_of(case) in self.failed_checks:
            verdict = Verdict.INVALID
            why = "not judged: its group's checker did not see a fault planted for it"
        elif self.dead:
            why = f"not run: the device was given up: {self.dead}"
        self._add(Result(case, trial, TrialRecord(trial.key, verdict, why)))

    def _add(self, result: Result) -> None:
        self.results[result.trial.key] = result
        self.heard(result)

    def _second_process(self, part: Part) -> None:
        """Ask every nth matching trial again in a fresh process, in reverse order."""
        nth = self.settings.nth
        matched = [item for item in part.items if self._worth_repeating(item[1].key)]
        chosen = tuple(reversed(matched[::nth])) if nth else ()
        if not chosen or not self._may_start():
            return
        known = {trial.key: self.results[trial.key].record.digest for _, trial in chosen}
        work = replace(self._work(part.suite, chosen), runs=1, known=known)
        for event in self.isolation.run(work):
            if isinstance(event, TrialRecord):
                self._compare(event)
            elif isinstance(event, Alive):
                self.alive(event.key)

    def _worth_repeating(self, key: str) -> bool:
        record = self.results[key].record
        quick = record.seconds <= self.settings.repeat_seconds
        return record.verdict == Verdict.MATCH and quick

    def _compare(self, again: TrialRecord) -> None:
        first = self.results[again.key]
        same = again.digest in {"", first.record.digest}
        if again.verdict == Verdict.UNPROVEN and same:
            return
        record = again
        if again.verdict not in DEVICE_LOST:
            record = either(first.record, again, "a second process")
        self._add(replace(first, record=record))
