"""vega-image finddb perfdb: what a perf-db holds, and which of its lines are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.console import table
from vega_image.digest import Json
from vega_image.finddb.opening import SQLITE, read_bytes, refuse_binary
from vega_image.finddb.perfdb import Tuned, read_sqlite, tuned_lines
from vega_image.finddb.problem import DIRECTIONS, FormError
from vega_image.finddb.text import FindDb

TEXT, BASE = "text", "sqlite"
SHOWN = 1000
FOUND_ERRORS = 2


@dataclass(slots=True)
class Contents:
    """What was counted; `flaws` are (line, column, why)."""

    form: str
    configs: int = 0
    by_direction: Counter[str] = field(default_factory=Counter)
    solvers: Counter[str] = field(default_factory=Counter)
    flaws: list[tuple[int, int, str]] = field(default_factory=list)

    def take(self, tuned: Tuned) -> None:
        """Count the configurations of one problem."""
        self.configs += 1
        self.by_direction[tuned.config.direction] += 1
        self.solvers.update(name for name, _ in tuned.items)


def show_perfdb(call: Call, path: Path) -> int:
    """Print what a perf-db holds; exit 2 where a line is none of its grammar."""
    data = read_bytes(path)
    if data.startswith(SQLITE):
        found = Contents(BASE)
        for tuned in read_sqlite(path):
            found.take(tuned)
    else:
        refuse_binary(data, path)
        found = _text(FindDb(data, str(path)))
    value: Json = {
        "file": str(path),
        "form": found.form,
        "configs": found.configs,
        "items": found.solvers.total(),
        "by_direction": {one: found.by_direction[one] for one in DIRECTIONS},
        "solvers": dict(sorted(found.solvers.items())),
        "errors": len(found.flaws),
        "findings": [_finding(*flaw) for flaw in found.flaws[:SHOWN]],
    }
    call.console.result(list(_lines(path, found)), value)
    return FOUND_ERRORS if found.flaws else 0


def _text(db: FindDb) -> Contents:
    found = Contents(TEXT)
    seen: dict[str, int] = {}
    for number, tuned in tuned_lines(db):
        if isinstance(tuned, FormError):
            found.flaws.append((number, tuned.column, tuned.message))
            continue
        first = seen.setdefault(tuned.config.key, number)
        if first != number:
            found.flaws.append((number, 1, f"this key is in line {first} already"))
        found.take(tuned)
    return found


def _finding(line: int, column: int, why: str) -> Json:
    return {"line": line, "column": column, "message": why}


def _lines(path: Path, found: Contents) -> Iterator[str]:
    yield from (f"{path}:{line}:{column}: {why}" for line, column, why in found.flaws[:SHOWN])
    yield from table(("SOLVER", "CONFIGURATIONS"), _rows(found.solvers.most_common()))
    each = ", ".join(f"{one} {found.by_direction[one]}" for one in DIRECTIONS)
    yield (
        f"{found.form}: {found.configs} problems ({each}), {found.solvers.total()} "
        f"configurations, {len(found.flaws)} lines that are none"
    )


def _rows(counts: Iterable[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(name, str(number)) for name, number in counts]
