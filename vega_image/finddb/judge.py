"""What is wrong with one line: the careful reading, every field by itself.

Text is latin-1 throughout: a character is a byte, so that columns are those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vega_image.finddb.findings import Finding
from vega_image.finddb.problem import FormError, Problem, parse_key
from vega_image.finddb.record import FAMILIES, PREFIX, STEMS, UNUSED, algorithm
from vega_image.finddb.registry import FUSION, registry
from vega_image.finddb.workspace import least

BOM = "\xef\xbb\xbf"
MOST_ITEMS = 10
LEAST_FLOAT, LARGEST_FLOAT = 1.2e-38, 3.4e38
LEGACY_LEAST, LEGACY_FIELDS, CURRENT_FIELDS = 4, 5, 3
TIME = re.compile("-?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
WORKSPACE = re.compile("[0-9]{1,18}")
ALGORITHM = re.compile(f"{PREFIX}(Fwd|BwdData|BwdWeights)Algo({'|'.join(FAMILIES)})")
# MIOpen does not get as far as finding the record empty.
THROWN = "CURRENT_ITEM_SHORT"
BLANK = re.compile("[\\x00-\\x20\\x7f-\\xff]")
DIRECTION_OF = {stem: direction for direction, stem in STEMS.items()}


@dataclass(slots=True)
class Line:
    """One line under judgement."""

    number: int
    text: str
    findings: list[Finding] = field(default_factory=list)
    problem: Problem | None = None

    def add(self, code: str, column: int, detail: str) -> None:
        """Note what is wrong; `column` counts from 0 here."""
        self.findings.append(Finding(self.number, column + 1, code, detail))


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a line and where it stands, from 0."""

    text: str
    at: int

    def split(self, mark: str) -> Iterator[Part]:
        """Yield the pieces between marks."""
        at = self.at
        for text in self.text.split(mark):
            yield Part(text, at)
            at += len(text) + 1


def judge(text: str, number: int) -> list[Finding]:
    """Return what is wrong with a line, from left to right; a blank one is right."""
    line = Line(number, text)
    body = Part(text, 0)
    if number == 1 and text.startswith(BOM):
        line.add("BYTE_ORDER_MARK", 0, "the file begins with a byte order mark")
        body = Part(text[len(BOM) :], len(BOM))
    if body.text.endswith("\r"):
        line.add("CRLF", len(text) - 1, "the line ends with CR LF")
        body = Part(body.text[:-1], body.at)
    if body.text:
        _judge_record(line, body)
    return sorted(line.findings)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with one item, wherever it stands; `solver` is None where it is unread."""

    codes: tuple[str, ...]
    solver: str | None
    usable: bool


def judge_item(text: str, problem: Problem) -> Verdict:
    """Judge an item by itself, as part of a record for a problem."""
    line = Line(0, text, problem=problem)
    solver = _judge_item(line, Part(text, 0))
    usable = solver is not None and _judge_solver(line, solver)
    codes = tuple(one.code for one in line.findings)
    return Verdict(codes, solver.text if solver else None, usable)


def together(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the codes of a record that no item of it has by itself."""
    solvers = [verdict.solver for verdict in verdicts if verdict.solver is not None]
    if len(verdicts) > MOST_ITEMS:
        yield "TOO_MANY_ITEMS"
    yield from ["DUPLICATE_SOLVER"] * (len(solvers) - len(set(solvers)))
    if not solvers:
        if not any(THROWN in verdict.codes for verdict in verdicts):
            yield "EMPTY_RECORD"
    elif not any(verdict.usable for verdict in verdicts):
        yield "NO_USABLE_SOLVER"


def _judge_record(line: Line, body: Part) -> None:
    key, mark, value = body.text.partition("=")
    if not mark:
        line.add("NO_EQUALS", body.at + len(key), "expected '=' after the key")
        return
    if not key:
        line.add("NO_KEY", body.at, "there is no key before '='")
        return
    _judge_key(line, Part(key, body.at))
    _judge_value(line, Part(value, body.at + len(key) + 1))


def _judge_key(line: Line, key: Part) -> None:
    try:
        line.problem = parse_key(key.text)
    except FormError as error:
        line.add("BAD_KEY", key.at + error.column - 1, f"not a problem's key: {error.message}")


def _judge_value(line: Line, value: Part) -> None:
    if not value.text:
        line.add("EMPTY_VALUE", value.at, "there is nothing after '='")
        return
    parts = list(value.split(";"))
    if len(parts) > MOST_ITEMS:
        line.add("TOO_MANY_ITEMS", parts[MOST_ITEMS].at, f"{len(parts)} items")
    seen: set[str] = set()
    read, usable = 0, 0
    for part in parts:
        solver = _judge_item(line, part)
        if solver is None:
            continue
        read += 1
        if solver.text in seen:
            line.add("DUPLICATE_SOLVER", solver.at, f"{solver.text} is there twice")
        seen.add(solver.text)
        usable += _judge_solver(line, solver)
    if not read:
        if not any(one.code == THROWN for one in line.findings):
            line.add("EMPTY_RECORD", value.at, "no item of the record can be read")
    elif not usable:
        line.add("NO_USABLE_SOLVER", value.at, "the record names no solver that can serve it")


