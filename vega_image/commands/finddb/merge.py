"""vega-image finddb merge: one find-db, or one journal of evidence, of several machines'."""

from __future__ import annotations

from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import left_out
from vega_image.commands.finddb.writing import write_file
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.finddb.compare import Conflict, merged
from vega_image.finddb.evidence import read_journal
from vega_image.finddb.joined import contradictions, joined
from vega_image.finddb.opening import open_db, read_bytes
from vega_image.finddb.record import Record
from vega_image.finddb.text import write

SHOWN = 10


def merge(call: Call, paths: tuple[Path, ...], *, output: Path, stricter_wins: bool) -> int:
    """Write one db or journal; raises UsageError MERGE_FLAWED, MERGE_MIXED, MERGE_CONFLICT."""
    kinds = {_is_journal(path) for path in paths}
    if len(kinds) > 1:
        msg = "find-dbs and journals of evidence cannot be merged with each other"
        raise UsageError("MERGE_MIXED", msg, hint="vega-image finddb curate DB JOURNAL...")
    if kinds == {True}:
        return _merge_journals(call, paths, output=output, stricter_wins=stricter_wins)
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


def _is_journal(path: Path) -> bool:
    return read_bytes(path).lstrip()[:1] == b"{"


def _merge_journals(
    call: Call, paths: tuple[Path, ...], *, output: Path, stricter_wins: bool
) -> int:
    texts = [read_bytes(path) for path in paths]
    pairs = zip(texts, paths, strict=True)
    journals = [read_journal(text, str(path)) for text, path in pairs]
    found = contradictions(journals)
    if found and not stricter_wins:
        what, words = "contradictions", [f"{one.key}: {one.why}" for one in found]
        raise _refused(what, words)
    data = joined(journals, texts)
    write_file(output, data)
    count = data.count(b"\n")
    value: Json = {
        "records": count,
        "items": count,
        "conflicts": len(found),
        "output": str(output),
    }
    said = f"; {len(found)} contradictions, curate counts the stricter" if found else ""
    call.console.result([f"{output}: {count} lines of evidence{said}"], value)
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
    return _refused("records differ", [_words(one) for one in conflicts])


def _refused(what: str, words: list[str]) -> UsageError:
    more = len(words) - SHOWN
    text = "\n  ".join([f"{len(words)} {what}:", *words[:SHOWN]])
    text += f"\n  and {more} more" if more > 0 else ""
    return UsageError("MERGE_CONFLICT", text, hint="--stricter-wins, or vega-image finddb diff")


def _words(conflict: Conflict) -> str:
    where = ", ".join(f"{name}:{line}" for name, line in conflict.where)
    return f"{conflict.key} ({where}): {conflict.why}"
