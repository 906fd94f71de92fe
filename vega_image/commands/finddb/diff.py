"""vega-image finddb diff: what one find-db is against another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import records_of
from vega_image.digest import Json
from vega_image.finddb.compare import Difference, difference
from vega_image.finddb.opening import open_db


def show_diff(call: Call, a: Path, b: Path, *, limit: int) -> int:
    """Print lost, gained and changed records, and which solvers that concerns."""
    found = difference(records_of(call, open_db(a)), records_of(call, open_db(b)))
    most = limit or None
    value: Json = {
        "same": found.same,
        "lost_records": len(found.lost),
        "gained_records": len(found.gained),
        "changed_records": len(found.changed),
        "solvers_removed": dict(sorted(_removed(found).items())),
        "solvers_added": dict(sorted(_added(found).items())),
        "lost": list(found.lost[:most]),
        "gained": list(found.gained[:most]),
        "changed": [
            {
                "key": one.key,
                "removed": list(one.lost),
                "added": list(one.gained),
                "measured_anew": list(one.measured_anew),
                "fastest_before": one.fastest[0] if one.fastest else None,
                "fastest_after": one.fastest[1] if one.fastest else None,
            }
            for one in found.changed[:most]
        ],
    }
    call.console.result(list(_lines(found, most)), value)
    return 0


def _removed(found: Difference) -> Counter[str]:
    return Counter(name for one in found.changed for name in one.lost)


def _added(found: Difference) -> Counter[str]:
    return Counter(name for one in found.changed for name in one.gained)


def _lines(found: Difference, most: int | None) -> Iterator[str]:
    for title, keys in (("lost", found.lost), ("gained", found.gained)):
        yield from (f"{title} {key}" for key in keys[:most])
    yield from (f"changed {one.key}: {one.words}" for one in found.changed[:most])
    for title, counts in (("removed", _removed(found)), ("added", _added(found))):
        for name, number in counts.most_common():
            yield f"{name} {title} in {number} records"
    yield (
        f"{len(found.lost)} records lost, {len(found.gained)} gained, "
        f"{len(found.changed)} changed, {found.same} the same"
    )
