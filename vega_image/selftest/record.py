"""What is known about one trial after it was judged, and the lines that carry it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from vega_image.selftest.verdict import Verdict

KINDS = frozenset({"hello", "beat", "check", "started", "done", "end"})


@dataclass(frozen=True)
class TrialRecord:
    """`digest` is of all outputs; `repeatable` compares runs bit by bit, None if only one ran.

    `error` and `bound` are in the oracle's own measure; `seconds` is the device's time.
    """

    key: str
    verdict: Verdict
    detail: str = ""
    oracle: str = ""
    error: float | None = None
    bound: float | None = None
    seconds: float = 0.0
    solver: str = ""
    digest: str = ""
    repeatable: bool | None = None


@dataclass(frozen=True)
class Frame:
    """One line from a child: `hello beat check started done end`, and of what trial."""

    kind: str
    key: str = ""
    ok: bool = True
    record: TrialRecord | None = None


class NotAFrame(ValueError):  # noqa: N818 - reads as what it says
    """A child wrote something else."""


def encode_frame(frame: Frame) -> bytes:
    """Write a frame as one line of JSON."""
    value: dict[str, object] = {"kind": frame.kind, "key": frame.key, "ok": frame.ok}
    if frame.record is not None:
        value["record"] = asdict(frame.record)
    return json.dumps(value).encode() + b"\n"


def decode_frame(line: bytes) -> Frame:
    """Read one line. Raises NotAFrame for anything that is not one."""
    try:
        value = json.loads(line)
        kind, key, ok = value["kind"], value["key"], value["ok"]
        record = _record(value["record"]) if kind == "done" else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = line[:80].decode("utf-8", "replace")
        raise NotAFrame(msg) from error
    if kind not in KINDS or not isinstance(key, str) or not isinstance(ok, bool):
        raise NotAFrame(str(kind)[:80])
    return Frame(kind=kind, key=key, ok=ok, record=record)


def _record(value: Mapping[str, object]) -> TrialRecord:
    known = {item.name for item in fields(TrialRecord)}
    if set(value) != known:
        msg = "fields of a record"
        raise ValueError(msg)
    verdict = Verdict(value["verdict"])
    texts = {
        name: _text(value[name]) for name in ("key", "detail", "oracle", "solver", "digest")
    }
    repeatable = value["repeatable"]
    return TrialRecord(
        verdict=verdict,
        error=_number(value["error"]),
        bound=_number(value["bound"]),
        seconds=_number(value["seconds"]) or 0.0,
        repeatable=repeatable if isinstance(repeatable, bool) else None,
        **texts,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    return float(value)


@dataclass
class Lines:
    """Cuts a stream of bytes into lines; `rest` is what has no end yet."""

    rest: bytes = field(default=b"")

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take bytes, return the lines that are whole now."""
        *whole, self.rest = (self.rest + chunk).split(b"\n")
        return [line for line in whole if line]
