"""From a find-db, evidence and rules to a find-db in which every entry has a reason.

Per problem: the solvers that evidence proves and no rule denies, fastest first, at most four;
where there is none, the fallback under profile safe and no record under profile strict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from vega_image.finddb.fallback import fallback_items
from vega_image.finddb.problem import FormError, Problem, parse_key
from vega_image.finddb.proof import Proof
from vega_image.finddb.record import CURRENT, Item, parse_item
from vega_image.finddb.registry import registry
from vega_image.finddb.rule import Rules
from vega_image.finddb.text import FindDb
from vega_image.finddb.uncollected import uncollected
from vega_image.finddb.usual import usual
from vega_image.finddb.workspace import least

MOST = 4
NO_EVIDENCE = "no evidence"
BEYOND = f"proven, but slower than {MOST} others"
NO_TIME = "proven, but nobody measured its time"
UNKNOWN = "MIOpen 3.5.1 has no such solver"
DIRECTION = "the solver does not serve this direction"
NO_PROOFS: Mapping[str, Proof] = {}


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A solver that is kept out of a record for a reason of its own."""

    key: str
    solver: str
    reason: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Flawed:
    """A line of the input that is no record."""

    line: int
    column: int
    message: str


@dataclass(slots=True)
class Curated:
    """The new db (`lines`, sorted) and what became of the old one.

    `proven` are (key, solver, evidence) of every entry that evidence proves; `removed` counts
    the old entries that are gone by (solver, reason); `changes` names those that evidence or
    a rule kept out; `lost` are problems of the old db without a record, by reason.
    """

    profile: str
    lines: list[str] = field(default_factory=list)
    proven: list[tuple[str, str, str]] = field(default_factory=list)
    items: int = 0
    fallback_records: int = 0
    proven_records: int = 0
    added_records: int = 0
    removed: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: list[Change] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    flawed: list[Flawed] = field(default_factory=list)
    recorded_records: int = 0

    @property
    def data(self) -> bytes:
        """Return the new db's bytes."""
        return "".join(f"{line}\n" for line in self.lines).encode()

    @property
    def serves(self) -> frozenset[str]:
        """Return the solvers that some record serves as proven."""
        return frozenset(solver for _, solver, _ in self.proven)


@dataclass(slots=True)
class _Case:
    """One problem on its way: what was recorded, what is known, what is kept out."""

    key: str
    problem: Problem
    recorded: tuple[Item, ...]
    proofs: Mapping[str, Proof]
    out: dict[str, tuple[str, str]] = field(default_factory=dict)

    def keep_out(self, solver: str, reason: str, evidence: str = "") -> None:
        self.out.setdefault(solver, (reason, evidence))


def curate(
    db: FindDb, found: Mapping[str, Mapping[str, Proof]], *, rules: Rules, profile: str
) -> Curated:
    """Make the new db; `profile` is safe or strict. The same input gives the same output."""
    result = Curated(profile=profile)
    with uncollected():
        for number in db.index.values():
            _recorded(result, db, number, found=found, rules=rules)
    for key in found:
        if key not in db:
            case = _Case(key, parse_key(key), (), found[key])
            if _one(result, case, rules):
                result.added_records += 1
    result.lines.sort()
    result.proven.sort()
    result.changes.sort()
    result.flawed += _duplicates(db)
    return result


def _recorded(
    result: Curated,
    db: FindDb,
    number: int,
    *,
    found: Mapping[str, Mapping[str, Proof]],
    rules: Rules,
) -> None:
    """Take one line of the old db; a broken one is noted, its key served if it is one."""
    result.recorded_records += 1
    if result.profile == "safe" and _usual(result, db.lines[number], found, rules):
        return
    try:
        key, problem, items = _read(db, number)
    except FormError as error:
        result.flawed.append(Flawed(number + 1, error.column, error.message))
        key = db.lines[number].partition(b"=")[0].decode("latin-1")
        try:
            problem, items = parse_key(key), ()
        except FormError:
            result.lost[key] = "the line is no record"
            return
    _one(result, _Case(key, problem, items, found.get(key, NO_PROOFS)), rules)


def _usual(
    result: Curated, line: bytes, found: Mapping[str, Mapping[str, Proof]], rules: Rules
) -> bool:
    """Serve the fallback where nothing is known of a problem; most lines of most files."""
    short = usual(line, rules.concerned)
    if short is None or short[0] in found:
        return False
    key, solvers, text, count = short
    result.lines.append(f"{key}={text}")
    result.items += count
    result.fallback_records += 1
    for solver in solvers:
        if f";{solver}:" not in f";{text}":
            result.removed[solver, _never(solver) or NO_EVIDENCE] += 1
    return True


