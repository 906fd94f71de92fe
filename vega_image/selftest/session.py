"""One run from wish to exit code: device, trials, journal, reports, gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from vega_image.selftest import (
    choosing,
    gate,
    reset,
    special,
    sweep,
    sweepwords,
)
from vega_image.selftest.arguments import Wish
from vega_image.selftest.delivery import complain_of, deliver, tell, versions
from vega_image.selftest.devices.opening import load_torch_modules
from vega_image.selftest.devices.replay import begin_recording, check_recording
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.files import remove_folders, writable_folder, write_whole
from vega_image.selftest.finding import Finding, in_order
from vega_image.selftest.host import read_machine
from vega_image.selftest.identity import (
    Known,
    boot_id,
    card_here,
    key_of,
    know,
    plan_for,
    suite_version,
)
from vega_image.selftest.isolate import Isolation, Launch, Limits
from vega_image.selftest.journal import Entry, Journal
from vega_image.selftest.journaling import entry_of
from vega_image.selftest.levels import TABLE, rehearsed
from vega_image.selftest.machine import machine_results
from vega_image.selftest.out import Progress, show
from vega_image.selftest.reading import Sysroot
from vega_image.selftest.report import Report, Run
from vega_image.selftest.result import Result
from vega_image.selftest.runner import Part, Runner, Settings
from vega_image.selftest.seen import Seen
from vega_image.selftest.spawn import Child, fork, own_command, spawn
from vega_image.selftest.suite import OWN, Work, load_suite
from vega_image.selftest.sweeping import Sweep
from vega_image.selftest.texts import Texts, load_texts
from vega_image.selftest.threefold import ORACLES
from vega_image.selftest.worker import encode_work, work_forked

GGML = "ggml"
HEADROOM = 3.0
LONGEST = 4 * 3600.0
RELEASE_SECONDS = 30.0
ROOT = Sysroot(Path("/"))


@dataclass(frozen=True)
class Session:
    """What stays the same during a run."""

    wish: Wish
    known: Known
    texts: Texts
    suite: str
    parts: tuple[Part, ...] = ()
    steps: tuple[sweep.Step, ...] = ()


def run_selftest(wish: Wish, progress_to: Callable[[Texts, int], Progress]) -> int:
    """Run, report, settle the gate; return the exit code 0, 7 (needs a reset), 8 or 9.

    Raises SelftestError for whatever stops it before a verdict; then no report is written, and
    what was begun of one is taken back.
    """
    session = prepare_session(wish)
    if wish.dry_run:
        return _dry_run(session)
    made = writable_folder(wish.report)
    try:
        begun = _begin_gate(session)
        report = _reported(session, begun, progress_to)
    except (SelftestError, OSError):
        remove_folders(made)
        raise
    _finish_gate(session, begun, report.exit_code)
    complain_of(report)
    tell(report, wish, session.texts)
    return report.exit_code


def _reported(
    session: Session, begun: gate.Record | None, progress_to: Callable[[Texts, int], Progress]
) -> Report:
    started, clock = datetime.now(timezone.utc), time.monotonic()  # noqa: UP017 - Python 3.10
    try:
        journal = Journal(session.wish.report / sweepwords.JOURNAL)
        with _closing(journal, keep=bool(session.steps)):
            results, found = _results(session, journal, progress_to)
            run = _run_facts(session, started.isoformat(timespec="seconds"), found)
            report = Report(run(time.monotonic() - clock), results)
            deliver(report, session.wish, session.texts)
    except BaseException:
        _finish_gate(session, begun, gate.INTERRUPTED)
        raise
    return report


@contextmanager
def _closing(journal: Journal, *, keep: bool) -> Iterator[None]:
    """Keep the lines of a run that ended or was interrupted; not of one that went wrong.

    `keep` them always: a sweep goes on from them, and they cost hours.
    """
    try:
        yield
        journal.close()
    except (SelftestError, OSError):
        if keep:
            journal.close()
        else:
            journal.undo()
        raise
    except BaseException:
        journal.close()
        raise


def prepare_session(wish: Wish) -> Session:
    """Check everything that can be checked before anything is started or written."""
    texts = load_texts(wish.language)
    choosing.all_cases()
    suite = suite_version()
    if wish.suite == GGML:
        special.ggml_device(wish.device)
        return Session(wish, _ggml_known(wish.device), texts, suite)
    if wish.suite != "own":
        text = f"no such suite: {wish.suite}"
        raise SelftestError("UNKNOWN_SUITE", text, hint="own, or ggml", at=wish.suite)
    choosing.chosen_cases(wish.cases)
    steps = sweepwords.steps_of(wish) if wish.sweeps else ()
    known = plan_for(wish.device) if wish.dry_run else know(wish.device)
    if wish.plant:
        _check_fault(wish.plant)
    parts = () if wish.sweeps else choosing.parts_of(wish, known)
    if not wish.dry_run:
        _check_modules(parts)
    return Session(wish, known, texts, suite, parts, steps)


def _check_modules(parts: tuple[Part, ...]) -> None:
    """Raise SelftestError (5) where the judges cannot be imported: no device's fault."""
    for part in parts:
        load_suite(part.suite)
        if any(choosing.needs_torch(*item) for item in part.items):
            load_torch_modules()


def _ggml_known(spec: str) -> Known:
    # Vulkan may be Mesa's software renderer, so it is never taken for a card.
    if spec.startswith("hip"):
        return replace(card_here(spec), open=_no_device)
    return Known("cpu", {}, _no_device)


