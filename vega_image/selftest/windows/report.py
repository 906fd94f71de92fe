"""Take the exit code out of report.json, if it is the report of the run that began. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from vega_image.selftest.gate import CLOCK_SKEW, INTERRUPTED, PASSED, Record
from vega_image.selftest.report import SCHEMA
from vega_image.selftest.windows.text import UnreadableError, decode_json

NAME = "report.json"
IDENTITY = ("pci", "subsystem", "vbios", "unique_id", "driver")
EXITS = {0: "pass", 7: "fail", 8: "fail", 9: "unproven"}
PARTIAL = ("planted", "cases")
UNPROVEN = 9


class UnfitError(Exception):
    """A report that is not one of the run that began; the text says why."""


def exit_of(data: bytes, begun: Record, *, now: float) -> int:
    """Return what the run proved: 0, 7, 8 or 9. Raises UnfitError.

    A pass of chosen cases or with a planted fault proves nothing of the whole: 9.
    """
    try:
        report = decode_json(NAME, data)
    except UnreadableError as error:
        raise UnfitError(str(error)) from error
    code = _consistent(report)
    _same_run(report, begun, now=now)
    flags = _part(report, "flags")
    if code == PASSED and any(flags.get(name) for name in PARTIAL):
        return UNPROVEN
    return code


def _consistent(report: Mapping[str, object]) -> int:
    code, verdict = report.get("exit_code"), report.get("verdict")
    if report.get("schema") != SCHEMA:
        msg = f"its schema is not {SCHEMA}"
        raise UnfitError(msg)
    if isinstance(code, bool) or not isinstance(code, int) or code == INTERRUPTED:
        msg = "no exit code"
        raise UnfitError(msg)
    if EXITS.get(code) != verdict:
        msg = f"verdict {verdict} with exit code {code}"
        raise UnfitError(msg)
    _results_agree(report, code)
    return code


def _results_agree(report: Mapping[str, object], code: int) -> None:
    """Demand that a pass lists what passed: every required result, and all accepted."""
    if code != PASSED:
        return
    results = report.get("results")
    listed = (
        [one for one in results if isinstance(one, dict)] if isinstance(results, list) else []
    )
    required = [one for one in listed if one.get("required") is True]
    if not required or not all(one.get("accepted") is True for one in required):
        msg = "a pass, but not every required result is accepted"
        raise UnfitError(msg)


def _same_run(report: Mapping[str, object], begun: Record, *, now: float) -> None:
    wanted = {"source": begun.source, "level": begun.level, "suite": begun.key.suite}
    for name, value in wanted.items():
        if report.get(name) != value:
            msg = f"{name} is {report.get(name)!r}, the run that began has {value!r}"
            raise UnfitError(msg)
    device, key = _part(report, "device"), begun.key.to_json()
    for name in IDENTITY:
        if device.get(name) != key[name]:
            msg = f"{name} of its device is {device.get(name)!r}, the card's is {key[name]!r}"
            raise UnfitError(msg)
    started = _seconds(report.get("started"))
    # Its clock has whole seconds, and a run begins after its record was written.
    if not begun.written - 1 <= started <= now + CLOCK_SKEW:
        msg = f"it started at {report.get('started')}, not in the run that began"
        raise UnfitError(msg)


def _part(report: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = report.get(name)
    if not isinstance(value, dict):
        msg = f"{name} is no object"
        raise UnfitError(msg)
    return value


def _seconds(text: object) -> float:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError as error:
        msg = "started is no time"
        raise UnfitError(msg) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)  # noqa: UP017 - Python 3.10
    return moment.timestamp()
