"""How much is enough: what each level asks for, and which trials tell most. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vega_image.selftest.case import LEVELS, Case, Trial

HALVES = frozenset({"fp16", "bf16", "q8_0", "q4_0"})
"""Formats in which less precise sums may be accepted, quantised weights among them; fp32 and
fp64 never."""


@dataclass(frozen=True)
class Level:
    """`runs` of each trial in one process, every `nth` again in a second process.

    Repeats of a trial stop after `repeat` seconds of device time. `passes` over the card's
    memory, each with every pattern; `fade` is how long a pattern must last. `share` is the
    part of the memory that is tested. Times in seconds.
    """

    name: str
    tiers: tuple[str, ...]
    runs: int
    nth: int
    repeat: float = 0.1
    soak: float = 0.0
    passes: int = 0
    fade: float = 0.0
    share: float = 0.95


TABLE = {
    "r1": Level("r1", LEVELS[:1], runs=2, nth=1),
    "r2": Level("r2", LEVELS[:2], runs=2, nth=8),
    "r3": Level("r3", LEVELS[:3], runs=10, nth=4, repeat=1.0, soak=600.0, passes=10),
    "r4": Level(
        "r4", LEVELS[:4], runs=100, nth=1, repeat=10.0, soak=3600.0, passes=1000, fade=60.0
    ),
}


def rehearsed(level: Level, source: str) -> Level:
    """Return what a level asks of a source: all of it of a card, a rehearsal of others.

    Repeats find what a card does now and then. A processor is the reference and a recording
    always says the same, so that both repeat only as often as at first boot: enough to show
    that repeating works, and the report says so.
    """
    if source == "device":
        return level
    first = TABLE["r2"]
    return replace(
        level,
        runs=min(level.runs, first.runs),
        nth=max(level.nth, first.nth) if level.runs > first.runs else level.nth,
        repeat=min(level.repeat, first.repeat),
    )


def telling(case: Case, trial: Trial) -> int:
    """Rank a trial for a short budget: lower is run earlier.

    What all else rests on first; then the gradient that was wrong and never noticed; then
    what was reported wrong before; then weights, the direction most reports name.
    """
    if case.name in {"mm", "h2d_d2h_roundtrip"}:
        return 0
    if case.kind == "conv" and case.family == "stem_c3" and trial.direction == "W":
        return 1
    if case.kind == "regression":
        return 2
    if trial.direction in {"W", "bwd"}:
        return 3
    return 4


def acceptable(dtype: str) -> bool:
    """Whether DEGRADED is good enough in this format."""
    return dtype in HALVES
