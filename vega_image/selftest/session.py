"""One run from wish to exit code: device, trials, journal, reports, gate."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from vega_image.selftest import choosing, gate, reset, sweepwords
from vega_image.selftest.arguments import Wish
from vega_image.selftest.delivery import complain_of, deliver, tell, versions
from vega_image.selftest.devices.opening import load_torch_modules
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.place import OpenPlace, folder_place
from vega_image.selftest.files import remove_folders, writable_folder, write_whole
from vega_image.selftest.finding import in_order
from vega_image.selftest.identity import (
    Known,
    boot_id,
    key_of,
    know,
    plan_for,
    suite_version,
)
from vega_image.selftest.journal import Journal
from vega_image.selftest.levels import TABLE, rehearsed
from vega_image.selftest.outside import GGML, Outcome, known_before
from vega_image.selftest.report import Report, Run
from vega_image.selftest.runner import Part
from vega_image.selftest.running import ProgressTo, Session, dry_run, run_trials
from vega_image.selftest.suite import OWN, load_suite
from vega_image.selftest.texts import load_texts

HEADROOM = 3.0
LONGEST = 4 * 3600.0


def run_selftest(
    wish: Wish,
    progress_to: ProgressTo,
    *,
    open_place: OpenPlace = folder_place,
) -> int:
    """Run, report, settle the gate; return the exit code 0, 7 (needs a reset), 8 or 9.

    `open_place` opens what an external suite judges.

    Raises SelftestError for whatever stops it before a verdict; then no report is written, and
    what was begun of one is taken back.
    """
    session = prepare_session(wish)
    if wish.dry_run:
        dry_run(session)
        return 0
    made = writable_folder(wish.report)
    try:
        begun = _begin_gate(session)
        report = _reported(session, begun, progress_to, open_place)
    except Exception:
        remove_folders(made)
        raise
    _finish_gate(session, begun, report.exit_code)
    complain_of(report)
    tell(report, wish, session.texts)
    return report.exit_code


def _reported(
    session: Session,
    begun: gate.Record | None,
    progress_to: ProgressTo,
    open_place: OpenPlace,
) -> Report:
    started, clock = datetime.now(timezone.utc), time.monotonic()  # noqa: UP017 - Python 3.10
    try:
        journal = Journal(session.wish.report / sweepwords.JOURNAL)
        with _closing(journal, keep=bool(session.steps)):
            outcome = run_trials(session, journal, progress_to, open_place)
            run = _run_facts(session, started.isoformat(timespec="seconds"), outcome)
            report = Report(run(time.monotonic() - clock), outcome.results)
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
    except Exception:
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
        return Session(wish, known_before(wish), texts, suite)
    if wish.suite != "own":
        text = f"no such suite: {wish.suite}"
        raise SelftestError("UNKNOWN_SUITE", text, hint="own, or ggml", at=wish.suite)
    if wish.target:
        text = "the own suite judges a device: --target is for an external suite"
        raise SelftestError("USAGE", text, hint="add --suite ggml", at=wish.target)
    choosing.chosen_cases(wish.cases)
    steps = sweepwords.steps_of(wish) if wish.sweeps else ()
    known = plan_for(wish.device) if wish.dry_run else _known(wish)
    if wish.plant:
        _check_fault(wish.plant)
    parts = () if wish.sweeps else choosing.parts_of(wish, known)
    if not wish.dry_run:
        _check_modules(parts)
    return Session(wish, known, texts, suite, parts, steps)


def _known(wish: Wish) -> Known:
    if wish.facts is None:
        return know(wish.device)
    if os.name != "nt":
        # Anybody can write such a folder; here the kernel itself says who the card is.
        text = "--facts tells of a Windows machine, and this is none"
        raise SelftestError("USAGE", text, hint="--device hip, without --facts", at="--facts")
    if wish.verdict_file is not None:
        text = "on Windows the gate's record is not written by the run"
        hint = "selftest gate --begin, the run, selftest gate --finish --report"
        raise SelftestError("USAGE", text, hint=hint, at="--verdict-file")
    from vega_image.selftest.windows.card import know_gathered  # noqa: PLC0415 - Windows

    return know_gathered(wish.device, wish.facts)


def _check_modules(parts: tuple[Part, ...]) -> None:
    """Raise SelftestError (5) where the judges cannot be imported: no device's fault."""
    for part in parts:
        load_suite(part.suite)
        if any(choosing.needs_torch(*item) for item in part.items):
            load_torch_modules()


def _check_fault(name: str) -> None:
    faults = load_suite(OWN).FAULTS
    if name not in faults:
        raise SelftestError(
            "UNKNOWN_FAULT",
            f"no such fault: {name}",
            hint=f"one of {', '.join(faults)}",
            at=name,
        )


def _run_facts(session: Session, started: str, outcome: Outcome) -> Callable[[float], Run]:
    wish, known = session.wish, outcome.known
    lost = (item.action for item in outcome.found if item.code == reset.CODE)
    flags = {
        "planted": wish.plant,
        "budget": "" if wish.budget is None else f"{wish.budget:g}",
        "cases": ", ".join((*wish.cases, *wish.only)),
        "device": wish.device if known.foreign else "",
        "reset": next(lost, ""),
        "rehearsal": _rehearsal(session),
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
            findings=in_order([*known.findings, *outcome.found]),
        )

    return run


def _rehearsal(session: Session) -> str:
    level = TABLE[session.wish.level]
    if session.wish.suite == GGML:
        return ""
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
