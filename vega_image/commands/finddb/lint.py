"""vega-image finddb lint: what is wrong in a find-db, and what MIOpen makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.digest import Json
from vega_image.finddb.findings import ERROR, KINDS, NOTE, SEVERITIES, WARNING, Finding
from vega_image.finddb.lint import Report, lint
from vega_image.finddb.opening import open_db

SHOWN, SHOWN_JSON = 20, 1000
FOUND_ERRORS = 2


def show_lint(
    call: Call, db: Path, *, system_db: Path | None, sizes: bool, limit: int | None
) -> int:
    """Print findings with line and column, and how many there are of each code."""
    under = open_db(system_db) if system_db else None
    report = lint(open_db(db), under, sizes=sizes)
    most = limit if limit is not None else SHOWN_JSON if call.console.as_json else SHOWN
    findings = list(report.findings(most))
    call.console.result(list(_lines(report, findings)), _value(report, findings))
    return FOUND_ERRORS if report.errors else 0


def _value(report: Report, findings: list[Finding]) -> Json:
    return {
        "file": report.db.name,
        "records": len(report.db),
        "errors": _of(report, ERROR),
        "warnings": _of(report, WARNING),
        "notes": _of(report, NOTE),
        "counts": dict(sorted(report.counts.items())),
        "omitted": report.counts.total() - len(findings),
        "findings": [
            {
                "code": one.code,
                "severity": one.severity,
                "line": one.line,
                "column": one.column,
                "message": one.message,
            }
            for one in findings
        ],
    }


def _of(report: Report, severity: str) -> int:
    return sum(n for code, n in report.counts.items() if KINDS[code][0] == severity)


def _lines(report: Report, findings: list[Finding]) -> Iterator[str]:
    for one in findings:
        place = f"{report.db.name}:{one.line}:{one.column}"
        yield f"{place}: {one.severity} {one.code}: {one.message}"
    if findings:
        yield ""
    for severity in SEVERITIES:
        for code in sorted(code for code in report.counts if KINDS[code][0] == severity):
            yield f"{report.counts[code]:>8}  {severity:<7}  {code}: {KINDS[code][1]}"
    omitted = report.counts.total() - len(findings)
    more = f"; {omitted} findings not shown (--limit 0 shows all)" if omitted else ""
    yield f"{len(report.db)} records, {report.errors} errors{more}"
