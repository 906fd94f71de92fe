"""The one verdict of a Windows machine: its facts first, then selftest's gate. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vega_image.selftest.encode import Json
from vega_image.selftest.gate import (
    CLOCK_SKEW,
    Asked,
    Key,
    Reason,
    Record,
    Standing,
    State,
    decode,
    stand,
)
from vega_image.selftest.reading import NotAvailable
from vega_image.selftest.windows import hip, presence, runtime
from vega_image.selftest.windows.cause import CODES, Cause, unread
from vega_image.selftest.windows.keying import key_of, why_unread
from vega_image.selftest.windows.notes import notes_of
from vega_image.selftest.windows.values import Gathered

SCHEMA = "vega-gate-verdict/1"
FRESH = 3600.0
"""Facts older than this say nothing of the machine of now."""
CAUSES: tuple[Callable[[Gathered], Cause | None], ...] = (
    presence.on_the_bus,
    presence.problem_free,
    presence.right_driver,
    runtime.vc_runtime,
    runtime.right_libraries,
    hip.seen_by_hip,
    hip.right_arch,
)
"""In this order: the cheapest true cause is said, and none that another one explains."""
EXITS = {Reason.WRONG: 8, Reason.UNPROVEN: 9}
AGAIN = "start the task \\VegaImage\\SelfTest, or restart the machine"
WORDS: Mapping[Reason, tuple[str, str]] = {
    Reason.PROVEN: ("PROVEN", ""),
    Reason.RUNNING: ("RUNNING", "wait for the run to end"),
    Reason.NO_VERDICT: ("UNPROVEN", AGAIN),
    Reason.DAMAGED: ("RECORD_DAMAGED", AGAIN),
    Reason.FOREIGN: ("STALE", AGAIN),
    Reason.STALE: ("STALE", AGAIN),
    Reason.FUTURE: ("FUTURE_DATED", f"set the machine's clock, then {AGAIN}"),
    Reason.KEY_UNREADABLE: ("FACTS_UNREADABLE", "run gather-facts.ps1 as SYSTEM again"),
    Reason.SOURCE: ("UNPROVEN", AGAIN),
    Reason.LEVEL: ("UNPROVEN", AGAIN),
    Reason.STOPPED: ("STOPPED", AGAIN),
    Reason.WRONG: (
        "WRONG_NUMBERS",
        "take the card out of use and read the report",
    ),
    Reason.UNPROVEN: ("UNPROVEN", f"read the report; then {AGAIN}"),
    Reason.HOST: ("CARD_LOST", f"restart the machine, then {AGAIN}"),
}


@dataclass(frozen=True)
class Question:
    """What is asked: the level that will do, the suite here, and the clock.

    `recorded` accepts facts of any age and is told in the verdict.
    """

    suite: str
    now: float
    asked: Asked = field(default_factory=Asked)
    recorded: bool = False


@dataclass(frozen=True)
class Verdict:
    """State, why, what was seen and what to do next; only state pass is exit 0."""

    state: State
    reason: Reason
    code: str
    detail: str
    hint: str
    key: Key
    device: str
    notes: tuple[str, ...]
    recorded: bool

    @property
    def exit_code(self) -> int:
        """Return 0 pass, 7 card or host, 8 wrong numbers, 9 pending, running or unproven."""
        if self.state is State.PASS:
            return 0
        return EXITS.get(self.reason, 7) if self.state is State.FAIL else 9

    def to_json(self) -> dict[str, Json]:
        """Return what `gate --json` prints."""
        return {
            "schema": SCHEMA,
            "exit": self.exit_code,
            "state": self.state.value,
            "reason": self.reason.value,
            "code": self.code,
            "detail": self.detail,
            "hint": self.hint,
            "device": self.device,
            "notes": list(self.notes),
            "recorded": self.recorded,
            "key": self.key.to_json(),
        }


def decide(gathered: Gathered, record: str | None, question: Question) -> Verdict:
    """Judge a machine by its facts and the text of its record (None: there is none)."""
    cause = forbidding(gathered, question)
    if cause is None:
        cause = _stands(gathered, record, question)
    return told(cause, gathered, question)


def forbidding(gathered: Gathered, question: Question) -> Cause | None:
    """Return the first cause in the facts alone for which nothing may be run or served."""
    for judge in CAUSES:
        if cause := judge(gathered):
            return cause
    key = key_of(gathered, suite=question.suite)
    if names := key.unread():
        return unread("; ".join(why_unread(gathered, name) for name in names))
    for value in (gathered.system, gathered.resets, gathered.tdr):
        if isinstance(value, NotAvailable):
            return unread(value.why)
    return _old(gathered, question)


def _old(gathered: Gathered, question: Question) -> Cause | None:
    if question.recorded or isinstance(gathered.system, NotAvailable):
        return None
    age = question.now - gathered.system.gathered
    if -CLOCK_SKEW <= age <= FRESH:
        return None
    when = f"{age / 60:.0f} minutes ago" if age > 0 else f"{-age / 60:.0f} minutes from now"
    hint = "run gather-facts.ps1 again; for a recorded folder say --recorded"
    return Cause("FACTS_OLD", f"gathered {when}", hint, State.PENDING, Reason.KEY_UNREADABLE)


def _stands(gathered: Gathered, record: str | None, question: Question) -> Cause:
    system = gathered.system
    assert not isinstance(system, NotAvailable)
    begun = None if record is None else decode(record)
    if isinstance(begun, Standing):
        return Cause("RECORD_DAMAGED", begun.detail, AGAIN, begun.state, begun.reason)
    key = key_of(gathered, suite=question.suite)
    standing = stand(record, key, now=question.now, boot=system.boot, asked=question.asked)
    return _reset(gathered, begun, standing) or cause_of(standing)


def _reset(gathered: Gathered, begun: Record | None, standing: Standing) -> Cause | None:
    """Take a pass back if Windows reset the driver since: what it held is not what it was."""
    if standing.state is not State.PASS or begun is None:
        return None
    if isinstance(gathered.resets, NotAvailable):
        return None
    later = [moment for moment in gathered.resets if moment >= begun.written]
    return reset_cause(len(later)) if later else None


def reset_cause(count: int) -> Cause:
    """Say that Windows reset the display driver `count` times."""
    detail = f"event 4101, display driver stopped responding: {count} times"
    hint = f"read tdr.json and the report's longest kernels; then {AGAIN}"
    return Cause("TDR_RESET", detail, hint, State.PENDING, Reason.STOPPED)


def cause_of(standing: Standing) -> Cause:
    """Return selftest's standing in this table's words."""
    code, hint = WORDS[standing.reason]
    detail = standing.detail or CODES[code]
    return Cause(code, detail, hint, standing.state, standing.reason)


def told(cause: Cause, gathered: Gathered, question: Question) -> Verdict:
    """Make the verdict of a cause."""
    device = hip.hip_device(gathered)
    return Verdict(
        state=cause.state,
        reason=cause.reason,
        code=cause.code,
        detail=cause.detail,
        hint=cause.hint,
        key=key_of(gathered, suite=question.suite),
        device="" if device is None else f"hip:{device.index}",
        notes=notes_of(gathered),
        recorded=question.recorded,
    )
