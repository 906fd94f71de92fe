"""Whether a machine may compute: what a verdict file and the machine of today add up to.

Pure: text, key and clock come in, a standing comes out. The same rules serve first boot on
Linux and on Windows. Anything in doubt is `pending`, which means: prove it again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from vega_image.selftest.case import LEVELS

SCHEMA = "vega-selftest-gate/1"
UNREAD = "not available"
CLOCK_SKEW = 300.0
PASSED, INTERRUPTED = 0, 130


class State(str, Enum):  # noqa: UP042 - StrEnum is not in Python 3.10
    """The four states of the gate."""

    PENDING = "pending"
    RUNNING = "running"
    PASS = "pass"  # noqa: S105 - a state, not a password
    FAIL = "fail"


class Reason(str, Enum):  # noqa: UP042 - StrEnum is not in Python 3.10
    """Why the gate stands where it stands; stable words for scripts."""

    NO_VERDICT = "no-verdict"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    STALE = "stale"
    FUTURE = "future-dated"
    KEY_UNREADABLE = "key-unreadable"
    SOURCE = "not-a-device"
    LEVEL = "level-too-low"
    STOPPED = "stopped"
    RUNNING = "running"
    PROVEN = "proven"
    WRONG = "wrong"
    UNPROVEN = "unproven"
    HOST = "host"


@dataclass(frozen=True)
class Key:
    """What a verdict holds for; any change makes it stale.

    `unique_id` may be `not available`, since not every card has one; no other field may.
    `driver` holds, on Windows, the hashes of the HIP libraries as well; `profile` is the
    digest of the find-db and its profile, or `none`.
    """

    image: str
    pci: str
    subsystem: str
    vbios: str
    unique_id: str
    driver: str
    kernel: str
    profile: str
    suite: str

    def to_json(self) -> dict[str, str]:
        """Return all fields."""
        return {name: str(getattr(self, name)) for name in self.__dataclass_fields__}

    def unread(self) -> tuple[str, ...]:
        """Name the fields without which nothing can be said."""
        values = self.to_json().items()
        return tuple(
            name for name, value in values if value in {"", UNREAD} and name != "unique_id"
        )


FIELDS = frozenset(
    {"schema", "state", "exit_code", "level", "source", "written", "until", "boot", "key"}
)
IDENTITY = ("pci", "subsystem", "unique_id")


@dataclass(frozen=True)
class Record:
    """What a verdict file holds. Times are seconds since 1970; `boot` names the boot.

    `until` is when a run that is still `running` must have ended.
    """

    state: State
    exit_code: int
    level: str
    source: str
    written: float
    until: float
    boot: str
    key: Key


@dataclass(frozen=True)
class Standing:
    """The gate now, why, and what exactly: the field that changed, the file's fault."""

    state: State
    reason: Reason
    detail: str = ""


def begin(key: Key, level: str, *, source: str, boot: str, span: tuple[float, float]) -> Record:
    """Return the record to write before a run; `span` is now and when it must have ended."""
    now, until = span
    return Record(State.RUNNING, INTERRUPTED, level, source, now, until, boot, key)


def finish(begun: Record, exit_code: int, *, now: float) -> Record:
    """Return the record to write when the run has ended with an exit code."""
    state = State.PASS if exit_code == PASSED else State.FAIL
    if exit_code == INTERRUPTED:
        state = State.PENDING
    return Record(state, exit_code, begun.level, begun.source, now, now, begun.boot, begun.key)


def encode(record: Record) -> str:
    """Write a record as JSON that carries its own digest, so that a cut file shows."""
    body = _body(record)
    return json.dumps({**body, "sha256": _digest(body)}, indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True)
class Asked:
    """The least level that will do, and whose numbers count.

    Sources other than `device` are accepted only by a caller who says so.
    """

    level: str = "r2"
    sources: frozenset[str] = frozenset({"device"})


def stand(
    text: str | None, key: Key, *, now: float, boot: str = "", asked: Asked | None = None
) -> Standing:
    """Judge the verdict file of this machine, whose key is `key` today.

    `text` is None where there is no file. Raises ValueError for a level asked that is none.
    """
    if text is None:
        return Standing(State.PENDING, Reason.NO_VERDICT)
    record = decode(text)
    if isinstance(record, Standing):
        return record
    doubt = _about_key(record, key) or _about_time(record, now=now, boot=boot)
    return doubt or _about_result(record, asked or Asked())


