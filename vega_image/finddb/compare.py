"""Two find-dbs beside each other, and several made one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from vega_image.finddb.record import Item, Record


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one record. `lost` and `gained` are solvers, `fastest` (before, after)."""

    key: str
    lost: tuple[str, ...]
    gained: tuple[str, ...]
    measured_anew: tuple[str, ...]
    fastest: tuple[str, str] | None

    @property
    def words(self) -> str:
        """Say it."""
        parts = [f"{name} removed" for name in self.lost]
        parts += [f"{name} added" for name in self.gained]
        parts += [f"{name} measured anew" for name in self.measured_anew]
        if self.fastest:
            parts.append(f"the fastest is now {self.fastest[1]}, was {self.fastest[0]}")
        return ", ".join(parts) or "the order of its items"


@dataclass(frozen=True, slots=True)
class Difference:
    """What B is against A; keys in the order of A, then of B."""

    lost: tuple[str, ...]
    gained: tuple[str, ...]
    changed: tuple[Change, ...]
    same: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Dbs that say different things of one key; `where` are (db, line)."""

    key: str
    where: tuple[tuple[str, int], ...]
    why: str


def difference(a: Iterable[Record], b: Iterable[Record]) -> Difference:
    """Compare by key; the two written forms of an item are the same item."""
    before = {record.key: record for record in a}
    after = {record.key: record for record in b}
    both = [key for key in before if key in after]
    changed = [
        _change(before[key], after[key])
        for key in both
        if before[key].items != after[key].items
    ]
    return Difference(
        lost=tuple(key for key in before if key not in after),
        gained=tuple(key for key in after if key not in before),
        changed=tuple(changed),
        same=len(both) - len(changed),
    )


def _change(before: Record, after: Record) -> Change:
    old = {item.solver: item for item in before.items}
    new = {item.solver: item for item in after.items}
    fastest = (before.fastest.solver, after.fastest.solver)
    return Change(
        key=before.key,
        lost=tuple(name for name in old if name not in new),
        gained=tuple(name for name in new if name not in old),
        measured_anew=tuple(name for name in old if name in new and old[name] != new[name]),
        fastest=fastest if fastest[0] != fastest[1] else None,
    )


def merged(
    dbs: Sequence[tuple[str, Iterable[Record]]], *, stricter_wins: bool
) -> tuple[list[Record], list[Conflict]]:
    """Make one of several: (name, records) of each.

    Where dbs that have a key name the same solvers, the slowest time and the largest
    workspace hold. Where they name different ones that is a conflict; if `stricter_wins`,
    only solvers that each of them names stay, and a key without any such is left out.
    """
    seen: dict[str, list[tuple[str, Record]]] = {}
    for name, records in dbs:
        for record in records:
            seen.setdefault(record.key, []).append((name, record))
    found: list[Record] = []
    conflicts: list[Conflict] = []
    for key, several in seen.items():
        if why := _disagreement([record for _, record in several]):
            where = tuple((name, record.line) for name, record in several)
            conflicts.append(Conflict(key, where, why))
            if not stricter_wins:
                continue
        items = tuple(_stricter([record for _, record in several]))
        if items:
            found.append(Record(key=key, items=items))
    return found, conflicts


def _disagreement(records: list[Record]) -> str:
    """Say on what the records of a key disagree; times and workspaces may differ."""
    first = _algorithms(records[0])
    for record in records[1:]:
        other = _algorithms(record)
        if other != first:
            one = sorted(f"{n} ({a})" if n in dict(other) else n for n, a in first - other)
            two = sorted(f"{n} ({a})" if n in dict(first) else n for n, a in other - first)
            sides = [f"only one names {', '.join(side)}" for side in (one, two) if side]
            return "; ".join(sides)
    return ""


def _algorithms(record: Record) -> set[tuple[str, str]]:
    return {(item.solver, item.algorithm) for item in record.items}


def _stricter(records: list[Record]) -> Iterator[Item]:
    """Yield what every record names, by its slowest time."""
    if len(records) == 1:
        yield from records[0].items
        return
    shared = set.intersection(*(_algorithms(record) for record in records))
    items = []
    for name, algorithm in shared:
        same = [
            i for r in records for i in r.items if (i.solver, i.algorithm) == (name, algorithm)
        ]
        slowest = max(same, key=lambda item: item.time)
        workspace = max(item.workspace for item in same)
        if workspace == slowest.workspace:
            items.append(slowest)
        else:
            items.append(
                Item(solver=name, time=slowest.time, workspace=workspace, algorithm=algorithm)
            )
    yield from sorted(items, key=lambda item: (item.time, item.solver))
