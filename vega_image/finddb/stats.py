"""What a find-db holds, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from vega_image.finddb.problem import parse_sort
from vega_image.finddb.record import Record
from vega_image.finddb.registry import registry


@dataclass(slots=True)
class Stats:
    """Counts of records unless they say otherwise; the keys are those of the tables."""

    records: int = 0
    items: int = 0
    by_direction: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    only_unavailable: Counter[str] = field(default_factory=Counter)
    c3: Counter[str] = field(default_factory=Counter)
    c3_only_unavailable: Counter[str] = field(default_factory=Counter)
    winners: Counter[tuple[str, str]] = field(default_factory=Counter)
    c3_winners: Counter[tuple[str, str]] = field(default_factory=Counter)
    solvers: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    items_per_record: Counter[int] = field(default_factory=Counter)
    grouped: int = 0
    volumes: int = 0
    unknown_solvers: int = 0

    def take(self, record: Record) -> None:
        """Count one record."""
        problem = parse_sort(record.key)
        direction = problem.direction
        names = [item.solver for item in record.items]
        self.records += 1
        self.items += len(names)
        self.by_direction[direction] += 1
        self.by_kind[direction, problem.dtype, problem.layout] += 1
        self.items_per_record[len(names)] += 1
        self.grouped += problem.groups != 1
        self.volumes += problem.dims != 2  # noqa: PLR2004 - neither is a plane
        self.solvers.update(names)
        solvers = registry()
        known = [solvers.get(name) for name in names]
        self.unknown_solvers += known.count(None)
        self.kernels.update(solver.kernels for solver in known if solver)
        self.winners[direction, record.fastest.solver] += 1
        dead = not any(s and s.usable and direction in s.directions for s in known)
        self.only_unavailable[direction] += dead
        if problem.first_layer_rgb:
            self.c3[direction] += 1
            self.c3_winners[direction, record.fastest.solver] += 1
            self.c3_only_unavailable[direction] += dead


def count(records: Iterable[Record]) -> Stats:
    """Count records."""
    stats = Stats()
    for record in records:
        stats.take(record)
    return stats
