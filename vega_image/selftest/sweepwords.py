"""What a solver sweep is told and what it tells: steps, resumption, dry run."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vega_image.selftest import choosing, sweep
from vega_image.selftest.arguments import Wish
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.identity import Known
from vega_image.selftest.isolate import Limits
from vega_image.selftest.journal import Entry, read_entries
from vega_image.selftest.miopen.library import NONE, UNREAD
from vega_image.selftest.out import show, show_json, tell
from vega_image.selftest.spawn import own_command
from vega_image.selftest.sweeping import RUNS, Setting, origin_here
from vega_image.selftest.threefold import ORACLES

JOURNAL = "journal.jsonl"
START_SECONDS, FIND_SECONDS = 8.0, 5.0
"""To import torch and open a card; to compile and time one solver. Assumed, not measured."""
REFERENCE_FLOPS = 4e9
"""Of the fp64 reference on one processor core, in 1/s: it outweighs the card's own time."""


def steps_of(wish: Wish) -> tuple[sweep.Step, ...]:
    """Return every child. Raises SelftestError: unknown solver, or nothing to sweep."""
    names = sweep.wanted_solvers(wish.solvers)
    return sweep.plan(choosing.problems_of(wish), names)


def setting_of(wish: Wish, known: Known, suite: str, work: Path) -> Setting:
    """Return what the children share."""
    return Setting(
        device=wish.device,
        origin=_origin(known, suite),
        limits=Limits(trial=wish.timeout),
        work=work,
        open=known.open,
        # On a card a copy of this process would have a libMIOpen that read its variables.
        spawned=wish.isolation == "spawn" or wish.device.startswith("hip"),
        plant=wish.plant,
        memory=wish.memory,
        record=str(wish.record or ""),
        until=None if wish.budget is None else time.monotonic() + wish.budget,
    )


def _origin(known: Known, suite: str) -> sweep.Origin:
    return sweep.Origin(known.source, known.identity, suite, UNREAD, NONE)


def done_before(
    steps: Sequence[sweep.Step], wish: Wish, known: Known, suite: str
) -> Mapping[str, Entry]:
    """Return the lines of the report folder's journal that need not be asked again.

    Says so on standard error. Raises SelftestError for a journal that is not one.
    """
    path = wish.report / JOURNAL
    if not steps:
        return {}
    if known.source == "cpu":
        tell("A processor has no MIOpen: no solver can be read back, all will be UNPROVEN.")
    if wish.plant or not path.is_file():
        return {}
    origin = origin_here(_origin(known, suite))
    lines = sweep.settled(_entries(path), origin)
    wanted = {step.trial(oracle).key for step in steps for oracle in ORACLES}
    done = {key: line for key, line in lines.items() if key in wanted}
    library = origin.lib_sha256 if origin.lib_sha256 == UNREAD else origin.lib_sha256[:12]
    tell(
        f"{path} holds {len(done)} of {len(wanted)} results for this library "
        f"(SHA-256 {library}), device, driver and suite; they are not asked again."
    )
    return done


def _entries(path: Path) -> Iterable[Entry]:
    try:
        return list(read_entries(path.read_bytes()))
    except OSError as error:
        text = f"cannot read {path}: {error.strerror or error}"
        raise SelftestError("JOURNAL", text, at=str(path)) from error


def dry_run(steps: Sequence[sweep.Step], wish: Wish) -> None:
    """Print what a sweep would run: its size as comments, then a command for every child."""
    commands = [command(step, wish) for step in steps]
    seconds = estimate(steps)
    if wish.json:
        show_json(
            {
                "children": len(steps),
                "trials": len(steps) * len(ORACLES),
                "estimate_seconds": round(seconds),
                "commands": commands,
            }
        )
        return
    problems = len({step.key for step in steps})
    show(f"# {len(steps)} children, one per problem and solver; {problems} problems")
    show(f"# {len(steps) * len(ORACLES)} journal lines: {', '.join(ORACLES)} for each child")
    show(f"# about {_clock(seconds)} on a card (an estimate: no card was at hand to time it),")
    show(f"# at most {_clock(2 * wish.timeout * len(steps))} if every child hung")
    show("# each command does what the sweep does for that child; it sets the variables")
    show("# itself, in a fresh folder, and drops every other MIOPEN_ variable")
    for text in commands:
        show(text)


def command(step: sweep.Step, wish: Wish) -> str:
    """Return the command of one child, to be typed in a shell."""
    words = [*_program(), "--device", wish.device, "--case", step.case.id]
    words += ["--direction", step.direction, "--dtype", step.dtype]
    words += ["--solvers", step.solver.name, "--report", str(wish.report / step.name)]
    variables = sweep.forced(step.solver.name, Path("vega-sweep") / step.name)
    shown = [f"{name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    return f"{' '.join(shown)} {shlex.join(words)}"


def _program() -> list[str]:
    if shutil.which("vega-image"):
        return ["vega-image", "selftest"]
    return own_command()


def estimate(steps: Iterable[sweep.Step]) -> float:
    """Return about how many seconds a sweep takes on a card."""
    return sum(START_SECONDS + FIND_SECONDS + _reference(step) for step in steps)


def _reference(step: sweep.Step) -> float:
    gflop = step.case.params.get("gflop_per_dir")
    flops = float(gflop) * 1e9 if isinstance(gflop, (int, float)) else 0.0
    # Sums of magnitudes cost as much as the reference; the card's own runs are noise.
    return RUNS * flops / REFERENCE_FLOPS


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004
