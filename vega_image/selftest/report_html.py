"""The report for people: one file, no network, no script; readable on a phone and on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from vega_image.selftest.report import EDGES, Family, Report, families, finite
from vega_image.selftest.result import Result, gravest_first
from vega_image.selftest.texts import Texts

SHOWN = 60
SHOWN_OF_ONE = 3
"""Rows of one case, direction and type: more of the same tells nothing new."""
STYLE = """
:root{color-scheme:light dark;--ink:#1d2330;--soft:#5b6475;--line:#d9dee7;--paper:#fff;
--good:#1a7f4b;--bad:#b3261e;--doubt:#8a5a00;--bar:#4a7bd0}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#a5aebd;--line:#3a4150;
--paper:#14171d;--good:#5ecb94;--bad:#ff8a80;--doubt:#f0b860;--bar:#7ba4ec}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 16px 48px;max-width:1080px;color:var(--ink);
background:var(--paper);font:16px/1.5 system-ui,sans-serif}
h1{margin:0;font-size:30px;line-height:1.2}h2{margin:36px 0 10px;font-size:20px}
header{border-left:8px solid var(--tone);padding:4px 0 4px 18px}
header h1{color:var(--tone)}.pass{--tone:var(--good)}.fail{--tone:var(--bad)}
.unproven{--tone:var(--doubt)}p{margin:8px 0}.soft{color:var(--soft);font-size:14px}
.labels{margin:10px 0 0;padding:0;list-style:none}.labels li{font-weight:600}
.do{margin:0;padding-left:20px;font-size:17px}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:6px 10px 6px 0;border-bottom:1px solid var(--line);text-align:left;
vertical-align:top}th{color:var(--soft);font-weight:600}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code{font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere}
.word{font-weight:700;white-space:nowrap}.bad{color:var(--bad)}.doubt{color:var(--doubt)}
.good{color:var(--good)}.bars{display:flex;align-items:flex-end;gap:2px;height:30px;
min-width:112px}
.bars i{flex:1;background:var(--bar);min-height:1px;
-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bars i.over{background:var(--bad)}
@media(max-width:640px){h1{font-size:25px}
table.cards thead{display:none}table.cards tr{display:block;padding:8px 0;
border-bottom:1px solid var(--line)}
table.cards td{display:block;border:0;padding:1px 0}
table.cards td.n{display:inline-block;text-align:left;margin-right:14px}
table.cards td[data-label]::before{content:attr(data-label) ": ";color:var(--soft)}}
@media print{body{max-width:none;padding:0;font-size:11pt}.scroll{overflow:visible}
h2{break-after:avoid}tr{break-inside:avoid}}
"""


def page(report: Report, texts: Texts) -> bytes:
    """Write the page: verdict and what to do first, evidence below."""
    rows = families(report.results)
    parts = (
        _header(report, texts),
        _section(texts, "todo", _todo(report, texts)),
        _section(texts, "failures", _failures(report, texts)),
        _section(texts, "coverage", _coverage(rows, texts)),
        _section(texts, "histogram", _histograms(rows, texts)),
        _findings(report, texts),
        _section(texts, "device", _device(report, texts)),
        f'<p class="soft">{escape(_printed(report, texts))}</p>',
    )
    title = escape(f"{texts.say(f'verdict.{report.verdict}')} - {report.run.device}")
    return (
        f'<!doctype html>\n<html lang="{texts.language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n"
        f"<body>{''.join(parts)}</body></html>\n"
    ).encode("utf-8", "replace")


def _header(report: Report, texts: Texts) -> str:
    labels = "".join(f"<li>{escape(label)}</li>" for label in report.labels(texts))
    return (
        f'<header class="{report.verdict}"><p class="soft">{texts.say("title")}</p>'
        f"<h1>{escape(texts.say(f'verdict.{report.verdict}'))}</h1>"
        f"<p>{escape(report.sentence(texts))}</p>"
        f'<ul class="labels">{labels}</ul><p class="soft">{escape(texts.say("scope"))}</p>'
        "</header>\n"
    )


def _section(texts: Texts, name: str, body: str) -> str:
    return f"<section><h2>{escape(texts.say(f'heading.{name}'))}</h2>{body}</section>\n"


def _todo(report: Report, texts: Texts) -> str:
    actions = report.actions or ("none",)
    items = "".join(f"<li>{escape(texts.say(f'action.{name}'))}</li>" for name in actions)
    return f'<ol class="do">{items}</ol>'


def _failures(report: Report, texts: Texts) -> str:
    bad = gravest_first(report.results)
    if not bad:
        return f"<p>{escape(texts.say('failures.none'))}</p>"
    names = ("case", "where", "verdict", "error", "bound", "detail")
    rows = [_failure(item, texts) for item in _telling(bad)[:SHOWN]]
    more = len(bad) - len(rows)
    rest = f"<p>{escape(texts.say('failures.more', count=more))}</p>" if more > 0 else ""
    return _table(texts, names, rows, numbers=("error", "bound")) + rest


def _telling(bad: Sequence[Result]) -> list[Result]:
    seen: Counter[tuple[str, str, str, str]] = Counter()
    kept = []
    for item in bad:
        key = (item.case.id, item.trial.direction, item.trial.dtype, item.verdict.value)
        seen[key] += 1
        if seen[key] <= SHOWN_OF_ONE:
            kept.append(item)
    return kept


def _failure(item: Result, texts: Texts) -> str:
    tone = "bad" if item.failing else "doubt"
    error, bound = _number(item.record.error), _number(item.record.bound)
    label = texts.say
    layout = f" {item.case.layout}" if item.case.layout else ""
    return (
        f"<tr><td><b>{escape(item.case.name)}</b> <code>{escape(item.case.id)}</code>"
        f'<div class="soft">{escape(item.case.source)}</div></td>'
        f"<td>{escape(item.trial.direction)} {escape(item.trial.dtype)}{escape(layout)}</td>"
        f'<td class="word {tone}">{item.verdict.value}</td>'
        f'<td class="n" data-label="{escape(label("column.error"))}">{error}</td>'
        f'<td class="n" data-label="{escape(label("column.bound"))}">{bound}</td>'
        f"<td><code>{escape(item.record.detail)}</code></td></tr>"
    )


def _coverage(rows: Sequence[Family], texts: Texts) -> str:
    names = ("trials", "proven", "unproven", "unsupported", "wrong")
    body = [
        f"<tr><td><b>{escape(row.group)}</b></td>"
        + "".join(_count(name, getattr(row, name), texts) for name in names)
        + f'<td class="n" data-label="{escape(texts.say("column.seconds"))}">'
        f"{row.seconds:.2f}</td></tr>"
        for row in rows
    ]
    return _table(texts, ("family", *names, "seconds"), body, numbers=(*names, "seconds"))


def _count(name: str, value: int, texts: Texts) -> str:
    tones = {"wrong": " bad", "unproven": " doubt", "unsupported": " doubt"}
    tone = tones.get(name, "") if value else ""
    label = escape(texts.say(f"column.{name}"))
    return f'<td class="n{tone}" data-label="{label}">{value}</td>'


def _histograms(rows: Sequence[Family], texts: Texts) -> str:
    ends = ["0", *(f"&le;{edge:g}" for edge in EDGES[1:]), "&gt;1"]
    head = "".join(f'<th class="n">{end}</th>' for end in ends)
    body = "".join(
        f"<tr><td><b>{escape(row.group)}</b></td><td>{_bars(row.histogram)}</td>"
        + "".join(f'<td class="n">{count or ""}</td>' for count in row.histogram)
        + "</tr>"
        for row in rows
        if any(row.histogram)
    )
    return (
        f'<p class="soft">{escape(texts.say("histogram.explain"))}</p><div class="scroll">'
        f"<table><thead><tr><th>{escape(texts.say('column.family'))}</th><th></th>{head}"
        f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _bars(histogram: Sequence[int]) -> str:
    most = max(histogram) or 1
    over = [""] * len(EDGES) + [' class="over"']
    bars = "".join(
        f'<i{mark} style="height:{count / most:.0%}"></i>'
        for mark, count in zip(over, histogram)  # noqa: B905 - Python 3.10 runs this
    )
    return f'<div class="bars" aria-hidden="true">{bars}</div>'


def _findings(report: Report, texts: Texts) -> str:
    if not report.run.findings:
        return ""
    items = "".join(
        f"<p><b>{escape(item.title)}</b> {escape(item.detail)}<br>{escape(item.action)}</p>"
        for item in report.run.findings
    )
    return _section(texts, "findings", items)


def _device(report: Report, texts: Texts) -> str:
    run = report.run
    values: Mapping[str, object] = {
        "device": run.device,
        **run.identity,
        **run.versions,
        **run.digests,
    }
    rows = [
        f"<tr><td>{escape(name)}</td><td><code>{escape(str(value))}</code></td></tr>"
        for name, value in values.items()
    ]
    return _table(texts, ("name", "value"), rows, numbers=())


def _printed(report: Report, texts: Texts) -> str:
    when = f"{report.run.started}, {report.run.seconds:.1f} s"
    return texts.say("printed", suite=report.run.suite, when=when)


def _table(
    texts: Texts, names: Iterable[str], rows: Sequence[str], *, numbers: Sequence[str]
) -> str:
    head = "".join(
        f"<th{' class=n' if name in numbers else ''}>{escape(texts.say(f'column.{name}'))}</th>"
        for name in names
    )
    body = "".join(rows)
    return (
        f'<div class="scroll"><table class="cards"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _number(value: float | None) -> str:
    known = finite(value)
    return "" if known is None else f"{known:.3g}"
