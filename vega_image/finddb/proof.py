"""What the evidence says of a solver on a problem: proven, refuted, or not enough.

Proven is a solver of which, in one binding (library, perf-config, device, driver), all three
oracles say MATCH, and against which nothing speaks in any binding: the stricter wins. A
journal's last word on a trial replaces what it said before, but a wrong result is never taken
back. That a solver does not apply (UNSUPPORTED) speaks neither way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from vega_image.finddb.evidence import WRONG, Evidence, Trial

ORACLES = ("integer", "real", "hygiene")
# The worst first; what is not listed proves nothing and speaks against nothing.
AGAINST = (
    "MISMATCH", "NOT_FINITE", "CRASHED", "TIMED_OUT", "DEGRADED", "INVALID", "UPSTREAM_OK",
    "SUBSTITUTED",
)  # fmt: skip
STANDS = WRONG | {"DEGRADED"}

# How the detail of a line begins that a later run of the sweep asks again.
UNASKED = "not asked: "

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What is known of a solver on a problem.

    `against` is the worst verdict, empty when none speaks against it; `missing` the oracles
    that no binding has; `time_ms` and `workspace` as measured, None where nobody did.
    `ids` are the lines it rests on: of a refutation those that speak against.
    """

    ids: tuple[str, ...]
    against: str = ""
    matched: bool = False
    missing: tuple[str, ...] = ()
    time_ms: float | None = None
    workspace: int | None = None
    recorded: bool = False

    @property
    def proven(self) -> bool:
        """Whether it may be served."""
        return not self.against and not self.missing

    @property
    def conflict(self) -> bool:
        """Whether something speaks for it and something against it."""
        return bool(self.against) and self.matched

    @property
    def reason(self) -> str:
        """Say in words why it is not proven; empty for one that is."""
        if self.against:
            also = ", MATCH elsewhere: the stricter counts" if self.matched else ""
            return f"{self.against}{also}"
        lacks = ", ".join(self.missing)
        return f"evidence is incomplete: no MATCH of {lacks}" if self.missing else ""

    @property
    def evidence(self) -> str:
        """Name the lines, as `JOURNAL:3,4,5`."""
        return evidence_id(self.ids)


def evidence_id(ids: Iterable[str]) -> str:
    """Join the names of lines.

    >>> evidence_id(["ab:2", "ab:10", "cd:1"])
    'ab:2,10 cd:1'
    """
    split = sorted((one.partition(":")[0], int(one.partition(":")[2])) for one in set(ids))
    return " ".join(
        f"{journal}:{','.join(str(number) for _, number in lines)}"
        for journal, lines in groupby(split, key=lambda pair: pair[0])
    )


def proofs(evidence: Evidence) -> dict[str, dict[str, Proof]]:
    """Judge the evidence: by key, then by solver."""
    groups: dict[Pair, list[Trial]] = {}
    for trial in evidence.trials:
        for solver in _concerned(trial):
            groups.setdefault((trial.line.key, solver), []).append(trial)
    found: dict[str, dict[str, Proof]] = {}
    for (key, solver), trials in sorted(groups.items()):
        found.setdefault(key, {})[solver] = _judge(solver, trials)
    return found


def _concerned(trial: Trial) -> tuple[str, ...]:
    """Return the solvers a line is about: that ran, and that was asked for but did not."""
    asked, ran = trial.line.solver, trial.line.solver_ran
    return tuple(dict.fromkeys(name for name in (ran, asked) if name))


def _says(trial: Trial, solver: str) -> str:
    """Return what a line says of one of its solvers: numbers are those of the one that ran."""
    asked, ran, verdict = trial.line.solver, trial.line.solver_ran, trial.line.verdict
    if trial.line.detail.startswith(UNASKED):
        return "UNPROVEN"
    if asked in {"", ran} or not ran:
        return verdict
    if solver == asked:
        return "SUBSTITUTED"
    return verdict if verdict in {"MISMATCH", "NOT_FINITE"} else "UNPROVEN"


def _judge(solver: str, trials: Sequence[Trial]) -> Proof:
    says = _standing([(_says(trial, solver), trial) for trial in trials])
    matches = [trial for verdict, trial in says if verdict == "MATCH"]
    for against in AGAINST:
        bad = [trial for verdict, trial in says if verdict == against]
        if bad:
            return Proof(
                ids=tuple(trial.id for trial in bad), against=against, matched=bool(matches)
            )
    return _proof(matches, [trial for _, trial in says])


def _standing(says: Sequence[tuple[str, Trial]]) -> list[tuple[str, Trial]]:
    """Leave out what a later line of the same journal replaces: same trial, same binding."""
    last = {_question(trial): trial for _, trial in says}
    return [
        (verdict, trial)
        for verdict, trial in says
        if verdict in STANDS or last[_question(trial)] is trial
    ]


def _question(trial: Trial) -> tuple[str, ...]:
    return (trial.id.partition(":")[0], trial.line.trial, trial.line.oracle, *trial.binding)


def _proof(matches: Sequence[Trial], trials: Sequence[Trial]) -> Proof:
    """Take the bindings that have all oracles; else say what the best of them lacks."""
    bindings: dict[tuple[str, ...], list[Trial]] = {}
    for trial in matches:
        bindings.setdefault(trial.binding, []).append(trial)
    lacks = {
        binding: tuple(o for o in ORACLES if o not in {t.line.oracle for t in found})
        for binding, found in bindings.items()
    }
    whole = [t for binding, found in bindings.items() if not lacks[binding] for t in found]
    if not whole:
        missing = min(lacks.values(), key=lambda one: (len(one), one), default=ORACLES)
        return Proof(ids=tuple(trial.id for trial in trials), missing=missing)
    times = [t.line.time_ms for t in whole if t.line.time_ms]
    spaces = [t.line.workspace_bytes for t in whole if t.line.workspace_bytes is not None]
    return Proof(
        ids=tuple(trial.id for trial in whole),
        time_ms=median(times) if times else None,
        workspace=max(spaces, default=None),
        recorded=any(trial.line.source != "device" for trial in whole),
    )


def conflicts(found: Mapping[str, Mapping[str, Proof]]) -> int:
    """Return how many solvers have evidence for and against them."""
    return sum(proof.conflict for solvers in found.values() for proof in solvers.values())


def bindings(evidence: Evidence) -> list[dict[str, str]]:
    """Return the different bindings of the evidence that counts, for a manifest."""
    found = {trial.binding for trial in evidence.trials if trial.line.verdict == "MATCH"}
    names = ("library", "perf_config", "device", "driver", "source")
    return [dict(zip(names, binding, strict=True)) for binding in sorted(found)]