def decode(text: str) -> Record | Standing:
    """Read a verdict file, or say why it is none."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return Standing(State.PENDING, Reason.DAMAGED, "not JSON: cut short or overwritten")
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return Standing(State.PENDING, Reason.FOREIGN, f"its schema is not {SCHEMA}")
    stated = value.pop("sha256", None)
    if stated != _digest(value):
        return Standing(State.PENDING, Reason.DAMAGED, "its digest does not fit")
    try:
        return _record(value)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        detail = f"a field is missing or wrong: {error}"
        return Standing(State.PENDING, Reason.DAMAGED, detail)


def _about_key(record: Record, key: Key) -> Standing | None:
    if unread := key.unread():
        return Standing(State.PENDING, Reason.KEY_UNREADABLE, ", ".join(unread))
    then, today = record.key.to_json(), key.to_json()
    changed = [name for name in today if then[name] != today[name]]
    if not changed:
        return None
    foreign = [name for name in changed if name in IDENTITY]
    reason = Reason.FOREIGN if foreign else Reason.STALE
    return Standing(State.PENDING, reason, ", ".join(foreign or changed))


def _about_time(record: Record, *, now: float, boot: str) -> Standing | None:
    if not record.written <= now + CLOCK_SKEW:
        return Standing(State.PENDING, Reason.FUTURE, f"{record.written - now:.0f} s ahead")
    if record.state != State.RUNNING:
        return None
    if record.boot != boot or now > record.until:
        return Standing(State.PENDING, Reason.STOPPED, "the run never finished")
    return Standing(State.RUNNING, Reason.RUNNING)


def _about_result(record: Record, asked: Asked) -> Standing:
    if record.source not in asked.sources:
        return Standing(State.PENDING, Reason.SOURCE, record.source)
    if record.state == State.FAIL:
        reasons = {7: Reason.HOST, 9: Reason.UNPROVEN}
        reason = reasons.get(record.exit_code, Reason.WRONG)
        return Standing(State.FAIL, reason, f"exit {record.exit_code}")
    if record.state == State.PENDING:
        return Standing(State.PENDING, Reason.STOPPED, f"exit {record.exit_code}")
    if LEVELS.index(record.level) < LEVELS.index(asked.level):
        return Standing(State.PENDING, Reason.LEVEL, f"{record.level} is below {asked.level}")
    return Standing(State.PASS, Reason.PROVEN, record.level)


def _body(record: Record) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "state": record.state.value,
        "exit_code": record.exit_code,
        "level": record.level,
        "source": record.source,
        "written": record.written,
        "until": record.until,
        "boot": record.boot,
        "key": record.key.to_json(),
    }


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        msg = "a name twice: readers may differ in which one counts"
        raise ValueError(msg)
    return value


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _digest(body: Mapping[str, object]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _record(value: Mapping[str, object]) -> Record:
    state, level, code = State(value["state"]), _text(value["level"]), value["exit_code"]
    if level not in LEVELS:
        raise ValueError(level)
    if not isinstance(code, int) or isinstance(code, bool):
        raise TypeError(code)
    if set(value) != FIELDS:
        msg = "fields"
        raise ValueError(msg)
    stopped = state in {State.RUNNING, State.PENDING}
    if (state == State.PASS) != (code == PASSED) or stopped != (code == INTERRUPTED):
        msg = f"{state.value} with exit code {code}"
        raise ValueError(msg)
    return Record(
        state=state,
        exit_code=code,
        level=level,
        source=_text(value["source"]),
        written=_seconds(value["written"]),
        until=_seconds(value["until"]),
        boot=_text(value["boot"]),
        key=_key(value["key"]),
    )


def _key(value: object) -> Key:
    names = set(Key.__dataclass_fields__)
    if not isinstance(value, dict) or set(value) != names:
        msg = "key"
        raise ValueError(msg)
    return Key(**{name: _text(value[name]) for name in names})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    if not math.isfinite(value):
        raise ValueError(value)
    return float(value)
