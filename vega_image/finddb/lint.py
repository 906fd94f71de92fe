"""Everything that is wrong in a find-db, fast: equal lines are judged once.

Two passes of regular expressions over the whole file replace good numbers by a mark and take
the sizes out of the keys. What is left of 120,454 lines are some 3,000 different texts; one
line of each is judged with care. A line the expressions do not know is judged by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vega_image.finddb.findings import ERROR, KINDS, Finding
from vega_image.finddb.judge import Verdict, judge, judge_item, together
from vega_image.finddb.problem import BYTES, FormError, Problem, parse_key
from vega_image.finddb.record import PREFIX
from vega_image.finddb.text import FindDb
from vega_image.finddb.workspace import COLUMNS, TRANSPOSED, knowable, least

_SIZE = rb"[1-9][0-9]{0,17}+"
_PAD = rb"(?:0|[1-9][0-9]{0,17}+)"
_TIME = (
    rb"(?:0\.0{0,30}+[1-9][0-9]{0,20}+"
    rb"|[1-9][0-9]{0,20}+(?:\.[0-9]{1,20}+)?+(?:e[+-]?0?[0-9])?+)"
)
_BYTES = rb"[0-9]{1,18}+"
LEGACY_NUMBERS = re.compile(rb",%b,%b," % (_TIME, _BYTES))
CURRENT_NUMBERS = re.compile(rb":%b,%b," % (_TIME, _BYTES))
MARK = b"\0"
# Input channels, filter and output size, which a column matrix is made of.
FORWARD = re.compile(rb"(\d+)-\d+-\d+-(\d+)x(\d+)-\d+-(\d+)-(\d+)-")
BACKWARD = re.compile(rb"\d+-(\d+)-(\d+)-(\d+)x(\d+)-(\d+)-")
# The rest of a line after the sizes of a plane; empty for every other line.
LINE = re.compile(
    rb"^(?:%(n)b-%(n)b-%(n)b-%(n)bx%(n)b-%(n)b-%(n)b-%(n)b-%(n)b"
    rb"-%(p)bx%(p)b-%(n)bx%(n)b-%(n)bx%(n)b-0-([^\n]++)|[^\n]*+)$" % {b"n": _SIZE, b"p": _PAD},
    re.MULTILINE,
)
# Stands for numbers that are right whatever the problem.
GOOD_NUMBERS = b"1,999999999999999999"
UNREAD = frozenset({"EMPTY_RECORD", "EMPTY_VALUE"})


@dataclass(frozen=True, slots=True)
class Shape:
    """What lines share that differ only in their numbers.

    `workspaces`: (field of the line between commas, solver) that can be understated.
    """

    direction: str
    dtype_bytes: int
    codes: tuple[str, ...]
    workspaces: tuple[tuple[int, str], ...]


@dataclass(slots=True)
class Report:
    """What is wrong: exact counts, and the findings when they are asked for."""

    db: FindDb
    counts: Counter[str] = field(default_factory=Counter)
    marked: dict[int, tuple[str, ...]] = field(default_factory=dict)
    others: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """Return the number of errors."""
        return sum(n for code, n in self.counts.items() if KINDS[code][0] == ERROR)

    def mark(self, number: int, *codes: str) -> None:
        """Note codes of a line (from 0); `judge` will say the rest."""
        if codes:
            self.counts.update(codes)
            self.marked[number] = self.marked.get(number, ()) + codes

    def add(self, finding: Finding) -> None:
        """Note what is not a line's own doing."""
        self.counts[finding.code] += 1
        self.others.append(finding)

    def findings(self, limit: int = 0) -> Iterator[Finding]:
        """Yield the findings by line, at most `limit` of a code unless 0."""
        shown: Counter[str] = Counter()
        others = sorted(self.others)
        for number in sorted({*self.marked, *(one.line - 1 for one in others)}):
            here = []
            while others and others[0].line == number + 1:
                here.append(others.pop(0))
            codes = {*self.marked.get(number, ()), *(one.code for one in here)}
            if limit and all(shown[code] >= limit for code in codes):
                continue
            if number in self.marked:
                here += judge(self.db.lines[number].decode("latin-1"), number + 1)
            for one in sorted(here):
                shown[one.code] += 1
                if not limit or shown[one.code] <= limit:
                    yield one


def lint(db: FindDb, under: FindDb | None = None, *, sizes: bool = False) -> Report:
    """Find everything that is wrong; `under` is the system's db when `db` is a user's.

    `sizes` also computes every output's size from its input, which takes some seconds.
    """
    report = Report(db)
    _whole_file(report)
    _lines(report)
    _duplicates(report)
    if under is not None:
        _over(report, under)
    if sizes:
        _sizes(report)
    return report


def _whole_file(report: Report) -> None:
    data = report.db.data
    if not data or data.isspace():
        report.add(Finding(1, 1, "EMPTY_FILE", "the file has no record"))
    elif not data.endswith(b"\n"):
        last = report.db.lines[-1]
        what = "the last line has no end"
        report.add(Finding(len(report.db.lines), len(last) + 1, "NO_FINAL_NEWLINE", what))


def _lines(report: Report) -> None:
    data, lines = report.db.data, report.db.lines
    marked = LEGACY_NUMBERS.sub(b",%b," % MARK, data)
    marked = CURRENT_NUMBERS.sub(b":%b," % MARK, marked)
    rests: list[bytes] = LINE.findall(marked)
    del marked
    if MARK in data or len(rests) != len(lines):
        for number in range(len(lines)):
            _judge_one(report, number)
        return
    shapes = _shapes(set(rests))
    for number in [n for n, rest in enumerate(rests) if rest not in shapes and lines[n]]:
        _judge_one(report, number)
    _names(report, rests, shapes)


