"""vega-image finddb stats: what a find-db holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import left_out, records_of
from vega_image.console import table
from vega_image.digest import Json
from vega_image.finddb.opening import open_db
from vega_image.finddb.problem import DIRECTIONS
from vega_image.finddb.stats import Stats, count
from vega_image.finddb.uncollected import uncollected

SHOWN = 8


def show_stats(call: Call, path: Path) -> int:
    """Print the counts of a find-db."""
    db = open_db(path)
    with uncollected():
        records = records_of(call, db)
        stats = count(records)
    value = {"file": db.name, "left_out": left_out(db, records), **stats_value(stats)}
    call.console.result(list(_lines(stats)), value)
    return 0


def stats_value(stats: Stats) -> dict[str, Json]:
    """Encode the counts for --json."""
    return {
        "records": stats.records,
        "items": stats.items,
        "by_direction": _directed(stats.by_direction),
        "by_kind": [
            {"direction": direction, "dtype": dtype, "layout": layout, "records": n}
            for (direction, dtype, layout), n in sorted(stats.by_kind.items())
        ],
        "only_unavailable": stats.only_unavailable.total(),
        "only_unavailable_by_direction": _directed(stats.only_unavailable),
        "c3": _directed(stats.c3),
        "c3_only_unavailable": _directed(stats.c3_only_unavailable),
        "winners": _winners(stats.winners),
        "c3_winners": _winners(stats.c3_winners),
        "solvers": dict(sorted(stats.solvers.items())),
        "items_by_kernels": dict(sorted(stats.kernels.items())),
        "items_per_record": {
            str(n): times for n, times in sorted(stats.items_per_record.items())
        },
        "grouped": stats.grouped,
        "volumes": stats.volumes,
        "unknown_solvers": stats.unknown_solvers,
    }  # fmt: skip


def _directed(counts: Counter[str]) -> dict[str, Json]:
    return {direction: counts[direction] for direction in DIRECTIONS}


def _winners(counts: Counter[tuple[str, str]]) -> dict[str, Json]:
    return {
        direction: {name: n for (at, name), n in _sorted(counts) if at == direction}
        for direction in DIRECTIONS
    }


def _sorted(counts: Counter[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _lines(stats: Stats) -> Iterator[str]:
    kinds = f"{stats.grouped} grouped, {stats.volumes} 3-D"
    yield f"{stats.records} records, {stats.items} items, {kinds}"
    yield ""
    yield from _kinds(stats)
    yield ""
    rows = [
        (
            direction,
            str(stats.by_direction[direction]),
            _share(stats.only_unavailable[direction], stats.by_direction[direction]),
            str(stats.c3[direction]),
            _share(stats.c3_only_unavailable[direction], stats.c3[direction]),
        )
        for direction in DIRECTIONS
    ]
    head = ("DIRECTION", "RECORDS", "NO USABLE SOLVER", "C=3", "C=3, NO USABLE SOLVER")
    yield from table(head, rows)
    for title, counts in (("fastest", stats.winners), ("C=3, fastest", stats.c3_winners)):
        for direction in DIRECTIONS:
            best = [(name, n) for (at, name), n in _sorted(counts) if at == direction]
            text = ", ".join(f"{name} {n}" for name, n in best[:SHOWN])
            more = f", {len(best) - SHOWN} others" if len(best) > SHOWN else ""
            yield f"{title} {direction}: {text or 'none'}{more}"
    kinds = ", ".join(f"{kind} {n}" for kind, n in stats.kernels.most_common())
    yield f"items by kernels: {kinds or 'none'}"


def _kinds(stats: Stats) -> Iterator[str]:
    columns = sorted({key[1:] for key in stats.by_kind}, key=lambda key: (key[1], key[0]))
    rows = [
        (direction, *(str(stats.by_kind[direction, *key]) for key in columns), "")
        for direction in DIRECTIONS
    ]
    yield from table(("", *(f"{dtype} {layout}" for dtype, layout in columns), ""), rows)


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "0"
