"""The report for continuous integration: JUnit XML, one suite per family. Pure."""

from __future__ import annotations

from html import escape

from vega_image.selftest.report import Report, families
from vega_image.selftest.result import Result
from vega_image.selftest.verdict import Verdict

ERRORS = frozenset({Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.INVALID})
FIRST_PRINTABLE = 0x20
LAST_CHARACTER = 0xFFFD


def junit(report: Report) -> bytes:
    """Write it: wrong is a failure, crashes are errors, everything without proof is skipped.

    DEGRADED that was accepted passes and says so in system-out.
    """
    suites = []
    for family in families(report.results):
        items = [item for item in report.results if item.group == family.group]
        cases = "".join(_case(item) for item in items)
        tags = [_tag(item) for item in items]
        numbers = " ".join(
            f'{name}="{tags.count(tag)}"'
            for name, tag in (
                ("failures", "failure"),
                ("errors", "error"),
                ("skipped", "skipped"),
            )
        )
        suites.append(
            f'<testsuite name="{_safe(family.group)}" tests="{len(items)}" {numbers}'
            f' time="{family.seconds:.6f}" timestamp="{_safe(report.run.started[:19])}">\n'
            f"{_properties(report)}{cases}</testsuite>\n"
        )
    labels = f"vega-image selftest {report.run.level} {report.run.device} {report.run.source}"
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="{_safe(labels)}">\n'
    return (head + "".join(suites) + "</testsuites>\n").encode()


def _properties(report: Report) -> str:
    run = report.run
    values = {
        "verdict": report.verdict,
        "level": run.level,
        "device": run.device,
        "source": run.source,
        **report.flags,
    }
    rows = (
        f'<property name="{_safe(name)}" value="{_safe(value)}"/>'
        for name, value in values.items()
    )
    return f"<properties>{''.join(rows)}</properties>\n"


def _case(item: Result) -> str:
    trial = item.trial
    where = "-".join(part for part in (trial.dtype, item.case.layout, trial.direction) if part)
    name = f"{item.case.name}[{where}-{trial.profile}-{trial.rep}]"
    head = (
        f'<testcase classname="{_safe(item.case.id)}" name="{_safe(name)}"'
        f' time="{item.record.seconds:.6f}"'
    )
    body = _body(item)
    return f"{head}>{body}</testcase>\n" if body else f"{head}/>\n"


def _body(item: Result) -> str:
    text, tag = _safe(item.record.detail), _tag(item)
    if tag:
        return f'<{tag} message="{item.verdict.value}">{text}</{tag}>'
    return "" if item.verdict == Verdict.MATCH else f"<system-out>DEGRADED {text}</system-out>"


def _tag(item: Result) -> str:
    if item.accepted:
        return ""
    if item.verdict in ERRORS:
        return "error"
    return "failure" if item.failing else "skipped"


def _safe(text: str) -> str:
    """Escape, and leave out what XML 1.0 cannot hold."""
    kept = (
        char
        for char in text
        if (ord(char) >= FIRST_PRINTABLE or char in "\t\n") and ord(char) <= LAST_CHARACTER
        and not 0xD800 <= ord(char) < 0xE000  # noqa: PLR2004 - the surrogates
    )  # fmt: skip
    return escape("".join(kept))
