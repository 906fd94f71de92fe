"""Runs that are not trials of the own suite on one device: external suites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.adapter import judge_installation
from vega_image.selftest.external.ggml.installation import Installation
from vega_image.selftest.external.ggml.program import cases
from vega_image.selftest.external.protocol import Line
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result

GGML_DEVICES = {"cpu": "CPU", "vulkan": "Vulkan0", "hip": "ROCm0"}
Heard = Callable[[Result], None]


def ggml_device(spec: str) -> str:
    """Translate --device to ggml's name; raises SelftestError for one it cannot have.

    >>> ggml_device("hip:1"), ggml_device("vulkan")
    ('ROCm1', 'Vulkan0')
    """
    word, _, number = spec.partition(":")
    if word not in GGML_DEVICES or not (number or "0").isdigit():
        raise SelftestError(
            "UNKNOWN_DEVICE", f"ggml has no device {spec}", hint="cpu, vulkan, hip or hip:N"
        )
    name = GGML_DEVICES[word]
    return name if word == "cpu" else name.rstrip("0") + str(int(number or "0"))


def run_ggml(root: Path, spec: str, level: str, heard: Heard) -> tuple[Result, ...]:
    """Judge a llama.cpp installation; upstream's lines count for nothing but what is wrong.

    Raises SelftestError: no device (7), no libggml (7).
    """
    with TemporaryDirectory(prefix="vega-ggml-") as folder:
        installation = Installation(root, ggml_device(spec))
        verdicts = judge_installation(installation, level, Path(folder))
    # Upstream need not support every variant it knows; what it calls wrong counts.
    spared = {row.id for row in cases(level) if not row.required}
    ours = [_external(line, "ours", spared=line.case in spared) for line in verdicts.lines]
    theirs = [_external(line, "upstream", spared=True) for line in verdicts.upstream]
    for result in (*ours, *theirs):
        heard(result)
    return (*ours, *theirs)


def _external(line: Line, family: str, *, spared: bool) -> Result:
    ours = family == "ours"
    case = Case(
        id=f"{family}/{line.case}",
        kind="ggml",
        name=line.case,
        family=family,
        tier="r1",
        dtypes=(),
        directions=("fwd",),
        source="libggml" if ours else "ggml tests/test-backend-ops.cpp",
        oracle="integer" if ours else "",
        bound="bit-exact" if ours else "upstream's global error norm, which proves nothing",
        why="the operations a language model runs",
        unsupported_allowed=spared,
    )
    record = TrialRecord(
        key=case.id,
        verdict=line.verdict,
        detail=line.detail,
        oracle=case.oracle,
        error=line.error,
        bound=line.bound,
    )
    return Result(case, Trial(case.id, "fwd", "", family), record)
