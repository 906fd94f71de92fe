"""`--suite ggml` as results of a run: our cases count, upstream's say-so never does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.adapter import Asked, Verdicts, judge_installation
from vega_image.selftest.external.ggml.place import OpenPlace, Place, Wanted
from vega_image.selftest.external.ggml.table import Row
from vega_image.selftest.external.protocol import Command, Ended, Introduced, Line
from vega_image.selftest.external.running import Told
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result

OURS, UPSTREAM = "exact", "upstream"
DTYPES = {"F32": "fp32", "F16": "fp16", "Q8_0": "q8_0", "Q4_0": "q4_0"}
SOFTWARE = ("llvmpipe", "lavapipe", "softpipe", "swiftshader", "swrast", "software")
SHOW_SOFTWARE = "GGML_VK_VISIBLE_DEVICES"
LIBRARIES = {"libggml": "libggml.so.0", "libggml-base": "libggml-base.so.0"}
BACK_ENDS = {"Vulkan": "libggml-vulkan.so", "ROCm": "libggml-hip.so"}


@dataclass(frozen=True)
class Judged:
    """What a run found. `source` is device or cpu; `identity` what the device says it is."""

    results: tuple[Result, ...]
    source: str
    name: str
    identity: Mapping[str, object]
    digests: Mapping[str, str]
    target: str
    software: str


def judge_ggml(asked: Asked, wanted: Wanted, open_place: OpenPlace, told: Told) -> Judged:
    """Judge a llama.cpp; `told` hears every case as soon as its line is there.

    Raises SelftestError: no device (7), no libggml (7), or as the place does.
    """
    with open_place(wanted) as place:
        verdicts = _judged(asked, wanted, place, told)
        digests = {**place.digests, **_digests(place)}
    device = verdicts.device or Introduced(place.installation.device, "", "")
    software = software_of(device)
    identity = {
        "arch": device.description or "not available",
        "driver": f"ggml {device.device}",
        "kind": device.kind,
    }
    return Judged(
        results=as_results(verdicts, asked),
        source=source_of(device),
        name=f"{wanted.device} ({device.device}: {device.description})",
        identity=identity,
        digests=digests,
        target=place.name,
        software=software,
    )


def _judged(asked: Asked, wanted: Wanted, place: Place, told: Told) -> Verdicts:
    def here(command: Command) -> Ended:
        return place.run(command, told)

    try:
        return judge_installation(place.installation, asked, place.program, run=here)
    except SelftestError as error:
        chosen = SHOW_SOFTWARE in place.installation.environ
        if error.code != "NO_DEVICE" or wanted.device != "vulkan" or chosen:
            raise
    # ggml leaves software renderers out unless one is named; it says what it is, and so do we.
    shown = {**place.installation.environ, SHOW_SOFTWARE: "0"}
    installation = replace(place.installation, environ=shown)
    return judge_installation(installation, asked, place.program, run=here)


def source_of(device: Introduced) -> str:
    """Say where numbers come from; who does not introduce itself is no graphics card.

    >>> source_of(Introduced("Vulkan0", "llvmpipe (LLVM 21.1.8, 256 bits)", "gpu"))
    'cpu'
    >>> source_of(Introduced("ROCm0", "AMD Radeon VII", "gpu"))
    'device'
    """
    card = device.kind in {"gpu", "igpu"} and device.description
    return "device" if card and not software_of(device) else "cpu"


def software_of(device: Introduced) -> str:
    """Return the name of a software renderer, or nothing."""
    known = any(word in device.description.lower() for word in SOFTWARE)
    return device.description if known else ""


def as_results(verdicts: Verdicts, asked: Asked) -> tuple[Result, ...]:
    """Turn lines into results, ours first."""
    rows = {row.id: row for row in asked.rows}
    ours = (_ours(line, rows[line.case]) for line in verdicts.lines)
    return (*ours, *map(_upstream, verdicts.upstream))


def _ours(line: Line, row: Row) -> Result:
    exact = row.profile != "REAL"
    case = Case(
        id=row.id,
        kind="ggml",
        name=f"{row.op} {row.a}x{row.b}x{row.c}",
        family=OURS,
        tier=f"r{row.level}",
        dtypes=(DTYPES[row.type],),
        directions=("fwd",),
        source="libggml",
        oracle="integer" if exact else "real",
        bound="bit-exact" if exact else "the rounding of its inputs and sums",
        why="a language model runs it",
        unsupported_allowed=not row.required,
    )
    trial = Trial(case.id, "fwd", case.dtypes[0], row.profile.lower())
    return Result(case, trial, _record(line, trial, case.oracle))


def _upstream(line: Line) -> Result:
    case = Case(
        id=line.case,
        kind="ggml",
        name=line.case.removeprefix("upstream:"),
        family=UPSTREAM,
        tier="r1",
        dtypes=("",),
        directions=("fwd",),
        source="ggml tests/test-backend-ops.cpp",
        oracle="",
        bound="one error norm over the whole result, which a zeroed tile can pass",
        why="what it calls wrong counts; what it calls right proves nothing",
        # Upstream need not support every variant it knows.
        unsupported_allowed=True,
    )
    trial = Trial(case.id, "fwd", "", UPSTREAM)
    return Result(case, trial, _record(line, trial, case.oracle))


def _record(line: Line, trial: Trial, oracle: str) -> TrialRecord:
    return TrialRecord(
        key=trial.key,
        verdict=line.verdict,
        detail=line.detail,
        oracle=oracle,
        error=line.error,
        bound=line.bound,
        seconds=line.seconds,
    )


def _digests(place: Place) -> dict[str, str]:
    installation = place.installation
    if installation.inside:
        return {}
    files = {name: installation.library.with_name(file) for name, file in LIBRARIES.items()}
    for word, file in BACK_ENDS.items():
        if installation.device.startswith(word):
            files[file.removesuffix(".so")] = installation.backends / file
    return {name: _sha256(path.read_bytes()) for name, path in files.items() if path.is_file()}


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
