"""Every case of the suite, from its tables; standard library only.

Operations come from their families' rows, linear algebra, convolutions and regressions from
the JSON lines in data/. A table that is not what this version expects is an error, never a
shorter suite.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from vega_image.selftest.case import KINDS, LEVELS, Case
from vega_image.selftest.datafiles import table
from vega_image.selftest.sources import conv_source, conv_why
from vega_image.selftest.suites.ops.op import Bilinear, Exact, Op, Statistic
from vega_image.selftest.suites.ops.table import families

COUNTS = {"op": 98, "linalg": 20, "conv": 1016, "regression": 29}


class TableError(Exception):
    """A shipped table is damaged, or belongs to another version of the suite."""


class UnknownCaseError(Exception):
    """No case has this id."""


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """Return all cases: operations, linear algebra, convolutions, regressions.

    Raises TableError for an incomplete table, SelftestError (4) for a damaged one.
    """
    found = (
        *(_op(family, op) for family, ops in families() for op in ops),
        *(_linalg(row) for row in _lines("linalg.jsonl")),
        *(_conv(row) for row in _lines("conv.jsonl")),
        *(_regression(row) for row in _lines("regressions.jsonl")),
    )
    check(found)
    return tuple(sorted(found, key=lambda case: (KINDS.index(case.kind), case.id)))


def check(found: tuple[Case, ...]) -> None:
    """Raise TableError unless the tables are complete and each id names one case."""
    for kind, count in COUNTS.items():
        have = sum(case.kind == kind for case in found)
        if have != count:
            msg = f"{kind}: {have} cases instead of {count}"
            raise TableError(msg)
    ids = [case.id for case in found]
    twice = {one for one in ids if ids.count(one) > 1} if len(set(ids)) < len(ids) else set()
    if twice:
        msg = f"ids that name two cases: {sorted(twice)}"
        raise TableError(msg)
    for case in found:
        if case.tier not in LEVELS or not case.source or not case.bound or not case.why:
            msg = f"{case.id}: tier, source, bound or reason missing"
            raise TableError(msg)


def find_case(name: str) -> Case:
    """Return the case of an id or, where only one has it, of a name.

    Raises UnknownCaseError, whose text offers what comes close.
    """
    everything = cases()
    for case in everything:
        if case.id == name:
            return case
    named = [case for case in everything if case.name == name]
    if len(named) == 1:
        return named[0]
    close = ", ".join(case.id for case in named[:8]) or _close(name, everything)
    msg = f"no case {name!r}" + (f"; near: {close}" if close else "")
    raise UnknownCaseError(msg)


def _close(name: str, everything: tuple[Case, ...]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistyped name

    words = [word for case in everything for word in (case.id, case.name)]
    return ", ".join(dict.fromkeys(get_close_matches(name, words, n=4)))


def _lines(file: str) -> Iterator[Mapping[str, Any]]:
    try:
        for line in table(file).decode("utf-8").splitlines():
            yield json.loads(line)
    except ValueError as error:
        msg = f"{file}: {error}"
        raise TableError(msg) from error


def _op(family: str, op: Op) -> Case:
    kinds = ((Statistic, "statistic"), (Exact, "integer"), (Bilinear, "integer, real"))
    oracle = next((name for kind, name in kinds if isinstance(op.bound, kind)), "real")
    operands = [{"kind": i.kind, "shape": list(i.shape)} for i in op.inputs]
    return Case(
        id=op.id,
        kind="op",
        name=op.name,
        family=family,
        tier="r1" if any(variant.tier == "r1" for variant in op.variants) else "r2",
        dtypes=op.dtypes,
        directions=op.directions,
        source=f"PyTorch OpInfo {op.opinfo or op.name}" + (f"; {op.risk}" if op.risk else ""),
        oracle=oracle,
        bound=op.bound.formula,
        why=op.risk or "one of the operations that networks are made of",
        params={"shapes": op.shapes, "operands": operands},
    )


def _linalg(row: Mapping[str, Any]) -> Case:
    return Case(
        id=row["id"],
        kind="linalg",
        name=row["name"],
        family="linalg",
        tier=min(trial["tier"] for trial in row["trials"]),
        dtypes=tuple(row["dtypes"]),
        directions=("fwd",),
        source=f"LAPACK test suite, criteria of its working notes; {row['risk']}".rstrip("; "),
        oracle="property",
        bound=f"{row['criterion']} <= {row['threshold']:g}",
        why=row["risk"] or "touches its library once",
        params={key: row[key] for key in ("shapes", "threshold", "trials")},
        unsupported_allowed=row["unsupported_allowed"],
    )


def _conv(row: Mapping[str, Any]) -> Case:
    sizes = ("N", "C", "H", "W", "K", "R", "S", "stride", "pad", "dilation", "groups")
    return Case(
        id=row["id"],
        kind="conv",
        name=row["name"],
        family=row["family"],
        tier=row["tier"],
        dtypes=(row["dtype"],),
        directions=tuple(row["directions"]),
        source=conv_source(row["name"], row["family"]),
        oracle="integer, real",
        bound="integers: bit-exact; real: A min(gamma_n(u32), 8 sqrt(n) u32) S + u_out |ref|",
        why=conv_why(row["family"]),
        params={key: row[key] for key in (*sizes, "miopen_key", "gflop_per_dir")},
        layout=row["layout"],
    )


def _regression(row: Mapping[str, Any]) -> Case:
    replays = row["replays"]
    return Case(
        id=row["id"],
        kind="regression",
        name=row["what"],
        family="regression",
        tier=min((replay["tier"] for replay in replays), default="r2"),
        dtypes=tuple(dict.fromkeys(replay["dtype"] for replay in replays)),
        directions=tuple(dict.fromkeys(replay["direction"] for replay in replays)),
        source=f"{row['id']} ({row['source']})",
        oracle="as the replayed case",
        bound="as the replayed case",
        why=row["what"],
        params={"check": row["check"], "replays": replays, "assert_unset": row["assert_unset"]},
    )
