"""What a library's answers say about a find-db: what serves, what is missing. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vega_image.finddb.probe.card import Card
from vega_image.finddb.probe.session import Outcome
from vega_image.finddb.record import Record
from vega_image.finddb.survey import Answer, Compiled, Model


@dataclass(slots=True)
class Share:
    """Problems of one kind. `usable`: the library offers a solver that the record names;
    `served`: and can load the kernels of the one it picks.
    """  # noqa: D205 - two words, two meanings

    problems: int = 0
    usable: int = 0
    served: int = 0

    def count(self, *, usable: bool, served: bool) -> None:
        """Add one problem."""
        self.problems += 1
        self.usable += usable
        self.served += served

    @property
    def part(self) -> float:
        """Return the usable share, 0 where there is no problem."""
        return self.usable / self.problems if self.problems else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """What the library takes where it knows nothing: `asked` of the dead records, by pick."""

    asked: int
    picks: Counter[tuple[str, str]]
    models: tuple[Model, ...]

    @staticmethod
    def count(answers: Iterable[Answer]) -> Counter[tuple[str, str]]:
        """Count (direction, first solver offered); "" where none is."""
        return Counter(
            (answer.record.problem.direction, next(iter(answer.offered), ""))
            for answer in answers
        )

    def borrowed(self, card: Card) -> tuple[Model, ...]:
        """Return the models made for another chip than this card."""
        own = (f"{card.processor}.", f"{card.processor}_")
        return tuple(model for model in self.models if not model.path.startswith(own))


@dataclass(slots=True, kw_only=True)
class Audit:
    """The sums. `failed` are answers that did not come; `refused` those with a status."""

    total: Share = field(default_factory=Share)
    kinds: dict[tuple[str, str, str], Share] = field(default_factory=dict)
    c3: dict[str, Share] = field(default_factory=dict)
    dead: list[Record] = field(default_factory=list)
    failed: list[Answer] = field(default_factory=list)
    refused: list[Answer] = field(default_factory=list)
    broken_picks: Counter[str] = field(default_factory=Counter)

    @property
    def c3_usable(self) -> int:
        """Return how many problems of three channels are usable."""
        return sum(share.usable for share in self.c3.values())


def applicable(answers: Iterable[Answer]) -> dict[str, int]:
    """Return each solver that applied, with the number of problems; sorted by name."""
    found = Counter(solver for answer in answers for solver in answer.offered)
    return dict(sorted(found.items()))


def kernel_cases(answers: Iterable[Answer]) -> list[tuple[str, Record]]:
    """Choose a problem for every solver x direction x data type x stride that applies."""
    seen: dict[tuple[str, ...], tuple[str, Record]] = {}
    for answer in answers:
        problem = answer.record.problem
        kind = (problem.direction, problem.dtype, str(max(problem.strides)))
        for solver in answer.offered:
            seen.setdefault((solver, *kind), (solver, answer.record))
    return [seen[key] for key in sorted(seen)]


def missing_kernels(compiled: Sequence[Compiled]) -> dict[str, tuple[str, ...]]:
    """Return each solver whose kernels this library lacks, with the sources it looked for."""
    found: dict[str, set[str]] = {}
    for one in compiled:
        if one.missing is not None:
            found.setdefault(one.solver, set()).add(one.missing)
    return {solver: tuple(sorted(found[solver])) for solver in sorted(found)}


def other_failures(compiled: Sequence[Compiled]) -> list[Compiled]:
    """Return what could not be loaded for another reason than an absent source."""
    return [
        one
        for one in compiled
        if one.missing is None and (one.status or one.outcome is not Outcome.ANSWERED)
    ]


def judge(answers: Iterable[Answer], missing: Iterable[str]) -> Audit:
    """Add up the answers; `missing` are the solvers without kernels."""
    audit = Audit()
    without = set(missing)
    for answer in answers:
        usable = answer.pick is not None
        served = usable and answer.pick not in without
        for share in _shares(audit, answer.record):
            share.count(usable=usable, served=served)
        if answer.pick is not None and not served:
            audit.broken_picks[answer.pick] += 1
        if answer.outcome is not Outcome.ANSWERED:
            audit.failed.append(answer)
        elif not usable:
            audit.dead.append(answer.record)
            if answer.status:
                audit.refused.append(answer)
    return audit


def _shares(audit: Audit, record: Record) -> list[Share]:
    problem = record.problem
    kind = (problem.direction, problem.dtype, problem.layout)
    shares = [audit.total, audit.kinds.setdefault(kind, Share())]
    if problem.first_layer_rgb:
        shares.append(audit.c3.setdefault(problem.direction, Share()))
    return shares