def _read(db: FindDb, number: int) -> tuple[str, Problem, tuple[Item, ...]]:
    """Read a line; the usual one without asking twice what its key is."""
    line = db.lines[number]
    key, _, value = line.decode("latin-1").partition("=")
    try:
        return key, parse_key(key), tuple(map(parse_item, value.split(";")))
    except FormError:
        record = db.record(number)
        return record.key, record.problem, record.items


def _duplicates(db: FindDb) -> Iterator[Flawed]:
    lines, index = db.lines, db.index
    if len(index) == len(lines) - lines.count(b""):
        return
    for number, line in enumerate(lines):
        key, mark, _ = line.partition(b"=")
        if not mark and line.strip():
            yield Flawed(number + 1, len(line) + 1, "expected '=' after the key")
        elif mark and key and index[key] != number:
            text = f"this key is in line {index[key] + 1}, which MIOpen takes"
            yield Flawed(number + 1, 1, text)


def _one(result: Curated, case: _Case, rules: Rules) -> bool:
    """Decide one problem; return whether it has a record now."""
    items = _proven_items(case, rules) if case.proofs else []
    if items:
        result.proven_records += 1
        proofs = case.proofs
        result.proven += [(case.key, i.solver, proofs[i.solver].evidence) for i in items]
    elif result.profile == "safe":
        items = _fallback(case, rules)
        result.fallback_records += bool(items)
    if items:
        result.items += len(items)
        written = ";".join([item.written(CURRENT) for item in items])
        result.lines.append(f"{case.key}={written}")
    _note(result, case, items, rules)
    return bool(items)


def _proven_items(case: _Case, rules: Rules) -> list[Item]:
    items = []
    for solver, proof in case.proofs.items():
        item = _proven_item(case, solver, proof)
        rule = rules.denying(case.problem, item) if item else None
        if rule:
            case.keep_out(solver, f"rule {rule.id}", proof.evidence)
        elif item:
            items.append(item)
    items.sort(key=lambda item: (item.time, item.solver))
    for item in items[MOST:]:
        case.keep_out(item.solver, BEYOND, case.proofs[item.solver].evidence)
    return items[:MOST]


def _proven_item(case: _Case, solver: str, proof: Proof) -> Item | None:
    """Make the entry of a proven solver, or note why there is none."""
    known = registry().get(solver)
    recorded = next((item for item in case.recorded if item.solver == solver), None)
    time = proof.time_ms or (recorded.time if recorded else None)
    reason = proof.reason
    if known is None:
        reason = reason or UNKNOWN
    elif not known.usable:
        reason = reason or known.why_not
    elif case.problem.direction not in known.directions:
        reason = reason or DIRECTION
    if not reason and not time:
        reason = NO_TIME
    if reason or known is None or not time:
        case.keep_out(solver, reason, proof.evidence)
        return None
    spaces = (proof.workspace, recorded.workspace if recorded else None)
    workspace = max((n for n in spaces if n is not None), default=0)
    return Item(
        solver=solver,
        time=time,
        workspace=max(workspace, least(solver, case.problem)),
        algorithm=known.algorithm(case.problem.direction),
    )


def _fallback(case: _Case, rules: Rules) -> list[Item]:
    """Return the fallback without what evidence or a rule speaks against."""
    items = []
    for item in fallback_items(case.problem, case.recorded):
        proof = case.proofs.get(item.solver)
        rule = rules.denying(case.problem, item)
        if proof is not None and proof.against:
            case.keep_out(item.solver, proof.reason, proof.evidence)
        elif rule:
            case.keep_out(item.solver, f"rule {rule.id}")
        else:
            items.append(item)
    return items


def _note(result: Curated, case: _Case, items: list[Item], rules: Rules) -> None:
    """Say what became of each recorded entry, and of a problem that has no record now."""
    served = {item.solver for item in items}
    for item in case.recorded:
        if item.solver not in served:
            reason = case.out[item.solver][0] if item.solver in case.out else ""
            result.removed[item.solver, reason or _why(case, item, rules)] += 1
    if case.out:
        result.changes += [
            Change(case.key, solver, reason, evidence)
            for solver, (reason, evidence) in case.out.items()
            if solver not in served
        ]
    if not items:
        against = "all its solvers are refuted or denied" if case.out else NO_EVIDENCE
        result.lost[case.key] = against


def _why(case: _Case, item: Item, rules: Rules) -> str:
    reason = _never(item.solver)
    rule = None if reason else rules.denying(case.problem, item)
    if rule is None:
        return reason or NO_EVIDENCE
    case.keep_out(item.solver, f"rule {rule.id}")
    return f"rule {rule.id}"


@lru_cache(maxsize=1024)
def _never(solver: str) -> str:
    """Say why a solver can serve nothing; empty where it might."""
    known = registry().get(solver)
    return UNKNOWN if known is None else known.why_not
