"""`--suite ggml`: judge a llama.cpp installation, an unpacked root or an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from vega_image.selftest.external.ggml.installation import UPSTREAM, Installation
from vega_image.selftest.external.ggml.program import cases
from vega_image.selftest.external.ggml.table import Row
from vega_image.selftest.external.ggml.upstream import read_upstream
from vega_image.selftest.external.protocol import (
    Command,
    Ended,
    Introduced,
    Line,
    parse_device,
)
from vega_image.selftest.external.running import Run, run, run_cases
from vega_image.selftest.verdict import Verdict

OPERATIONS = {
    "r1": "SCALE,SILU,RMS_NORM",
    "r2": "SCALE,SILU,RMS_NORM,ADD,SOFT_MAX",
    "r3": "SCALE,SILU,RMS_NORM,ADD,SOFT_MAX,MUL,ROPE,GET_ROWS,SET_ROWS,CPY,SWIGLU,MUL_MAT",
    "r4": "",
}
"""What upstream's test is asked at each level; nothing named is all of it."""
FAULTS = (
    "bit-flip",
    "zeroed-tile",
    "swapped-columns",
    "last-element-dropped",
    "nan",
    "fp16-output",
)
"""What vega-ggml can put into every result it reads back."""


@dataclass(frozen=True)
class Asked:
    """A level; `only` the cases with these ids, if any; a fault to plant in every result."""

    level: str
    only: tuple[str, ...] = ()
    plant: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The cases that run; chosen ones whatever their level."""
        if self.only:
            return tuple(row for row in cases("r4") if row.id in self.only)
        return cases(self.level)

    @property
    def whole(self) -> bool:
        """Whether upstream's test belongs to it."""
        return not (self.only or self.plant)


@dataclass(frozen=True)
class Verdicts:
    """Our lines and upstream's, and what the device said it is."""

    lines: tuple[Line, ...]
    upstream: tuple[Line, ...]
    device: Introduced | None


def judge_installation(
    installation: Installation, asked: Asked, program: Path, *, run: Run = run
) -> Verdicts:
    """Run our exact set with vega-ggml at `program`, then upstream's test.

    Raises SelftestError NO_DEVICE (7) when the installation does not know the device.
    """
    heard: list[Introduced] = []

    def listening(command: Command) -> Ended:
        ended = run(command)
        introduced = parse_device(ended.stdout)
        heard.extend([introduced] if introduced else [])
        return ended

    def start(more: tuple[str, ...]) -> Callable[[str], Command]:
        def command(after: str) -> Command:
            made = installation.ours(program, asked.level, after)
            planted = ("--plant", asked.plant) if asked.plant else ()
            return replace(made, argv=(*made.argv, *more, *planted))

        return command

    if asked.only:
        parts = (
            run_cases(start(("--case", row.id)), [row.id], run=listening) for row in asked.rows
        )
        lines = tuple(line for part in parts for line in part)
    else:
        lines = run_cases(start(()), [row.id for row in asked.rows], run=listening)
    upstream = _upstream(installation, asked.level, run=run) if asked.whole else ()
    return Verdicts(lines, upstream, heard[0] if heard else None)


def _upstream(installation: Installation, level: str, *, run: Run) -> tuple[Line, ...]:
    if not installation.has_upstream:
        return (_absent(installation),)
    ended = run(installation.upstream(OPERATIONS[level]))
    if ended.code in {126, 127} and not ended.timed_out:
        return (_absent(installation),)
    return read_upstream(ended, installation.device).lines


def _absent(installation: Installation) -> Line:
    why = f"no {UPSTREAM} in this installation"
    return Line("upstream", Verdict.UNPROVEN, device=installation.device, detail=why)