def _judge_item(line: Line, item: Part) -> Part | None:
    """Judge the fields; return the solver's name where the item can be read."""
    head, mark, rest = item.text.partition(":")
    if not mark:
        line.add("ITEM_WITHOUT_COLON", item.at, f"an item without ':': {item.text[:40]!r}")
        return None
    fields = list(Part(rest, item.at + len(head) + 1).split(","))
    for part in (Part(head, item.at), *fields):
        if found := BLANK.search(part.text):
            code = "WHITE_SPACE" if found[0] in "\t\v\f " else "BAD_BYTE"
            line.add(code, part.at + found.start(), f"byte {ord(found[0]):#04x} in a field")
    if head.startswith(PREFIX):
        return _judge_legacy(line, Part(head, item.at), fields)
    return _judge_current(line, Part(head, item.at), fields)


def _judge_legacy(line: Line, head: Part, fields: list[Part]) -> Part | None:
    if len(fields) < LEGACY_LEAST:
        what = f"{len(fields)} fields after ':' instead of {LEGACY_FIELDS}"
        line.add("LEGACY_ITEM_SHORT", head.at, what)
        return None
    solver, time, workspace, fourth, *rest = fields
    if [part.text for part in rest] != [UNUSED]:
        place = rest[0].at if rest else fourth.at + len(fourth.text)
        line.add("EXTRA_FIELD", place, f"the fifth and last field is not {UNUSED}")
    _judge_numbers(line, solver, time, workspace)
    _judge_algorithm(line, head, solver)
    if not fourth.text or "=" in fourth.text:
        line.add("ODD_FIELD", fourth.at, "the fourth field is no algorithm and no cache key")
    if fourth.text.startswith(PREFIX) and fourth.text != head.text:
        line.add("ALGORITHMS_DIFFER", fourth.at, f"{fourth.text} beside {head.text}")
    return solver


def _judge_current(line: Line, solver: Part, fields: list[Part]) -> Part | None:
    if len(fields) < CURRENT_FIELDS:
        what = f"{len(fields)} fields after ':' instead of {CURRENT_FIELDS}"
        line.add("CURRENT_ITEM_SHORT", solver.at, what)
        return None
    time, workspace, family, *rest = fields
    if rest:
        line.add("EXTRA_FIELD", rest[0].at, "a fourth field")
    _judge_numbers(line, solver, time, workspace)
    _judge_algorithm(line, family, solver)
    return solver


def _judge_numbers(line: Line, solver: Part, time: Part, workspace: Part) -> None:
    number = float(time.text) if TIME.fullmatch(time.text) else None
    if number is not None and number <= 0 and _no_underflow(time.text):
        line.add("TIME_NOT_POSITIVE", time.at, f"the time is {time.text} ms")
    elif number is None or not LEAST_FLOAT <= number <= LARGEST_FLOAT:
        line.add("TIME_NOT_A_NUMBER", time.at, f"the time {time.text[:40]!r} is no number")
    if not WORKSPACE.fullmatch(workspace.text):
        what = f"the workspace {workspace.text[:40]!r} is no number of bytes"
        line.add("WORKSPACE_NOT_A_NUMBER", workspace.at, what)
    elif line.problem and int(workspace.text) < (need := least(solver.text, line.problem)):
        what = f"{solver.text} needs at least {need} bytes, not {workspace.text}"
        line.add("WORKSPACE_UNDERSTATED", workspace.at, what)


def _no_underflow(text: str) -> bool:
    digits = re.split("[eE]", text)[0]
    return text.startswith("-") or not any(digit in digits for digit in "123456789")


def _judge_algorithm(line: Line, name: Part, solver: Part) -> None:
    match = ALGORITHM.fullmatch(name.text)
    if match is None:
        line.add("UNKNOWN_ALGORITHM", name.at, f"{name.text[:60]!r} is no algorithm")
        return
    direction = DIRECTION_OF[match[1]]
    if line.problem and direction != line.problem.direction:
        what = f"{name.text} in a record of direction {line.problem.direction}"
        line.add("WRONG_DIRECTION_ALGORITHM", name.at, what)
    elif (direction, match[2]) == ("W", "FFT"):
        line.add("FFT_FOR_WEIGHTS", name.at, "there is no FFT for weight gradients")
    known = registry().get(solver.text)
    if known and known.family and known.family != match[2]:
        right = algorithm(direction, known.family)
        line.add("WRONG_FAMILY", name.at, f"{solver.text} is {right}, not {name.text}")


def _judge_solver(line: Line, name: Part) -> bool:
    """Judge whether a solver can serve the record at all."""
    known = registry().get(name.text)
    if known is None:
        what = f"MIOpen 3.5.1 has no solver {name.text[:60]!r}"
        line.add("UNKNOWN_SOLVER", name.at, what)
        return False
    direction = line.problem.direction if line.problem else ""
    if known.compiled_out:
        line.add("COMPILED_OUT_SOLVER", name.at, f"{name.text}: {known.why_not}")
    elif not known.usable:
        line.add("INELIGIBLE_SOLVER", name.at, f"{name.text}: {known.why_not}")
    if known.kernels != FUSION and direction not in known.directions:
        what = f"{name.text} serves {'/'.join(known.directions)}, the record is {direction}"
        line.add("WRONG_DIRECTION_SOLVER", name.at, what)
    return known.usable and direction in known.directions
