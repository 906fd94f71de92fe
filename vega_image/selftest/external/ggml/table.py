"""The case table that the C program is compiled from, read as values."""

from __future__ import annotations

import re
from dataclasses import dataclass

ROW = re.compile(r'^CASE\("([^"]+)", ([A-Z_]+), ([A-Z0-9_]+), ([A-Z_]+), (.+)\)$', re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """One case; what a, b, c and d mean depends on `op` (cases.def says)."""

    id: str
    op: str
    type: str
    profile: str
    a: int
    b: int
    c: int
    d: int
    level: int
    required: bool


def rows(text: str) -> tuple[Row, ...]:
    """Read a table; raises ValueError for one that is empty or names a case twice."""
    found = tuple(_row(*match.groups()) for match in ROW.finditer(text))
    if not found or len({row.id for row in found}) != len(found):
        msg = "cases.def: no case, or one named twice"
        raise ValueError(msg)
    return found


def _row(name: str, op: str, kind: str, profile: str, rest: str) -> Row:
    a, b, c, d, level, required = (int(word) for word in rest.split(","))
    return Row(name, op, kind, profile, a, b, c, d, level, bool(required))
