"""Which solver really ran: MIOpen's log at level 5, and the user find-db that a find writes.

The forms are those of libMIOpen 7.2.4 as recorded in tests/data/miopen-logs. Pure; no text is
an error. Where log and db disagree nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

FIND = re.compile(r"Find (?:Start|Ended): ([^\s,]+)")
CHOSEN = re.compile(r"Chosen Algorithm: ([^,;:=\s]+) *, *([0-9]+) *, *([0-9][0-9.e+-]*)")
IMMEDIATE = re.compile(r"solver_id = ([^,;:=\s]+), workspace = ([0-9]+)")
REFUSALS = {
    "Invalid value of MIOPEN_DEBUG_FIND_ONLY_SOLVER": "this MIOpen has no such solver",
    "Failed to load kernel source": "its kernel source is not in this MIOpen",
    "Code object build failed": "its kernel does not compile here",
    "No suitable algorithm": "not applicable to this problem",
    "Requested convolution is not supported": "not applicable to this problem",
}
"""In order of how much they explain: a build that failed also ends in `No suitable`."""
LEGACY_FIELDS, CURRENT_FIELDS = 5, 3


@dataclass(frozen=True)
class Item:
    """One solver of a find-db record: milliseconds, bytes, algorithm."""

    solver: str
    time_ms: float
    workspace: int
    algo: str


@dataclass(frozen=True)
class Said:
    """A solver that a log says was chosen; `key` is empty where the log does not name it."""

    solver: str
    key: str


@dataclass(frozen=True)
class ReadBack:
    """`solver` is empty where it is not known, and `why` says so; else it ran."""

    solver: str
    why: str = ""
    algo: str = ""
    time_ms: float | None = None
    workspace: int | None = None
    refused: bool = False


def chosen(log: str) -> Iterator[Said]:
    """Yield what a log says was chosen, in order.

    A find names its problem before it says what it chose; a find-db hit and the immediate
    mode name none.
    """
    key = ""
    for line in log.splitlines():
        if match := FIND.search(line):
            key = match.group(1)
        elif match := CHOSEN.search(line):
            yield Said(match.group(1), key)
            key = ""
        elif match := IMMEDIATE.search(line):
            yield Said(match.group(1), "")


def log_solvers(log: str, keys: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the solvers chosen for one of `keys`, or for any problem without them.

    A line that names no problem may be about ours, so it counts.
    """
    found = (said.solver for said in chosen(log) if not (keys and said.key) or said.key in keys)
    return tuple(dict.fromkeys(found))


def parse_find_db(text: str) -> Mapping[str, tuple[Item, ...]]:
    """Read a user find-db, both forms of item; the first of two equal keys counts."""
    records: dict[str, tuple[Item, ...]] = {}
    for line in text.split("\n"):
        key, equals, value = line.strip().partition("=")
        items = [_item(part) for part in value.split(";")]
        whole = tuple(item for item in items if item is not None)
        if key and equals and whole and key not in records:
            records[key] = whole
    return records


def _item(text: str) -> Item | None:
    first, colon, rest = text.partition(":")
    fields = rest.split(",")
    if not (colon and first):
        return None
    if len(fields) == CURRENT_FIELDS:
        return _numbers(first, fields[0], fields[1], fields[2])
    if len(fields) == LEGACY_FIELDS:
        return _numbers(fields[0], fields[1], fields[2], first)
    return None


def _numbers(solver: str, time_ms: str, workspace: str, algo: str) -> Item | None:
    usual = re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,2})?", time_ms)
    if not (solver and usual and re.fullmatch(r"[0-9]{1,18}", workspace)):
        return None
    return Item(solver, float(time_ms), int(workspace), algo)


def only_solver(find_db: str) -> str:
    """Return the one solver of a find-db with one record; empty for any other.

    >>> only_solver("k=A:1,0,x"), only_solver("k=A:1,0,x;B:2,0,x")
    ('A', '')
    """
    records = list(parse_find_db(find_db).values())
    names = {item.solver for items in records for item in items}
    return names.pop() if len(records) == 1 and len(names) == 1 else ""


def read_back(log: str, find_db: str, *, keys: Sequence[str]) -> ReadBack:
    """Say which solver ran for the problem that `keys` name (its spellings).

    A race writes all its runners into the find-db and only the log says who won.

    >>> read_back("FW Chosen Algorithm: GemmFwdRest , 0, 0.5", "", keys=["k"]).solver
    'GemmFwdRest'
    """
    logged = log_solvers(log, keys)
    records = parse_find_db(find_db)
    items = {item.solver: item for key in keys for item in records.get(key, ())}
    refusal = _refusal(log)
    if refusal and not logged:
        return ReadBack("", refusal, refused=True)
    if not items and records:
        return ReadBack("", f"the find-db names another problem: {next(iter(records))}")
    if len(logged) > 1 or (not logged and len(items) > 1):
        return ReadBack("", f"more than one ran: {' '.join(logged or items)}")
    if not logged and not items:
        return ReadBack("", "neither log nor find-db names a solver")
    name = logged[0] if logged else next(iter(items))
    if items and name not in items:
        return ReadBack("", f"the log says {name}, the find-db {' '.join(items)}")
    item = items.get(name)
    if item is None:
        return ReadBack(name)
    return ReadBack(name, "", item.algo, item.time_ms, item.workspace)


def _refusal(log: str) -> str:
    return next((why for sign, why in REFUSALS.items() if sign in log), "")


def perf_config(text: str, solver: str) -> str:
    """Return what a user perf-db holds for a solver; `default` where it holds nothing.

    >>> perf_config("1x2xF=ConvA:3,6,8;ConvB:1", "ConvA"), perf_config("", "ConvA")
    ('3,6,8', 'default')
    """
    for line in text.splitlines():
        for item in line.partition("=")[2].split(";"):
            name, colon, values = item.partition(":")
            if colon and name == solver:
                return values
    return "default"