def _no_device() -> NoReturn:
    msg = "an external suite opens its device itself"
    raise AssertionError(msg)


def _check_fault(name: str) -> None:
    faults = load_suite(OWN).FAULTS
    if name not in faults:
        raise SelftestError(
            "UNKNOWN_FAULT",
            f"no such fault: {name}",
            hint=f"one of {', '.join(faults)}",
            at=name,
        )


def _results(
    session: Session, journal: Journal, progress_to: Callable[[Texts, int], Progress]
) -> tuple[tuple[Result, ...], tuple[Finding, ...]]:
    wish, known = session.wish, session.known
    done = sweepwords.done_before(session.steps, wish, known, session.suite)
    progress = progress_to(session.texts, _total(session))
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
    try:
        for result in facts:
            heard(result)
        if session.steps:
            with TemporaryDirectory(prefix="vega-sweep-") as folder:
                setting = sweepwords.setting_of(wish, known, session.suite, Path(folder))
                swept = Sweep(setting, heard, kept, alive)
                return (*facts, *swept.run(session.steps, done)), ()
        results, dead = _run(session, heard, alive)
    finally:
        progress.end()
    if wish.record is not None:
        check_recording(wish.record)
    lost = _lost(session, dead) if dead else ()
    settled = tuple(seen.graded(result) for result in results)
    return (*facts, *settled), (*lost, *seen.findings())


def _lost(session: Session, dead: str) -> tuple[Finding, ...]:
    known = session.known
    if known.asked_as != "device":
        return ()
    slot = str(known.identity.get("slot", ""))
    inside = read_machine(ROOT).container
    return (reset.ladder(dead, device=session.wish.device, slot=slot, container=inside),)


def _run(
    session: Session, heard: Callable[[Result], None], alive: Callable[[str], None]
) -> tuple[tuple[Result, ...], str]:
    """Return the results, and why the device was given up, if it was."""
    wish = session.wish
    limits = Limits(trial=wish.timeout)
    if wish.suite == GGML:
        root = Path(wish.target or "/")
        return special.run_ggml(root, wish.device, wish.level, heard), ""
    isolation = Isolation(_launcher(session), limits, time.monotonic, _released)
    runner = Runner(isolation, _settings(session), time.monotonic, heard, alive)
    return runner.run(session.parts), runner.dead


def _released(pid: int) -> bool:
    return reset.released(ROOT, pid, RELEASE_SECONDS)


def _total(session: Session) -> int:
    planned = sum(len(part.items) for part in session.parts)
    return planned + len(session.steps) * len(ORACLES)


def _dry_run(session: Session) -> int:
    if session.steps:
        sweepwords.dry_run(session.steps, session.wish)
        return 0
    for part in session.parts:
        for _, trial in part.items:
            show(trial.key)
    return 0


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


def _run_facts(
    session: Session, started: str, found: tuple[Finding, ...]
) -> Callable[[float], Run]:
    wish, known = session.wish, session.known
    flags = {
        "planted": wish.plant,
        "budget": "" if wish.budget is None else f"{wish.budget:g}",
        "cases": ", ".join((*wish.cases, *wish.only)),
        "device": wish.device if known.foreign else "",
        "reset": next((item.action for item in found if item.code == reset.CODE), ""),
        "rehearsal": _rehearsal(session),
    }

    def run(seconds: float) -> Run:
        return Run(
            level=wish.level,
            device=wish.device,
            source=known.source,
            identity=known.identity,
            suite=session.suite,
            started=started,
            seconds=seconds,
            digests={"image": wish.image, "find-db": wish.find_db},
            versions=versions(),
            flags={name: value for name, value in flags.items() if value},
            findings=in_order([*known.findings, *found]),
        )

    return run


def _rehearsal(session: Session) -> str:
    level = TABLE[session.wish.level]
    short = rehearsed(level, session.known.asked_as)
    return "" if short == level else f"{short.runs}/{level.runs}"


def _begin_gate(session: Session) -> gate.Record | None:
    wish, known = session.wish, session.known
    if wish.verdict_file is None:
        return None
    key = key_of(known, image=wish.image, profile=wish.find_db, suite=session.suite)
    now = time.time()
    span = (now, now + (LONGEST if wish.budget is None else wish.budget * HEADROOM))
    # Code from outside the suite is nobody's proof, whoever may accept other sources.
    source = "foreign" if known.foreign else known.source
    begun = gate.begin(key, wish.level, source=source, boot=boot_id(), span=span)
    _write_gate(wish.verdict_file, begun)
    return begun


def _finish_gate(session: Session, begun: gate.Record | None, code: int) -> None:
    file = session.wish.verdict_file
    if begun is not None and file is not None:
        # A run of chosen cases, or with a planted fault, is no proof of the whole.
        partial = session.wish.cases or session.wish.only or session.wish.plant
        settled = 9 if partial and code == 0 else code
        _write_gate(file, gate.finish(begun, settled, now=time.time()))


def _write_gate(path: Path, record: gate.Record) -> None:
    try:
        write_whole(path, gate.encode(record).encode())
    except OSError as error:
        text = f"cannot write {path}: {error.strerror or error}"
        raise SelftestError(
            "VERDICT_FILE",
            text,
            exit_code=5,
            hint="choose another place with --verdict-file FILE",
            at=str(path),
        ) from error
