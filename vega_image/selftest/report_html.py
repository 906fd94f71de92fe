"""The report for people: one file, no network, no script; readable on a phone and on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape as escape_html

from vega_image.selftest.reading import printable
from vega_image.selftest.report import EDGES, Family, Report, families, finite
from vega_image.selftest.result import Result, counts, gravest_first
from vega_image.selftest.texts import Texts

SHOWN = 40
SHOWN_OF_ONE, SHOWN_OF_FAMILY = 2, 4
"""Rows of one case, direction and type, and of one family with the same verdict: more of the
same tells nothing new, and what is rare must not drown."""
SLOWEST = 5
STYLE = """
:root{color-scheme:light;--ink:#1d2330;--soft:#5b6475;--line:#d9dee7;--paper:#fff;
--good:#1a7f4b;--bad:#b3261e;--doubt:#8a5a00;--bar:#4a7bd0}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#a5aebd;--line:#3a4150;
color-scheme:dark;--paper:#14171d;--good:#5ecb94;--bad:#ff8a80;--doubt:#f0b860;--bar:#7ba4ec}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 16px 48px;max-width:1080px;color:var(--ink);
background:var(--paper);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
header,dd,dt{overflow-wrap:anywhere}
h1{margin:0;font-size:30px;line-height:1.2}h2{margin:36px 0 10px;font-size:20px}
header{border-left:8px solid var(--tone);padding:4px 0 4px 18px}
header h1{color:var(--tone)}.pass{--tone:var(--good)}.fail{--tone:var(--bad)}
.unproven{--tone:var(--doubt)}p{margin:8px 0}.soft{color:var(--soft);font-size:14px}
.labels{margin:10px 0 0;padding:0;list-style:none}.labels li{font-weight:600}
.facts{margin:12px 0 0;display:flex;flex-wrap:wrap;gap:4px 28px}.facts div{min-width:0}
.facts dt{color:var(--soft);font-size:13px}.facts dd{margin:0;font-weight:600}
h3{margin:20px 0 6px;font-size:16px}
.told{display:block;margin:3px 0}.do{margin:0;padding-left:20px;font-size:17px}
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
table.cards td.n:empty{display:none}
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
        _section(texts, "words", _words(report, texts)),
        _section(texts, "coverage", _coverage(rows, texts)),
        _section(texts, "histogram", _histograms(rows, texts)),
        _findings(report, texts),
        _section(texts, "device", _device(report, texts)),
        _section(texts, "timings", _timings(report, rows, texts)),
        f'<p class="soft">{escape(_printed(report, texts))}</p>',
    )
    title = escape(f"{report.words(texts)} - {report.run.device}")
    return (
        f'<!doctype html>\n<html lang="{texts.language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n"
        f"<body>{''.join(parts)}</body></html>\n"
    ).encode("utf-8", "replace")


def escape(text: str) -> str:
    """Make any text safe: no markup, nothing that turns the reading direction or is unseen."""
    return escape_html(printable(text))


def _header(report: Report, texts: Texts) -> str:
    labels = "".join(f"<li>{escape(label)}</li>" for label in report.labels(texts))
    return (
        f'<header class="{report.verdict}"><p class="soft">{escape(texts.say("title"))}</p>'
        f"<h1>{escape(report.words(texts))}</h1>"
        f"<p>{escape(report.sentence(texts))}</p>"
        f'<ul class="labels">{labels}</ul>{_facts(report, texts)}'
        f'<p class="soft">{escape(texts.say("scope"))}</p></header>\n'
    )


def _facts(report: Report, texts: Texts) -> str:
    run = report.run
    required = [item for item in report.results if item.required]
    proven = sum(item.accepted for item in required)
    values = {
        "device": run.device,
        "level": run.level,
        "required": texts.say("unit.of", part=proven, whole=len(required)),
        "started": run.started.replace("T", " "),
        "seconds": _seconds(run.seconds, texts),
        "exit": str(report.exit_code),
    }
    rows = (
        f"<div><dt>{escape(texts.say(f'fact.{name}'))}</dt><dd>{escape(value)}</dd></div>"
        for name, value in values.items()
    )
    return f'<dl class="facts">{"".join(rows)}</dl>'


def _seconds(value: float, texts: Texts) -> str:
    return texts.say("unit.seconds", value=f"{value:.1f}")


