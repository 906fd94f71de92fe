"""The part of a run that asks the device: trials, sweeps, external suites, as they come in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from vega_image.selftest import reset, sweep, sweepwords
from vega_image.selftest.arguments import Wish
from vega_image.selftest.devices.replay import begin_recording, check_recording
from vega_image.selftest.external.ggml.place import OpenPlace
from vega_image.selftest.finding import Finding
from vega_image.selftest.host import read_machine
from vega_image.selftest.identity import Known
from vega_image.selftest.isolate import Isolation, Launch, Limits
from vega_image.selftest.journal import Entry, Journal
from vega_image.selftest.journaling import entry_of
from vega_image.selftest.levels import TABLE, rehearsed
from vega_image.selftest.machine import machine_results
from vega_image.selftest.out import Progress, show
from vega_image.selftest.outside import GGML, Outcome, dry_lines, judge_outside
from vega_image.selftest.reading import Sysroot
from vega_image.selftest.result import Result
from vega_image.selftest.runner import Part, Runner, Settings
from vega_image.selftest.seen import Seen
from vega_image.selftest.spawn import Child, fork, own_command, spawn
from vega_image.selftest.suite import Work, load_suite
from vega_image.selftest.sweeping import Sweep
from vega_image.selftest.texts import Texts
from vega_image.selftest.threefold import ORACLES
from vega_image.selftest.worker import encode_work, work_forked

RELEASE_SECONDS = 30.0
ROOT = Sysroot(Path("/"))
ProgressTo = Callable[[Texts, int], Progress]


@dataclass(frozen=True)
class Session:
    """What stays the same during a run."""

    wish: Wish
    known: Known
    texts: Texts
    suite: str
    parts: tuple[Part, ...] = ()
    steps: tuple[sweep.Step, ...] = ()


def run_trials(
    session: Session, journal: Journal, progress_to: ProgressTo, open_place: OpenPlace
) -> Outcome:
    """Ask all that was wished for; a result is in the journal as soon as it is known.

    Raises SelftestError for what stops a run before there is a verdict.
    """
    done = sweepwords.done_before(session.steps, session.wish, session.known, session.suite)
    progress = progress_to(session.texts, _total(session))
    try:
        if session.wish.suite == GGML:
            return _outside(session, journal, progress, open_place)
        return _inside(session, journal, progress, done)
    finally:
        progress.end()


def _outside(
    session: Session, journal: Journal, progress: Progress, open_place: OpenPlace
) -> Outcome:
    outcome = judge_outside(
        session.wish,
        session.known,
        open_place,
        lambda case, wrong: progress.result(case, wrong=wrong),
    )
    known = outcome.known
    results = (*machine_results(known), *outcome.results)
    for result in results:
        journal.add(entry_of(result, known.source, known.identity, session.suite))
    return replace(outcome, results=results)


def _inside(
    session: Session, journal: Journal, progress: Progress, done: Mapping[str, Entry]
) -> Outcome:
    wish, known = session.wish, session.known
    seen = Seen(known)

    def heard(result: Result, line: Entry | None = None) -> None:
        result = seen.graded(result)
        journal.add(line or entry_of(result, known.source, known.identity, session.suite))
        kept(result)

    def kept(result: Result) -> None:
        progress.result(result.trial.key, wrong=result.failing)

    def alive(what: str) -> None:
        progress.alive(what)
        seen.look(what)

    if wish.record is not None:
        begin_recording(wish.record, known.identity)
    facts = machine_results(known)
    for result in facts:
        heard(result)
    if session.steps:
        with TemporaryDirectory(prefix="vega-sweep-") as folder:
            setting = sweepwords.setting_of(wish, known, session.suite, Path(folder))
            swept = Sweep(setting, heard, kept, alive).run(session.steps, done)
        return Outcome(known, (*facts, *swept))
    results, dead = _run(session, heard, alive)
    if wish.record is not None:
        check_recording(wish.record)
    lost = lost_card(known, wish.device, dead) if dead else ()
    settled = tuple(seen.graded(result) for result in results)
    return Outcome(known, (*facts, *settled), found=(*lost, *seen.findings()))


def lost_card(known: Known, device: str, dead: str) -> tuple[Finding, ...]:
    """Say that the host must reset a card; nothing else that died is helped by that."""
    if known.source != "device":
        return ()
    slot = str(known.identity.get("slot", ""))
    inside = read_machine(ROOT).container
    return (reset.ladder(dead, device=device, slot=slot, container=inside),)


def _run(
    session: Session, heard: Callable[[Result], None], alive: Callable[[str], None]
) -> tuple[tuple[Result, ...], str]:
    """Return the results, and why the device was given up, if it was."""
    limits = Limits(trial=session.wish.timeout)
    isolation = Isolation(_launcher(session), limits, time.monotonic, _released)
    runner = Runner(isolation, _settings(session), time.monotonic, heard, alive)
    return runner.run(session.parts), runner.dead


def _released(pid: int) -> bool:
    return reset.released(ROOT, pid, RELEASE_SECONDS)


def _total(session: Session) -> int:
    if session.wish.suite == GGML:
        return len(dry_lines(session.wish))
    planned = sum(len(part.items) for part in session.parts)
    return planned + len(session.steps) * len(ORACLES)


def dry_run(session: Session) -> None:
    """Print what would run."""
    if session.steps:
        sweepwords.dry_run(session.steps, session.wish)
        return
    if session.wish.suite == GGML:
        lines = dry_lines(session.wish)
    else:
        lines = tuple(trial.key for part in session.parts for _, trial in part.items)
    for line in lines:
        show(line)


def _settings(session: Session) -> Settings:
    wish = session.wish
    level = rehearsed(TABLE[wish.level], session.known.asked_as)
    until = None if wish.budget is None else time.monotonic() + wish.budget
    return Settings(
        device=wish.device,
        runs=1 if wish.plant else level.runs,
        repeat_seconds=level.repeat,
        nth=0 if wish.plant else level.nth,
        plant=wish.plant,
        memory=wish.memory,
        record=str(wish.record or ""),
        until=until,
        merge=wish.isolation == "spawn",
    )


def _launcher(session: Session) -> Launch:
    if session.wish.isolation == "spawn":
        command = [*own_command(), "worker"]
        return lambda work: spawn(command, encode_work(work))
    # Children inherit what is imported here, so that each starts in milliseconds.
    for part in session.parts:
        load_suite(part.suite)
    opened = session.known.open

    def launch(work: Work) -> Child:
        return fork(lambda pipe: work_forked(work, opened, pipe))

    return launch
