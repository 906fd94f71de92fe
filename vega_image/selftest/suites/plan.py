"""Which trials a level asks for, in which order; standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from vega_image.selftest.case import LEVELS, Case, Trial
from vega_image.selftest.suites.ops.op import Bilinear, Op, Statistic
from vega_image.selftest.suites.ops.table import operations

FIRST = ("op95", "op27")
"""The copy to the device and the matrix product, since all else rests on them."""
R1_CONV = "conv0000"
FULL, HALF = "r2", "r3"


def trials(cases: Iterable[Case], level: str, *, repeats: int = 1) -> Iterator[Trial]:
    """Return the trials of cases up to a level, those first that the others rest on.

    Levels are cumulative. `repeats` asks each trial that often, with `rep` counting from 0.
    """
    depth = LEVELS.index(level)
    ordered = sorted(cases, key=_rank)
    for case in ordered:
        for tier, trial in _of(case):
            if LEVELS.index(tier) <= depth:
                yield from (
                    Trial(trial.case, trial.direction, trial.dtype, trial.profile, rep)
                    for rep in range(repeats)
                )


def _rank(case: Case) -> tuple[int, int, int]:
    first = FIRST.index(case.id) if case.id in FIRST else len(FIRST)
    kinds = ("op", "conv", "linalg", "regression")
    return first, LEVELS.index(case.tier), kinds.index(case.kind)


def _of(case: Case) -> Iterator[tuple[str, Trial]]:
    if case.kind == "op":
        return _op(operations()[case.id])
    if case.kind == "conv":
        return _conv(case)
    return _linalg(case) if case.kind == "linalg" else _regression(case)


def _op(op: Op) -> Iterator[tuple[str, Trial]]:
    profiles: tuple[str, ...] = ("stat",) if isinstance(op.bound, Statistic) else ("real",)
    if isinstance(op.bound, Bilinear):
        profiles = ("int", "real")
    for profile in profiles:
        for dtype in op.dtypes:
            # 16-bit formats follow at r3, but where an operation has no other.
            tier = FULL if dtype == op.dtypes[0] else HALF
            for direction in op.directions:
                yield tier, Trial(op.id, direction, dtype, profile)
                for number, variant in enumerate(op.variants, 1):
                    own = max(tier, variant.tier) if dtype != op.dtypes[0] else variant.tier
                    yield own, Trial(op.id, direction, dtype, f"{profile}.{number}")


def _conv(case: Case) -> Iterator[tuple[str, Trial]]:
    dtype = case.dtypes[0]
    square = case.params["R"] == case.params["S"] == 3  # noqa: PLR2004 - Winograd's filter
    for direction in case.directions:
        first = "r1" if case.id == R1_CONV and direction == "W" else case.tier
        yield first, Trial(case.id, direction, dtype, "int")
        if dtype == "fp32":
            # Whole numbers of more bits than fp16 has: short arithmetic inside shows.
            yield (
                first if case.tier == "r2" else "r4",
                Trial(case.id, direction, dtype, "wide-a"),
            )
    for direction in case.directions:
        # At first boot one image is enough of real numbers: the processor must refer to fp64.
        early = direction == "W" and dtype == "fp32" and case.params["N"] == 1
        tier = case.tier if early else max(case.tier, HALF)
        yield tier, Trial(case.id, direction, dtype, "real")
        if dtype != "fp32":
            yield max(case.tier, HALF), Trial(case.id, direction, dtype, "acc")
        # bf16 has no bits to spare for a wide operand.
        wide = {"bf16": (), "fp16": ("wide-a", "wide-b"), "fp32": ("wide-b",)}[dtype]
        for profile in (*wide, *(("wino",) * (square and dtype == "fp32"))):
            yield "r4", Trial(case.id, direction, dtype, profile)


def _linalg(case: Case) -> Iterator[tuple[str, Trial]]:
    listed = cast("list[dict[str, Any]]", case.params["trials"])
    for number, sub in enumerate(listed):
        for dtype in case.dtypes:
            yield sub["tier"], Trial(case.id, "fwd", dtype, f"real.{number}")


def _regression(case: Case) -> Iterator[tuple[str, Trial]]:
    listed = cast("list[dict[str, Any]]", case.params["replays"])
    for number, replay in enumerate(listed):
        profile = f"{replay['profile']}.{number}"
        yield replay["tier"], Trial(case.id, replay["direction"], replay["dtype"], profile)
