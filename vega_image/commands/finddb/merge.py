"""vega-image finddb merge: one find-db of several machines'."""

from __future__ import annotations

from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import left_out
from vega_image.commands.finddb.writing import write_file
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.finddb.compare import Conflict, merged
from vega_image.finddb.opening import open_db
from vega_image.finddb.record import Record
from vega_image.finddb.text import write

SHOWN = 10


def merge(call: Call, paths: tuple[Path, ...], *, output: Path, stricter_wins: bool) -> int:
    """Write one db; raises UsageError MERGE_FLAWED, MERGE_CONFLICT."""
    dbs = [(str(path), _records(path)) for path in paths]
    records, conflicts = merged(dbs, stricter_wins=stricter_wins)
    if conflicts and not stricter_wins:
        raise _refusal(conflicts)
    write_file(output, write(records))
    value: Json = {
        "records": len(records),
        "items": sum(len(record.items) for record in records),
        "conflicts": len(conflicts),
        "output": str(output),
    }
    dropped = sum(1 for one in conflicts) and f"; {len(conflicts)} conflicts, the stricter won"
    call.console.result([f"{output}: {len(records)} records{dropped or ''}"], value)
    return 0


def _records(path: Path) -> list[Record]:
    """Return all records of a db that has nothing else."""
    db = open_db(path)
    records = list(db.records())
    if left := left_out(db, records):
        msg = f"{path}: {left} lines are no records or repeat a key; nothing was merged"
        raise UsageError("MERGE_FLAWED", msg, hint=f"vega-image finddb lint {path}")
    return records


def _refusal(conflicts: list[Conflict]) -> UsageError:
    lines = [_words(one) for one in conflicts[:SHOWN]]
    more = len(conflicts) - len(lines)
    text = "\n  ".join([f"{len(conflicts)} records differ:", *lines])
    text += f"\n  and {more} more" if more else ""
    return UsageError("MERGE_CONFLICT", text, hint="--stricter-wins, or vega-image finddb diff")


def _words(conflict: Conflict) -> str:
    where = ", ".join(f"{name}:{line}" for name, line in conflict.where)
    return f"{conflict.key} ({where}): {conflict.why}"
