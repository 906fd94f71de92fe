"""The verdict for a terminal or a pipe: what it is, what is wrong, what to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from vega_image.selftest.report import Report
from vega_image.selftest.report_html import label_of, telling
from vega_image.selftest.result import Result, counts, gravest_first
from vega_image.selftest.texts import Texts

SHOWN = 5
TONES = {"pass": "good", "fail": "bad", "unproven": "doubt"}


@dataclass(frozen=True)
class Said:
    """One line; `tone` is good, bad, doubt or empty; `indent` in columns when it wraps."""

    text: str
    tone: str = ""
    indent: int = 0


def block(report: Report, texts: Texts, page: str) -> list[Said]:
    """Say the verdict first; `page` is where the whole report is."""
    found = counts(report.results)
    lines = [Said(report.headline(texts), TONES[report.verdict])]
    lines += [Said(label) for label in report.labels(texts)]
    lines += [Said(", ".join(f"{count} {word}" for word, count in found.items()))]
    bad = gravest_first(report.results)
    shown = telling(bad)[:SHOWN]
    lines += [_failure(item, texts) for item in shown]
    if len(bad) > len(shown):
        lines.append(Said(texts.say("failures.more", count=len(bad) - len(shown)), "", 2))
    todo = texts.say("heading.todo")
    lines += [Said(f"{todo}: {text}", "", 2) for text in report.todo(texts)]
    return [*lines, Said(page)]


def _failure(item: Result, texts: Texts) -> Said:
    where, detail = f"{item.case.id} {item.case.name}", item.record.detail
    # An oracle begins with the case itself, and then says more of it than we can.
    told = detail if detail.startswith(item.case.id) else f"{where} {label_of(item, texts)}"
    told += f": {detail}" if detail and told is not detail else ""
    return Said(f"{item.verdict.value} {told}", "bad" if item.failing else "doubt", 2)
