"""The curation in words: what was kept, removed and lost, why, and by which evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vega_image.finddb.curate import Change, Curated
from vega_image.finddb.evidence import Evidence, aside_lines
from vega_image.finddb.manifest import PROVEN, status

SHOWN = 20


def report_lines(curated: Curated, evidence: Evidence, *, limit: int = SHOWN) -> Iterator[str]:
    """Yield the report; at most `limit` changes, problems and reasons are spelled out."""
    yield f"{curated.recorded_records} records read, {len(curated.lines)} written"
    yield from _evidence(evidence)
    yield (
        f"{len(curated.proven)} solvers proven in {curated.proven_records} records"
        f" ({curated.added_records} new); {curated.fallback_records} records served by the"
        " fallback, unproven"
    )
    yield f"{removed_text(curated)}, {_plural(len(curated.lost), 'shape')} lost"
    yield from _changes(curated.changes, limit)
    yield from _lost(curated, limit)
    yield from _reasons(curated, limit)
    yield from _flawed(curated, limit)
    word = status(curated, evidence)
    yield f"status: {word}" + ("" if word == PROVEN else _why(curated, evidence))


def removed_text(curated: Curated) -> str:
    """Say how many solvers are out, those that evidence or a rule refuses first."""
    count = _plural(curated.removed.total(), "solver")
    return f"{count} removed, {len(curated.changes)} of them by evidence or a rule"


def _why(curated: Curated, evidence: Evidence) -> str:
    if evidence.recorded:
        return " (recordings are evidence for tests only)"
    if not curated.proven:
        return " (no evidence from a gfx906)"
    return " (the fallback serves the rest)"


def _evidence(evidence: Evidence) -> Iterator[str]:
    for journal in evidence.journals:
        yield f"journal {journal.id}: {journal.name}, {len(journal.lines)} lines"
        if journal.cut:
            where = ", ".join(map(str, journal.cut))
            yield f"journal {journal.id}: cut short by a kill and left out: lines {where}"
    yield from aside_lines(evidence.aside)
    for trial in evidence.unnamed_wrong[:SHOWN]:
        text = f"{trial.line.verdict} on {trial.line.key}, by a solver nobody named"
        yield f"warning: {text} (evidence {trial.id})"


def _changes(changes: list[Change], limit: int) -> Iterator[str]:
    # What evidence says comes before what a rule says.
    ordered = sorted(changes, key=lambda one: (not one.evidence, one))
    for one in ordered[:limit]:
        by = f" (evidence {one.evidence})" if one.evidence else ""
        yield f"  {one.key}: {one.solver} kept out: {one.reason}{by}"
    if len(changes) > limit:
        yield f"  and {len(changes) - limit} more"


def _lost(curated: Curated, limit: int) -> Iterator[str]:
    for key in sorted(curated.lost)[:limit]:
        yield f"  {key}: lost: {curated.lost[key]}"
    if len(curated.lost) > limit:
        reasons = Counter(curated.lost.values()).most_common()
        rest = ", ".join(f"{n} {reason}" for reason, n in reasons)
        yield f"  lost in all: {rest}"


def _reasons(curated: Curated, limit: int) -> Iterator[str]:
    for (solver, reason), count in sorted(
        curated.removed.items(), key=lambda one: (-one[1], one[0])
    )[:limit]:
        yield f"{count:>8}  {solver}: {reason}"


def _flawed(curated: Curated, limit: int) -> Iterator[str]:
    for one in curated.flawed[:limit]:
        yield f"warning: line {one.line}, column {one.column} is no record: {one.message}"
    if len(curated.flawed) > limit:
        yield f"warning: {len(curated.flawed)} lines are no records"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
