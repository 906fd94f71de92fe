"""vega-image finddb plan: the order of proving, and what it takes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import records_of
from vega_image.commands.finddb.writing import write_file
from vega_image.console import table
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.finddb.opening import open_db
from vega_image.finddb.plan import REASONS, Trial, plan, within
from vega_image.units import duration

BUDGET = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|m|min|h|d)?")
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, None: 1}


def show_plan(
    call: Call, path: Path, *, budget: str | None, limit: int, output: Path | None
) -> int:
    """Print the trials in their order, with what each takes and all together."""
    seconds = _seconds(budget) if budget is not None else None
    everything = plan(records_of(call, open_db(path)))
    chosen = everything if seconds is None else list(within(everything, seconds))
    if output:
        rows = (json.dumps(_trial(one), sort_keys=True) for one in chosen)
        write_file(output, "".join(f"{row}\n" for row in rows).encode())
    shown = chosen[:limit] if limit else chosen
    value = _value(everything, chosen, shown, seconds)
    call.console.result(list(_lines(everything, chosen, shown)), value)
    return 0


def _seconds(text: str) -> float:
    match = BUDGET.fullmatch(text)
    if match is None:
        msg = f"{text!r} is no time"
        raise UsageError("BAD_BUDGET", msg, hint="--budget 90s, 30m, 8h or 2d")
    return float(match[1]) * SECONDS[match[2]]


def _value(
    everything: list[Trial], chosen: list[Trial], shown: list[Trial], budget: float | None
) -> Json:
    return {
        "trials": len(everything),
        "seconds": round(sum(one.seconds for one in everything), 1),
        "budget_seconds": budget,
        "planned": len(chosen),
        "planned_seconds": round(sum(one.seconds for one in chosen), 1),
        "planned_by_reason": dict(Counter(one.reason for one in chosen)),
        "order": [_trial(one) for one in shown],
    }


def _trial(trial: Trial) -> dict[str, Json]:
    return {
        "key": trial.key,
        "solver": trial.solver,
        "reason": trial.reason,
        "macs": trial.macs,
        "seconds": round(trial.seconds, 6),
        "recorded": trial.recorded,
    }


def _lines(everything: list[Trial], chosen: list[Trial], shown: list[Trial]) -> Iterator[str]:
    rows = [
        (
            one.reason,
            one.solver,
            f"{one.seconds:.2f} s" + ("" if one.recorded else " (guess)"),
            one.key,
        )
        for one in shown
    ]
    yield from table(("WHY HERE", "SOLVER", "TIME", "KEY"), rows)
    yield ""
    for number, reason in enumerate(REASONS):
        group = [one for one in chosen if one.group == number]
        yield f"{reason}: {len(group)} trials, {duration(sum(one.seconds for one in group))}"
    guessed = sum(not one.recorded for one in chosen)
    whole = duration(sum(one.seconds for one in everything))
    yield (
        f"planned {len(chosen)} of {len(everything)} trials: "
        f"{duration(sum(one.seconds for one in chosen))} of {whole}; "
        f"{guessed} are fallbacks of records nothing else can serve, their times are guesses"
    )
