"""Which records an audit asks about: all, or some that anybody would pick alike. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from vega_image.finddb.problem import FormError
from vega_image.finddb.record import Record
from vega_image.finddb.text import FindDb

# Fields of the shortest key, which names a plane.
_SIZES = 15
_DIRECTION = re.compile(rb"-([FBW])(?:_|$)")
_SOLVERS = re.compile(rb"(?:^|;)(?:miopenConvolution[^:;]*:)?([^:;,=\s]+)[:,]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Records whose shares count, and more that only show which solvers there are.

    `cover` is empty where all records are asked about; `flawed` counts lines among the
    chosen ones that are no record.
    """

    counted: tuple[Record, ...]
    cover: tuple[Record, ...]
    flawed: int


def sample(db: FindDb, size: int | None) -> Sample:
    """Choose `size` records by the digests of their keys; None takes all.

    To a choice belongs a cover: for every solver in every direction one record naming it,
    so that rare solvers are not overlooked.
    """
    if size is None or size >= len(db):
        records, flawed = _parsed(db, list(db.index.values()))
        return Sample(counted=records, cover=(), flawed=flawed)
    order = sorted(db.index, key=lambda key: hashlib.sha256(key).digest())
    chosen = order[:size]
    covering = sorted(_cover(db, order) - set(chosen))
    records, flawed = _parsed(db, [db.index[key] for key in chosen])
    cover, _ = _parsed(db, [db.index[key] for key in covering])
    return Sample(counted=records, cover=cover, flawed=flawed)


def kinds(db: FindDb) -> tuple[Record, ...]:
    """Choose one record of every direction x dtype x filter x pad x stride.

    Solvers that it names do not matter. Where the image has three channels, as solvers for
    one layer of one network ask, also one of every size and number of filters.
    """
    chosen: dict[tuple[bytes, ...], int] = {}
    for key, number in db.index.items():
        part = key.split(b"-")
        if len(part) < _SIZES:
            continue
        first, high, wide, window, last, h2, w2 = part[:7]
        size = (high, wide, last) if first == b"3" else (h2, w2, first) if last == b"3" else ()
        chosen.setdefault((*part[13:], window, *part[8:10], *size), number)
    records, _ = _parsed(db, sorted(chosen.values()))
    return records


def _parsed(db: FindDb, numbers: list[int]) -> tuple[tuple[Record, ...], int]:
    records: list[Record] = []
    flawed = 0
    for number in numbers:
        try:
            records.append(db.record(number))
        except FormError:
            flawed += 1
    return tuple(records), flawed


def _cover(db: FindDb, order: list[bytes]) -> set[bytes]:
    seen: set[tuple[bytes, bytes]] = set()
    chosen: set[bytes] = set()
    for key in order:
        direction = _DIRECTION.search(key)
        if direction is None:
            continue
        value = db.lines[db.index[key]][len(key) + 1 :]
        named = {(direction[1], solver) for solver in _SOLVERS.findall(value)}
        if not named <= seen:
            seen |= named
            chosen.add(key)
    return chosen
