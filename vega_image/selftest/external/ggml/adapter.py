"""`--suite ggml`: judge a llama.cpp installation or an unpacked root."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vega_image.selftest.external.ggml.installation import UPSTREAM, Installation
from vega_image.selftest.external.ggml.program import cases, find_program
from vega_image.selftest.external.ggml.upstream import read_upstream
from vega_image.selftest.external.protocol import Line, status
from vega_image.selftest.external.running import Run, run, run_cases
from vega_image.selftest.verdict import Verdict

OPERATIONS = {
    "r1": "ADD",
    "r2": "ADD,RMS_NORM,SOFT_MAX",
    "r3": "ADD,MUL,RMS_NORM,SOFT_MAX,ROPE,GET_ROWS,SET_ROWS,CPY,SILU,SWIGLU,MUL_MAT",
    "r4": "",
}
"""What upstream's test is asked at each level; nothing named is all of it."""


@dataclass(frozen=True)
class Verdicts:
    """Our lines and upstream's, and the exit code they add up to."""

    lines: tuple[Line, ...]
    upstream: tuple[Line, ...]
    exit_code: int


def judge_installation(
    installation: Installation,
    level: str,
    folder: Path,
    *,
    degraded_allowed: bool = True,
    run: Run = run,
) -> Verdicts:
    """Run our exact set, then upstream's test; `folder` is for the compiled program.

    Raises SelftestError NO_DEVICE (7) when the installation does not know the device.
    """
    rows = cases(level)
    program = find_program(installation.root, folder, run=run)
    expected = [row.id for row in rows]
    lines = run_cases(lambda after: installation.ours(program, level, after), expected, run=run)
    upstream = _upstream(installation, level, run=run)
    optional = {row.id for row in rows if not row.required}
    # Upstream need not support every variant it knows; what it calls wrong counts.
    counted = [line for line in upstream if line.verdict is not Verdict.UNSUPPORTED]
    code = status([*lines, *counted], optional, degraded_allowed=degraded_allowed)
    return Verdicts(lines, upstream, code)


def _upstream(installation: Installation, level: str, *, run: Run) -> tuple[Line, ...]:
    if not (installation.root / UPSTREAM).is_file():
        why = f"no {UPSTREAM} in this installation"
        return (Line("upstream", Verdict.UNPROVEN, device=installation.device, detail=why),)
    ended = run(installation.upstream(OPERATIONS[level]))
    return read_upstream(ended, installation.device).lines
