"""Which solver really ran: MIOpen's log at level 5, and the user find-db that a find writes.

Pure; no text is an error. Where log and db disagree nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CHOSEN = re.compile(r"Chosen Algorithm: ([^,;:=\s]+) *, *([0-9]+) *, *([0-9][0-9.e+-]*)")
IMMEDIATE = re.compile(r"solver_id = ([^,;:=\s]+), workspace = ([0-9]+)")
REFUSALS = {
    "No suitable algorithm": "not applicable to this problem",
    "Failed to load kernel source": "its kernel source is not in this MIOpen",
    "Unknown solver": "this MIOpen has no such solver",
}
LEGACY_FIELDS, CURRENT_FIELDS = 5, 3


@dataclass(frozen=True)
class Item:
    """One solver of a find-db record: milliseconds, bytes, algorithm."""

    solver: str
    time_ms: float
    workspace: int
    algo: str


@dataclass(frozen=True)
class ReadBack:
    """`solver` is empty where it is not known, and `why` says so; else it ran."""

    solver: str
    why: str = ""
    algo: str = ""
    time_ms: float | None = None
    workspace: int | None = None
    refused: bool = False


def log_solvers(log: str) -> tuple[str, ...]:
    """Return the solvers that a log says were chosen, in order, each once."""
    found = [match.group(1) for line in log.splitlines() for match in _said(line)]
    return tuple(dict.fromkeys(found))


def _said(line: str) -> list[re.Match[str]]:
    return [match for pattern in (CHOSEN, IMMEDIATE) if (match := pattern.search(line))]


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


def read_back(log: str, find_db: str, *, keys: Sequence[str]) -> ReadBack:
    """Say which solver ran for the problem that `keys` name (its spellings).

    >>> read_back("FW Chosen Algorithm: GemmFwdRest , 0, 0.5", "", keys=["k"]).solver
    'GemmFwdRest'
    """
    logged = log_solvers(log)
    records = parse_find_db(find_db)
    items = next((records[key] for key in keys if key in records), ())
    written = tuple(dict.fromkeys(item.solver for item in items))
    if not logged and not written:
        return _nothing(log)
    if len(logged) > 1 or len(written) > 1:
        return ReadBack("", f"more than one ran: {' '.join(dict.fromkeys(logged + written))}")
    if logged and written and logged != written:
        return ReadBack("", f"the log says {logged[0]}, the find-db {written[0]}")
    name = (logged or written)[0]
    if items:
        item = items[0]
        return ReadBack(name, "", item.algo, item.time_ms, item.workspace)
    return ReadBack(name)


def _nothing(log: str) -> ReadBack:
    for sign, why in REFUSALS.items():
        if sign in log:
            return ReadBack("", why, refused=True)
    return ReadBack("", "neither log nor find-db names a solver")
