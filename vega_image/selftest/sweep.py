"""`--solvers all`: every solver that may do a convolution, one child process each. Pure.

MIOpen reads its variables once per process, hence the children. A solver is forced by the only
combination that holds whatever the find-dbs say (measured, tests/data/miopen-logs): normal
find, which asks neither find-db, and a list of one solver. The list alone does not hold: a hit
in either db, and the immediate mode, go past it. Empty dbs keep their traces out besides.
Which solver ran is read back; a right answer of another solver is SUBSTITUTED and proves
nothing of the one asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.journal import Entry, device_of
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.miopen.problem import directed_key
from vega_image.selftest.miopen.readback import ReadBack
from vega_image.selftest.miopen.solvers import Solver, candidates, solvers
from vega_image.selftest.threefold import ORACLES, PROFILES
from vega_image.selftest.verdict import Verdict

ONLY = "MIOPEN_DEBUG_FIND_ONLY_SOLVER"
PREFIX = "MIOPEN_"
ALL = "all"
ANSWERED = frozenset({Verdict.MATCH, Verdict.DEGRADED, Verdict.MISMATCH, Verdict.NOT_FINITE})


@dataclass(frozen=True)
class Step:
    """One child process: a problem and the solver forced on it."""

    case: Case
    direction: str
    dtype: str
    solver: Solver

    def trial(self, oracle: str) -> Trial:
        """Return the trial that stands for an oracle; `hygiene` is no run of its own."""
        profile = PROFILES.get(oracle, oracle)
        return Trial(self.case.id, self.direction, self.dtype, profile, 0, self.solver.name)

    @property
    def key(self) -> str:
        """MIOpen's key of the problem."""
        return directed_key(str(self.case.params["miopen_key"]), self.direction)

    @property
    def name(self) -> str:
        """A name that may be a folder's: solvers' names may not."""
        return f"{self.case.id}-{self.dtype}-{self.direction}-{self.solver.id}"


def forced(solver: str, folder: Path) -> dict[str, str]:
    """Return the variables that leave MIOpen this solver or none.

    `folder` must be the step's own: its `system` an empty folder, `user` an empty writable
    one. Compiled kernels are shared with its neighbours, and with nobody else.
    """
    return {
        ONLY: solver,
        "MIOPEN_FIND_MODE": "1",
        "MIOPEN_SYSTEM_DB_PATH": str(folder / "system"),
        "MIOPEN_USER_DB_PATH": str(folder / "user"),
        "MIOPEN_CUSTOM_CACHE_DIR": str(folder.parent / "kernels"),
        "MIOPEN_DEBUG_CONV_IMMED_FALLBACK": "0",
        "MIOPEN_DEBUG_ENABLE_AI_IMMED_MODE_FALLBACK": "0",
        "MIOPEN_LOG_LEVEL": "5",
    }


