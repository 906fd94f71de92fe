"""An audit in words and as a --json value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vega_image.console import table
from vega_image.digest import Json
from vega_image.finddb.audit import Audit, Guesses, Share
from vega_image.finddb.probe.cell import Cell
from vega_image.finddb.probe.question import Name
from vega_image.finddb.survey import Answer, Compiled
from vega_image.finddb.text import FindDb

KEYS_SHOWN = 20
HEADER = ("DIRECTION", "DTYPE", "LAYOUT", "PROBLEMS", "USABLE", "SERVED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that an audit found out; `sampled` None when every record was asked about.

    `missing` are the solvers that apply and lack their kernels, `off` those that lack them too
    and would apply without the root's variables.
    """

    db: FindDb
    cell: Cell
    audit: Audit
    names: tuple[Name, ...]
    applicable: Mapping[str, int]
    missing: Mapping[str, tuple[str, ...]]
    off: Mapping[str, tuple[str, ...]]
    unloadable: Sequence[Compiled]
    guesses: Guesses
    flawed: int
    unasked: int
    sampled: int | None
    threshold: float

    @property
    def passes(self) -> bool:
        """Whether the usable share, of readable and unreadable lines, reaches the threshold."""
        return self.share >= self.threshold

    @property
    def share(self) -> float:
        """Return the usable share; what could not be asked about is not usable."""
        total = self.audit.total
        return total.usable / (total.problems + self.flawed + self.unasked)


def audit_value(report: Report) -> Json:
    """Encode an audit for --json."""
    audit = report.audit
    return {
        "library": report.cell.library.path,
        "library_sha256": report.cell.library.sha256,
        "db": report.db.name,
        "arch": report.cell.card.arch,
        "cu": report.cell.card.cu,
        "environment": dict(sorted(report.cell.environ.items())),
        "sampled": report.sampled,
        "problems": audit.total.problems,
        "usable": audit.total.usable,
        "served": audit.total.served,
        "c3_problems": sum(share.problems for share in audit.c3.values()),
        "c3_usable": audit.c3_usable,
        "c3": {name: _share(share) for name, share in sorted(audit.c3.items())},
        "by_kind": [
            {"direction": direction, "dtype": dtype, "layout": layout, **_share(share)}
            for (direction, dtype, layout), share in sorted(audit.kinds.items())
        ],
        "dead_records": len(audit.dead),
        "dead_keys": [record.key for record in audit.dead[:KEYS_SHOWN]],
        "refused_records": len(audit.refused),
        "flawed_lines": report.flawed,
        "unasked": report.unasked,
        "failures": [_failure(answer) for answer in audit.failed],
        "registered_solvers": sorted(name.solver for name in report.names),
        "applicable_solvers": list(report.applicable),
        "applicable_problems": dict(report.applicable),
        "missing_kernels": [
            {"solver": solver, "kernels": list(kernels), "off": solver in report.off}
            for solver, kernels in sorted([*report.missing.items(), *report.off.items()])
        ],
        "unloadable": [_unloadable(one) for one in report.unloadable],
        "broken_picks": dict(sorted(report.audit.broken_picks.items())),
        "fallback": _fallback(report),
        "share": report.share,
        "threshold": report.threshold,
        "passes": report.passes,
    }


def _share(share: Share) -> dict[str, Json]:
    return {"problems": share.problems, "usable": share.usable, "served": share.served}


def _failure(answer: Answer) -> Json:
    return {
        "key": answer.record.key,
        "outcome": str(answer.outcome),
        "detail": answer.detail,
    }


def _unloadable(one: Compiled) -> Json:
    return {
        "solver": one.solver,
        "key": one.record.key,
        "outcome": str(one.outcome),
        "status": one.status,
        "detail": one.detail,
    }


def _fallback(report: Report) -> Json:
    guesses = report.guesses
    return {
        "asked": guesses.asked,
        "of": len(report.audit.dead),
        "picks": [
            {"direction": direction, "solver": solver or None, "problems": count}
            for (direction, solver), count in sorted(guesses.picks.items())
        ],
        "models": [{"file": one.path, "found": one.found} for one in guesses.models],
        "borrowed": sorted(one.path for one in guesses.borrowed(report.cell.card)),
    }


def audit_lines(report: Report) -> Iterator[str]:
    """Say it to a person."""
    audit, card = report.audit, report.cell.card
    yield f"library   {report.cell.library.path} sha256:{report.cell.library.sha256}"
    yield f"card      {card.arch}, {card.cu} CU (described, not present)"
    yield f"find-db   {report.db.name}{_of_sample(report)}"
    yield ""
    yield from table(HEADER, _rows(audit))
    yield ""
    yield f"{len(audit.dead)} dead records: nothing they name is offered by this library"
    yield from _notes(report)
    verdict = "reaches" if report.passes else "is under"
    yield f"usable share {report.share:.1%} {verdict} the threshold {report.threshold:.1%}"


def _of_sample(report: Report) -> str:
    if report.sampled is None:
        return ""
    return f" ({report.sampled} of its {len(report.db)} records, chosen by digest)"


def _rows(audit: Audit) -> list[tuple[str, ...]]:
    rows = [(*kind, *_cells(share)) for kind, share in sorted(audit.kinds.items())]
    rows += [(name, "C=3", "", *_cells(share)) for name, share in sorted(audit.c3.items())]
    return [*rows, ("all", "", "", *_cells(audit.total))]


def _cells(share: Share) -> tuple[str, str, str]:
    usable = f"{share.usable} ({share.part:.1%})"
    return str(share.problems), usable, str(share.served)


def _notes(report: Report) -> Iterator[str]:
    audit = report.audit
    yield f"{len(report.applicable)} solvers apply of {len(report.names)} registered"
    if report.missing:
        yield f"{len(report.missing)} of them lack their kernels in this build:"
        for solver, kernels in report.missing.items():
            yield f"  {solver}: {', '.join(kernels)}"
        broken = audit.broken_picks.total()
        yield f"{broken} records lead to one of these first, and that call fails"
    if report.off:
        lack = (
            "more lack them" if report.missing else "solvers lack their kernels in this build"
        )
        yield f"{len(report.off)} {lack} and are switched off by the variables:"
        yield f"  {', '.join(report.off)}"
    for one in report.unloadable:
        yield f"  {one.solver}: {one.outcome} status {one.status} {one.detail}"
    yield from _fallback_lines(report)
    for count, what in (
        (len(audit.refused), "records make the whole call fail (finddb lint says why)"),
        (report.flawed, "lines are no records (finddb lint says why)"),
        (report.unasked, "records cannot be asked about: vectorised layout or casts"),
        (len(audit.failed), "questions ended the library:"),
    ):
        if count:
            yield f"{count} {what}"
    for answer in audit.failed[:KEYS_SHOWN]:
        yield f"  {answer.record.key}: {answer.outcome} {answer.detail}"


def _fallback_lines(report: Report) -> Iterator[str]:
    guesses = report.guesses
    if not guesses.asked:
        return
    yield f"in place of a dead record the library takes ({guesses.asked} asked):"
    for (direction, solver), count in sorted(guesses.picks.items()):
        yield f"  {direction} {solver or 'nothing'}: {count}"
    for model in guesses.borrowed(report.cell.card):
        state = "read" if model.found else "looked for, not there"
        yield f"heuristic of another chip: {model.path} ({state})"
