"""One run from wish to exit code: device, trials, journal, reports, gate."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from vega_image.selftest import (
    choosing,
    gate,
    report_html,
    report_junit,
    sensors,
    special,
    sweep,
    tables,
)
from vega_image.selftest.arguments import Wish
from vega_image.selftest.devices.replay import begin_recording
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.place import OpenPlace, folder_place
from vega_image.selftest.files import writable_folder, write_all, write_whole
from vega_image.selftest.finding import in_order
from vega_image.selftest.identity import Known, boot_id, key_of, know, suite_version
from vega_image.selftest.isolate import Isolation, Launch, Limits
from vega_image.selftest.journal import Journal
from vega_image.selftest.journaling import entry_of
from vega_image.selftest.levels import TABLE
from vega_image.selftest.out import Progress, encode_json, show, show_json, show_toned
from vega_image.selftest.outside import (
    GGML,
    Outcome,
    dry_lines,
    judge_outside,
    known_before,
)
from vega_image.selftest.reading import Sysroot
from vega_image.selftest.report import Report, Run, summary_json, to_json
from vega_image.selftest.report_text import block
from vega_image.selftest.result import Result
from vega_image.selftest.runner import Part, Runner, Settings
from vega_image.selftest.spawn import Child, fork, own_command, spawn
from vega_image.selftest.suite import OWN, Work, load_suite
from vega_image.selftest.texts import Texts, load_texts
from vega_image.selftest.worker import encode_work, work_forked

HEADROOM = 3.0
LONGEST = 4 * 3600.0


@dataclass(frozen=True)
class Session:
    """What stays the same during a run."""

    wish: Wish
    known: Known
    texts: Texts
    suite: str
    parts: tuple[Part, ...]


def run_selftest(
    wish: Wish,
    progress_to: Callable[[Texts, int], Progress],
    *,
    open_place: OpenPlace = folder_place,
) -> int:
    """Run, report, settle the gate; return the exit code 0, 8 or 9.

    `open_place` opens what an external suite judges.

    Raises SelftestError for whatever stops it before a verdict; then no report is written.
    """
    session = prepare_session(wish)
    if wish.dry_run:
        return _dry_run(session)
    fresh = not wish.report.exists()
    writable_folder(wish.report)
    begun = _begin_gate(session)
    started, clock = datetime.now(timezone.utc), time.monotonic()  # noqa: UP017 - Python 3.10
    try:
        outcome = _outcome(session, progress_to, open_place)
    except BaseException:
        _finish_gate(session, begun, gate.INTERRUPTED)
        if fresh:
            # Only if nothing lies in it; a journal of what did run stays.
            with suppress(OSError):
                wish.report.rmdir()
        raise
    run = _run_facts(session, started.isoformat(timespec="seconds"), outcome)
    report = Report(run(time.monotonic() - clock), outcome.results)
    deliver(report, wish, session.texts)
    _finish_gate(session, begun, report.exit_code)
    return report.exit_code


def prepare_session(wish: Wish) -> Session:
    """Check everything that can be checked before anything is started or written."""
    texts = load_texts(wish.language)
    suite = suite_version(tables.SUITE_VERSION)
    if wish.suite == GGML:
        return Session(wish, known_before(wish), texts, suite, ())
    if wish.suite != "own":
        text = f"no such suite: {wish.suite}"
        raise SelftestError("UNKNOWN_SUITE", text, hint="own, or ggml", at=wish.suite)
    choosing.chosen_cases(wish.cases)
    known = know(wish.device)
    if wish.plant:
        _check_fault(wish.plant)
    return Session(wish, known, texts, suite, choosing.parts_of(wish, known))


def _check_fault(name: str) -> None:
    faults = load_suite(OWN).FAULTS
    if name not in faults:
        raise SelftestError(
            "UNKNOWN_FAULT",
            f"no such fault: {name}",
            hint=f"one of {', '.join(faults)}",
            at=name,
        )


def _outcome(
    session: Session, progress_to: Callable[[Texts, int], Progress], open_place: OpenPlace
) -> Outcome:
    progress = progress_to(session.texts, _total(session))
    try:
        if session.wish.suite == GGML:
            return _outside(session, progress, open_place)
        return _inside(session, progress)
    finally:
        progress.end()


def _outside(session: Session, progress: Progress, open_place: OpenPlace) -> Outcome:
    outcome = judge_outside(
        session.wish,
        session.known,
        open_place,
        lambda case, wrong: progress.result(case, wrong=wrong),
    )
    journal = Journal(session.wish.report / "journal.jsonl")
    for result in outcome.results:
        known = outcome.known
        journal.add(entry_of(result, known.source, known.identity, session.suite))
    journal.close()
    return outcome


def _inside(session: Session, progress: Progress) -> Outcome:
    wish, known = session.wish, session.known
    journal = Journal(wish.report / "journal.jsonl")
    samples: list[sensors.Sample] = []

    def heard(result: Result) -> None:
        journal.add(entry_of(result, known.source, known.identity, session.suite))
        progress.result(result.trial.key, wrong=result.failing)

    def alive(what: str) -> None:
        progress.alive(what)
        if known.source == "device" and what.startswith("soak"):
            samples.append(sensors.sample(Sysroot(Path("/")), known.folder))

    if wish.record is not None:
        begin_recording(wish.record, known.identity)
    try:
        results = _run(session, heard, alive)
        return Outcome(known, results, heat=sensors.judge_samples(samples))
    finally:
        journal.close()


def _run(
    session: Session, heard: Callable[[Result], None], alive: Callable[[str], None]
) -> tuple[Result, ...]:
    wish = session.wish
    limits = Limits(trial=wish.timeout)
    if wish.solvers == "all":
        with TemporaryDirectory(prefix="vega-sweep-") as folder:
            return _sweep(session, Path(folder)).run(heard, alive)
    isolation = Isolation(_launcher(session), limits, time.monotonic)
    runner = Runner(isolation, _settings(wish), time.monotonic, heard, alive)
    return runner.run(session.parts)


def _total(session: Session) -> int:
    if session.wish.suite == GGML:
        return len(dry_lines(session.wish))
    if session.wish.solvers == "all" and session.parts:
        return len(_sweep(session, Path("sweep")).steps())
    return sum(len(part.items) for part in session.parts)


def _sweep(session: Session, folder: Path) -> special.Sweep:
    items = tuple(item for part in session.parts for item in part.items)
    limits = Limits(trial=session.wish.timeout)
    return special.Sweep(items, session.wish.device, limits, folder)


def _dry_run(session: Session) -> int:
    if session.wish.solvers == "all":
        steps = (step for _, step in _sweep(session, Path("sweep")).steps())
        lines = sweep.dry_run(steps)
    elif session.wish.suite == GGML:
        lines = dry_lines(session.wish)
    else:
        lines = tuple(trial.key for part in session.parts for _, trial in part.items)
    for line in lines:
        show(line)
    return 0


def _settings(wish: Wish) -> Settings:
    level = TABLE[wish.level]
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


def _run_facts(session: Session, started: str, outcome: Outcome) -> Callable[[float], Run]:
    wish, known = session.wish, outcome.known
    flags = {
        "planted": wish.plant,
        "budget": "" if wish.budget is None else f"{wish.budget:g}",
        "cases": ", ".join((*wish.cases, *wish.only)),
        "device": wish.device if wish.device.startswith("python:") else "",
        **outcome.flags,
    }

    def run(seconds: float) -> Run:
        return Run(
            level=wish.level,
            device=outcome.device or wish.device,
            source=known.source,
            identity=known.identity,
            suite=session.suite,
            started=started,
            seconds=seconds,
            digests={"image": wish.image, "find-db": wish.find_db, **outcome.digests},
            versions=versions(),
            flags={name: value for name, value in flags.items() if value},
            findings=in_order([*known.findings, *outcome.heat]),
        )

    return run


def versions() -> Mapping[str, str]:
    """Return what computes and judges here, without importing it."""
    found = {"python": platform.python_version(), "kernel": platform.release()}
    for name in ("numpy", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def deliver(report: Report, wish: Wish, texts: Texts) -> None:
    """Write the three reports and say the verdict."""
    files = {
        "report.json": encode_json(to_json(report, texts)),
        "report.xml": report_junit.junit(report),
        "report.html": report_html.page(report, texts),
    }
    write_all(wish.report, files)
    if wish.json:
        show_json(summary_json(report, str(wish.report)))
        return
    for line in block(report, texts, str(wish.report / "report.html")):
        show_toned(line.text, line.tone, indent=line.indent)


def _begin_gate(session: Session) -> gate.Record | None:
    wish, known = session.wish, session.known
    if wish.verdict_file is None:
        return None
    key = key_of(known, image=wish.image, profile=wish.find_db, suite=session.suite)
    now = time.time()
    span = (now, now + (LONGEST if wish.budget is None else wish.budget * HEADROOM))
    begun = gate.begin(key, wish.level, source=known.source, boot=boot_id(), span=span)
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
        raise SelftestError("VERDICT_FILE", text, at=str(path)) from error