def child_environ(base: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return a child's whole environment: nothing of MIOpen's is inherited."""
    kept = {name: value for name, value in base.items() if not name.startswith(PREFIX)}
    return {**kept, **variables}


def wanted_solvers(text: str) -> frozenset[str]:
    """Return the names that `--solvers` lists; every one of `all`.

    Raises SelftestError for a name that MIOpen 3.5.1 does not have, with what comes close.
    """
    known = {solver.name for solver in solvers()}
    if text == ALL:
        return frozenset(known)
    names = frozenset(text.split(","))
    for name in sorted(names - known):
        found = {one: one.lower().find(name.lower()) for one in known if name}
        near = sorted((at, one) for one, at in found.items() if at >= 0)[:5]
        raise SelftestError(
            "UNKNOWN_SOLVER",
            f"MIOpen 3.5.1 has no convolution solver {name!r}",
            hint=f"--solvers {' or '.join(one for _, one in near) or ALL}",
            at=name,
        )
    return names


def plan(problems: Iterable[tuple[Case, str, str]], names: frozenset[str]) -> tuple[Step, ...]:
    """Return every step; a problem is a case, a direction and a dtype.

    Raises SelftestError where nothing is left: no convolution, or no such solver for it.
    """
    steps = tuple(
        Step(case, direction, dtype, solver)
        for case, direction, dtype in problems
        for solver in candidates(direction, named=names)
    )
    if not steps:
        raise SelftestError(
            "NOTHING_TO_RUN",
            "no convolution among these cases for which such a solver may apply",
            hint="vega-image selftest list --kind conv",
        )
    return steps


def judge(step: Step, judgement: Judgement, ran: ReadBack, *, died: bool = False) -> Judgement:
    """Return an oracle's verdict: a number counts only for the solver that made it.

    `died`: the child did not say this itself, it was killed, hung or cut short.
    """
    answered = judgement.verdict in ANSWERED
    said_no = judgement.verdict in {Verdict.CRASHED, Verdict.UNSUPPORTED} and not died
    if ran.refused and (answered or said_no):
        return _instead(judgement, Verdict.UNSUPPORTED, ran.why)
    if not answered:
        return judgement
    if not ran.solver:
        return _instead(judgement, Verdict.UNPROVEN, ran.why)
    if ran.solver != step.solver.name:
        text = f"{step.solver.name} was forced, {ran.solver} ran instead"
        return _instead(judgement, Verdict.SUBSTITUTED, text)
    return judgement


def _instead(judgement: Judgement, verdict: Verdict, detail: str) -> Judgement:
    return Judgement(verdict, judgement.error, judgement.bound, judgement.oracle, detail)


@dataclass(frozen=True)
class Origin:
    """What a step's lines share: device, driver, suite, hashes of library and system db."""

    source: str
    identity: Mapping[str, object]
    suite: str
    lib_sha256: str
    db_sha256: str
    perf_config: str = "default"

    @property
    def driver(self) -> str:
        """The driver's version."""
        return str(self.identity.get("driver", "not available"))


def entry(step: Step, judgement: Judgement, *, ran: ReadBack, origin: Origin) -> Entry:
    """Return the journal's line of one oracle."""
    trial = step.trial(judgement.oracle)
    profile = PROFILES.get(judgement.oracle, PROFILES["integer"])
    drawn = Trial(trial.case, trial.direction, trial.dtype, profile)
    return Entry(
        key=step.key,
        trial=trial.key,
        case=trial.case,
        direction=trial.direction,
        dtype=trial.dtype,
        verdict=judgement.verdict.value,
        source=origin.source,
        suite=origin.suite,
        device=device_of(origin.identity),
        driver=origin.driver,
        solver=step.solver.name,
        solver_ran=ran.solver,
        algo=ran.algo,
        time_ms=ran.time_ms,
        workspace_bytes=ran.workspace,
        perf_config=origin.perf_config if ran.solver else "",
        oracle=judgement.oracle,
        # The numbers are drawn by the trial's name without its solver: all get the same.
        seed=zlib.crc32(drawn.key.encode()),
        rep=trial.rep,
        error=judgement.error,
        bound=judgement.bound,
        detail=judgement.detail,
        lib_sha256=origin.lib_sha256,
        db_sha256=origin.db_sha256,
    )


def settled(entries: Iterable[Entry], origin: Origin) -> dict[str, Entry]:
    """Return, by trial, the lines of a journal that hold for this origin still.

    Another library, device, driver, suite or source: another question. What was not asked to
    the end (no process could be started, the checker failed, the budget ended) is asked again.
    """
    device = device_of(origin.identity)
    want = (origin.source, origin.suite, device, origin.driver, origin.lib_sha256)
    found = {}
    for line in entries:
        have = (line.source, line.suite, dict(line.device), line.driver, line.lib_sha256)
        if line.solver and have == want and line.oracle in ORACLES:
            found[line.trial] = line
    return {key: line for key, line in found.items() if not line.detail.startswith(UNASKED)}


UNASKED = "not asked: "
"""How the detail begins of what a later run must ask again."""