def _section(texts: Texts, name: str, body: str) -> str:
    return f"<section><h2>{escape(texts.say(f'heading.{name}'))}</h2>{body}</section>\n"


def _todo(report: Report, texts: Texts) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in report.todo(texts))
    return f'<ol class="do">{items}</ol>'


def _failures(report: Report, texts: Texts) -> str:
    bad = gravest_first(report.results)
    if not bad:
        return f"<p>{escape(texts.say('failures.none'))}</p>"
    names = ("failure", "verdict", "error", "bound")
    rows = [_failure(item, texts) for item in telling(bad)[:SHOWN]]
    more = len(bad) - len(rows)
    rest = f"<p>{escape(texts.say('failures.more', count=more))}</p>" if more > 0 else ""
    return _table(texts, names, rows, numbers=("error", "bound")) + rest


def telling(bad: Sequence[Result]) -> list[Result]:
    """Keep what tells something new, each family's first before any family's second."""
    seen: Counter[tuple[str, ...]] = Counter()
    kept: list[tuple[bool, int, Result]] = []
    for item in bad:
        one = (item.case.id, item.trial.direction, item.trial.dtype, item.verdict.value)
        family = (item.group, item.verdict.value)
        if seen[one] < SHOWN_OF_ONE and seen[family] < SHOWN_OF_FAMILY:
            kept.append((not item.failing, seen[family], item))
            seen.update([one, family])
    return [item for _, _, item in sorted(kept, key=lambda row: row[:2])]


def _words(report: Report, texts: Texts) -> str:
    rows = [
        f'<tr><td class="word">{word}</td><td class="n">{count}</td>'
        f"<td>{escape(texts.say(f'word.{word}'))}</td></tr>"
        for word, count in counts(report.results).items()
    ]
    return _table(texts, ("ended", "count", "meaning"), rows, numbers=("count",))


def _timings(report: Report, rows: Sequence[Family], texts: Texts) -> str:
    slow = sorted(report.results, key=lambda item: -item.record.seconds)[:SLOWEST]
    by_family = [_timing(row.group, row.seconds) for row in rows]
    by_trial = [_timing(item.trial.key, item.record.seconds) for item in slow]
    return (
        f"{_table(texts, ('family', 'seconds'), by_family, numbers=('seconds',))}"
        f"<h3>{escape(texts.say('timings.slowest'))}</h3>"
        f"{_table(texts, ('case', 'seconds'), by_trial, numbers=('seconds',))}"
    )


def _timing(name: str, seconds: float) -> str:
    return f'<tr><td><code>{escape(name)}</code></td><td class="n">{seconds:.3f}</td></tr>'


def _failure(item: Result, texts: Texts) -> str:
    tone = "bad" if item.failing else "doubt"
    where = " ".join(filter(None, (label_of(item, texts), item.case.layout)))
    detail = item.record.detail
    told = f'<code class="told">{escape(detail)}</code>' if detail else ""
    return (
        f"<tr><td><b>{escape(item.case.name)}</b> <code>{escape(item.case.id)}</code> "
        f"{escape(where)}{told}"
        f'<div class="soft">{escape(item.case.source)}</div></td>'
        f'<td class="word {tone}">{item.verdict.value}</td>'
        f"{_cell('error', item.record.error, texts)}{_cell('bound', item.record.bound, texts)}"
        "</tr>"
    )


def _cell(name: str, value: float | None, texts: Texts) -> str:
    label = escape(texts.say(f"column.{name}"))
    return f'<td class="n" data-label="{label}">{_number(value)}</td>'


def label_of(item: Result, texts: Texts) -> str:
    """Say in words which way and in which format."""
    return f"{texts.name('direction', item.trial.direction)} {item.trial.dtype}".strip()


def _coverage(rows: Sequence[Family], texts: Texts) -> str:
    names = ("trials", "proven", "unproven", "unsupported", "wrong")
    body = [
        f"<tr><td><b>{escape(row.group)}</b></td>"
        + "".join(_count(name, getattr(row, name), texts) for name in names)
        + "</tr>"
        for row in rows
    ]
    return _table(texts, ("family", *names), body, numbers=names)


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
        f"<tr><td>{escape(texts.name('name', name))}</td>"
        f"<td><code>{escape(str(value))}</code></td></tr>"
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
