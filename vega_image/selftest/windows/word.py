"""`selftest gate`: one verdict on a Windows machine, and the record that it stands on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vega_image.selftest import gate
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.files import read_verdict, write_whole
from vega_image.selftest.gate import Asked, Reason, Record, State
from vega_image.selftest.identity import suite_version
from vega_image.selftest.out import show, show_json
from vega_image.selftest.reading import NotAvailable, printable
from vega_image.selftest.windows.cause import Cause
from vega_image.selftest.windows.folder import read_folder
from vega_image.selftest.windows.gatewords import GateWish
from vega_image.selftest.windows.keying import key_of
from vega_image.selftest.windows.report import UNPROVEN, UnfitError, exit_of
from vega_image.selftest.windows.text import UnreadableError, read_bytes
from vega_image.selftest.windows.values import Gathered
from vega_image.selftest.windows.verdict import (
    AGAIN,
    Question,
    Verdict,
    cause_of,
    decide,
    forbidding,
    reset_cause,
    told,
)

Clock = Callable[[], float]


def run_gate(wish: GateWish, clock: Clock) -> int:
    """Print the verdict; return 0 (pass and nothing else), 7, 8 or 9.

    Raises SelftestError (5) where the record cannot be written.
    """
    question = Question(suite_version(), clock(), Asked(wish.level), wish.recorded)
    gathered = read_folder(wish.facts)
    if wish.begin:
        verdict = _begin(wish, gathered, question)
    elif wish.finish:
        verdict = _finish(wish, gathered, question)
    else:
        verdict = decide(gathered, read_verdict(wish.state), question)
    _say(verdict, as_json=wish.json)
    return verdict.exit_code


def _begin(wish: GateWish, gathered: Gathered, question: Question) -> Verdict:
    """Write that a run begins, unless the facts forbid one or wrong numbers stand."""
    if cause := forbidding(gathered, question):
        return told(cause, gathered, question)
    before = decide(gathered, read_verdict(wish.state), question)
    if before.state is State.RUNNING:
        return before
    # Wrong once is wrong: running until it passes would let a card through that errs at times.
    if before.reason is Reason.WRONG and not wish.again:
        return before
    system = gathered.system
    assert not isinstance(system, NotAvailable)
    key, now = key_of(gathered, suite=question.suite), question.now
    span = (now, now + wish.span)
    _write(
        wish.state, gate.begin(key, wish.level, source="device", boot=system.boot, span=span)
    )
    return decide(gathered, read_verdict(wish.state), question)


def _finish(wish: GateWish, gathered: Gathered, question: Question) -> Verdict:
    """Write how the run that began ended; whatever does not fit is no pass."""
    text = read_verdict(wish.state)
    begun = gate.decode(text) if text is not None else None
    if not isinstance(begun, Record) or begun.state is not State.RUNNING:
        detail = "no run has begun"
        return told(_unfit(detail), gathered, question)
    standing = gate.stand(
        text, key_of(gathered, suite=question.suite), now=question.now, boot=_boot(gathered)
    )
    if standing.state is not State.RUNNING:
        # Card, driver or image are others than those that began, or it was another boot.
        _write(wish.state, gate.finish(begun, gate.INTERRUPTED, now=question.now))
        return told(cause_of(standing), gathered, question)
    code, cause = _ended(wish, gathered, begun, question)
    _write(wish.state, gate.finish(begun, code, now=question.now))
    if cause is not None:
        return told(cause, gathered, question)
    return decide(gathered, read_verdict(wish.state), question)


def _ended(
    wish: GateWish, gathered: Gathered, begun: Record, question: Question
) -> tuple[int, Cause | None]:
    """Return the exit code to record, and what to say where the report does not tell it."""
    assert wish.report is not None
    try:
        code = exit_of(
            read_bytes(wish.report.parent, wish.report.name), begun, now=question.now
        )
    except (UnreadableError, UnfitError) as error:
        return UNPROVEN, _unfit(str(error))
    if isinstance(gathered.resets, NotAvailable) or forbidding(gathered, question):
        # What was proven is not what is here now; the verdict says what is.
        return code or UNPROVEN, None
    resets = [moment for moment in gathered.resets if moment >= begun.written]
    if resets and code == gate.PASSED:
        return UNPROVEN, reset_cause(len(resets))
    return code, None


def _unfit(detail: str) -> Cause:
    return Cause("REPORT_UNFIT", detail, AGAIN, State.FAIL, Reason.UNPROVEN)


def _boot(gathered: Gathered) -> str:
    return "" if isinstance(gathered.system, NotAvailable) else gathered.system.boot


def _write(path: Path, record: Record) -> None:
    try:
        write_whole(path, gate.encode(record).encode())
    except OSError as error:
        raise SelftestError(
            "VERDICT_FILE",
            f"cannot write {path}: {error.strerror or error}",
            exit_code=5,
            hint="choose another place with --state FILE, or write as Administrator",
            at=str(path),
        ) from error


def _say(verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        show_json(verdict.to_json())
        return
    mark = " [recorded facts]" if verdict.recorded else ""
    show(f"{verdict.state.value}{mark}: {verdict.code}: {printable(verdict.detail)}")
    for note in verdict.notes:
        show(f"note: {printable(note)}")
    if verdict.hint:
        show(f"hint: {printable(verdict.hint)}")
