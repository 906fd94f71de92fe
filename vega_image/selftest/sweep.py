"""`--solvers all`: every solver that may do a convolution, one child process each.

MIOpen reads its variables once per process, hence the children. A solver is forced by the only
combination that holds whatever the find-dbs say: normal find (the system find-db is not asked),
a list of one solver, an empty system db and a fresh user db. Which solver ran is read back; a
right answer of another solver is SUBSTITUTED and proves nothing of the one asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vega_image.selftest.case import Trial
from vega_image.selftest.journal import Entry, device_of
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.miopen.problem import directed_key
from vega_image.selftest.miopen.readback import ReadBack, read_back
from vega_image.selftest.miopen.solvers import Solver, candidates
from vega_image.selftest.verdict import Verdict

ONLY = "MIOPEN_DEBUG_FIND_ONLY_SOLVER"
PREFIX = "MIOPEN_"
ANSWERED = frozenset({Verdict.MATCH, Verdict.DEGRADED, Verdict.MISMATCH, Verdict.NOT_FINITE})


@dataclass(frozen=True)
class Step:
    """One child process: a trial, the solver forced on it, and what the child is started as."""

    trial: Trial
    solver: Solver
    keys: tuple[str, ...]
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    user_db: Path


def forced(solver: str, folder: Path) -> dict[str, str]:
    """Return the variables that leave MIOpen this solver or none; `folder` must be fresh.

    Its `system` must be an empty folder, `user` an empty writable one.
    """
    return {
        ONLY: solver,
        "MIOPEN_FIND_MODE": "1",
        "MIOPEN_SYSTEM_DB_PATH": str(folder / "system"),
        "MIOPEN_USER_DB_PATH": str(folder / "user"),
        "MIOPEN_DEBUG_CONV_IMMED_FALLBACK": "0",
        "MIOPEN_DEBUG_ENABLE_AI_IMMED_MODE_FALLBACK": "0",
        "MIOPEN_LOG_LEVEL": "5",
    }


def child_environ(base: Mapping[str, str], step: Step) -> dict[str, str]:
    """Return a child's whole environment: nothing of MIOpen's is inherited."""
    kept = {name: value for name, value in base.items() if not name.startswith(PREFIX)}
    return {**kept, **step.environ}


def plan(
    trials: Iterable[Trial],
    forward_keys: Mapping[str, str],
    *,
    command: Sequence[str],
    work: Path,
) -> tuple[Step, ...]:
    """Return every step: `forward_keys` by case, `command` starts a suite on the device.

    Trials that are not convolutions (no forward key) are left out. The child is started as
    `command CASE --direction D --dtype T --profile P`.
    """
    return tuple(
        _step(trial, solver, key=forward_keys[trial.case], command=command, work=work)
        for trial in trials
        if trial.case in forward_keys
        for solver in candidates(trial.direction)
    )


def _step(
    trial: Trial, solver: Solver, *, key: str, command: Sequence[str], work: Path
) -> Step:
    folder = work / f"{trial.case}-{trial.dtype}-{trial.direction}-{trial.profile}-{solver.id}"
    key = directed_key(key, trial.direction)
    words = (trial.case, "--direction", trial.direction, "--dtype", trial.dtype)
    return Step(
        trial=Trial(
            trial.case, trial.direction, trial.dtype, trial.profile, trial.rep, solver.name
        ),
        solver=solver,
        keys=(key, key.replace("NHWC-NHWC-NHWC", "NHWC")),
        argv=(*command, *words, "--profile", trial.profile),
        environ=forced(solver.name, folder),
        user_db=folder / "user",
    )


def dry_run(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the commands as a person would type them on a machine with the card."""
    return tuple(_typed(step) for step in steps)


def _typed(step: Step) -> str:
    system = step.environ["MIOPEN_SYSTEM_DB_PATH"]
    made = shlex.join(["mkdir", "-p", "--", system, str(step.user_db)])
    cleared = "env $(env | sed -n 's/^\\(MIOPEN_[A-Z0-9_]*\\)=.*/-u \\1/p')"
    variables = " ".join(
        f"{name}={shlex.quote(value)}" for name, value in sorted(step.environ.items())
    )
    return f"{made} && {cleared} {variables} {shlex.join(step.argv)}"


def user_find_db(folder: Path) -> str:
    """Return the text of the find-db a child wrote; empty if it wrote none."""
    found = sorted(folder.glob("*.ufdb.txt"))
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in found)


def judge(
    step: Step, judgement: Judgement, log: str, find_db: str
) -> tuple[Judgement, ReadBack]:
    """Return the step's verdict: a number counts only for the solver that made it."""
    ran = read_back(log, find_db, keys=step.keys)
    if judgement.verdict not in ANSWERED and not ran.refused:
        return judgement, ran
    if ran.refused:
        return _instead(judgement, Verdict.UNSUPPORTED, ran.why), ran
    if not ran.solver:
        return _instead(judgement, Verdict.UNPROVEN, ran.why), ran
    if ran.solver != step.solver.name:
        text = f"{step.solver.name} was forced, {ran.solver} ran"
        return _instead(judgement, Verdict.SUBSTITUTED, text), ran
    return judgement, ran


def _instead(judgement: Judgement, verdict: Verdict, detail: str) -> Judgement:
    return Judgement(verdict, judgement.error, judgement.bound, judgement.oracle, detail)


@dataclass(frozen=True)
class Origin:
    """What all lines of a sweep share: device, driver, suite, and hashes of library and db."""

    source: str
    identity: Mapping[str, object]
    driver: str
    suite: str
    lib_sha256: str = ""
    db_sha256: str = ""


def entry(step: Step, judgement: Judgement, *, ran: ReadBack, origin: Origin) -> Entry:
    """Return the journal's line."""
    return Entry(
        key=step.keys[0],
        trial=step.trial.key,
        case=step.trial.case,
        direction=step.trial.direction,
        dtype=step.trial.dtype,
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
        # No gfx906 perf-db is shipped and the child's is fresh: solvers run as they default.
        perf_config="default",
        oracle=judgement.oracle,
        rep=step.trial.rep,
        error=judgement.error,
        bound=judgement.bound,
        detail=judgement.detail,
        lib_sha256=origin.lib_sha256,
        db_sha256=origin.db_sha256,
    )