def _judge_one(report: Report, number: int) -> None:
    text = report.db.lines[number].decode("latin-1")
    report.mark(number, *(one.code for one in judge(text, number + 1)))


def _workspace_fields(items: list[bytes]) -> Iterator[int]:
    """Yield where the workspaces stand when the line is split at commas."""
    before = 0
    for item in items:
        yield before + item.partition(MARK)[0].count(b",") + 1
        # The mark stands for two numbers and the comma between them.
        before += item.count(b",") + 1


def _names(report: Report, rests: Sequence[bytes], shapes: Mapping[bytes, Shape]) -> None:
    """Note what the names alone say, and compare workspaces where there is something to."""
    bad = {rest: shape.codes for rest, shape in shapes.items() if shape.codes}
    report.marked |= {n: bad[rest] for n, rest in enumerate(rests) if rest in bad}
    for rest, times in Counter(rests).items():
        for code in bad.get(rest, ()):
            report.counts[code] += times
    with_workspace = {rest for rest, shape in shapes.items() if shape.workspaces}
    for number in [n for n, rest in enumerate(rests) if rest in with_workspace]:
        _workspaces(report, number, shapes[rests[number]])


def _shapes(rests: set[bytes]) -> dict[bytes, Shape]:
    """Judge each text once; one that has to be judged by itself is left out."""
    problems: dict[bytes, Problem | None] = {}
    verdicts: dict[tuple[bytes, str], Verdict] = {}
    found: dict[bytes, Shape] = {}
    for rest in rests:
        tail, _, value = rest.partition(b"=")
        if tail not in problems:
            problems[tail] = _problem_like(tail)
        if (problem := problems[tail]) is None or not value.strip():
            continue
        items = value.removesuffix(b"\r").split(b";")
        for item in items:
            if (item, problem.direction) not in verdicts:
                text = item.replace(MARK, GOOD_NUMBERS).decode("latin-1")
                verdicts[item, problem.direction] = judge_item(text, problem)
        here = [verdicts[item, problem.direction] for item in items]
        if all(map(_in_place, items)):
            found[rest] = _shape(rest, problem, items, here)
    return found


def _in_place(item: bytes) -> bool:
    """Whether an item's one mark stands for its time and its workspace."""
    before, _, after = item.partition(MARK)
    head, colon, solver = before.partition(b":")
    if MARK in after or not after:
        return False
    if head.startswith(PREFIX.encode()):
        return solver.count(b",") == 1 and solver.endswith(b",")
    return bool(colon) and not solver


def _problem_like(tail: bytes) -> Problem | None:
    try:
        return parse_key("1-1-1-1x1-1-1-1-1-0x0-1x1-1x1-0-" + tail.decode("latin-1"))
    except FormError:
        return None


def _shape(rest: bytes, like: Problem, items: list[bytes], here: list[Verdict]) -> Shape:
    crlf = ("CRLF",) if rest.endswith(b"\r") else ()
    return Shape(
        like.direction,
        BYTES.get(like.x_dtype, 1),
        (*(code for one in here for code in one.codes), *together(here), *crlf),
        tuple(
            (at, one.solver)
            for at, one in zip(_workspace_fields(items), here, strict=True)
            if one.solver and knowable(one.solver)
        ),
    )


def _workspaces(report: Report, number: int, shape: Shape) -> None:
    """Compare workspaces with `workspace.least`; its commonest formula without a Problem."""
    line = report.db.lines[number]
    fields = line.split(b",")
    for at, solver in shape.workspaces:
        if solver in TRANSPOSED:
            need = least(solver, parse_key(line.partition(b"=")[0].decode()))
        elif solver not in COLUMNS:
            need = 1
        elif shape.direction == "F":
            x, high, wide, one, other = FORWARD.match(line).groups()  # type: ignore[union-attr]
            need = int(x) * int(high) * int(wide) * int(one) * int(other) * shape.dtype_bytes
        else:
            one, other, high, wide, x = BACKWARD.match(line).groups()  # type: ignore[union-attr]
            need = int(x) * int(high) * int(wide) * int(one) * int(other) * shape.dtype_bytes
        if int(fields[at]) < need:
            report.mark(number, "WORKSPACE_UNDERSTATED")


def _duplicates(report: Report) -> None:
    lines, index = report.db.lines, report.db.index
    if len(index) == len(lines) - lines.count(b""):
        return
    for number, line in enumerate(lines):
        key, mark, _ = line.partition(b"=")
        first = index.get(key, number)
        if mark and first != number:
            what = f"this key is in line {first + 1} already"
            report.add(Finding(number + 1, 1, "DUPLICATE_KEY", what))


def _over(report: Report, under: FindDb) -> None:
    """Say what the records of a user's db do to the system's."""
    for key, number in report.db.index.items():
        if key not in under.index:
            continue
        codes = report.marked.get(number, ())
        beneath = f"line {under.index[key] + 1} of {under.name} has this key"
        if UNREAD & set(codes):
            code = "USER_UNREADABLE"
        elif "NO_USABLE_SOLVER" in codes:
            code = "USER_HIDES_SYSTEM"
        else:
            code = "USER_RECORD"
        report.add(Finding(number + 1, 1, code, beneath))


def _sizes(report: Report) -> None:
    """Say where the output does not follow from the input, as when the sides are swapped."""
    for key, number in report.db.index.items():
        try:
            problem = parse_key(key.decode("latin-1"))
        except FormError:
            continue
        if what := problem.impossible:
            report.add(Finding(number + 1, 1, "IMPOSSIBLE_SIZES", what))
