"""Speed at levels r3 and r4, as a suite like any other. Standard library only.

A device must be as fast as its kind is, and not faster: what is faster than possible was not
computed. Rates are judged only on a gfx906 that is a card, by the clock it ran at meanwhile.
Elsewhere the same trials are a rehearsal: their numbers must be right, which is what makes
them MATCH, and the rate is told and not judged, so that no processor passes for a card.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.endurance import SAMPLES, Prepared, matrix
from vega_image.selftest.hygiene import peak_flops
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.levels import Level
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.seam import Array, Computed, Failed, Outcome, Request
from vega_image.selftest.verdict import Verdict

NAME = "vega_image.selftest.speed"
FAULTS: tuple[str, ...] = ()
CLOCK = 1.75e9
DOUBLE = "<d"
CODES = {"fp16": "e", "fp32": "f", "fp64": "d"}
EXACT = 2048
ONES = {"fp16": 1, "fp32": 4, "fp64": 4}


@dataclass(frozen=True)
class Scale:
    """Shares of the peak: at least `good`, at least `poor`, at most `possible`.

    `peak` is in bytes per second; 0 where it is the number format's own in flop/s.
    """

    good: float
    poor: float
    possible: float
    peak: float = 0.0


SCALES = {
    "speed-gemm-fp32": Scale(0.75, 0.55, 1.05),
    "speed-gemm-fp16": Scale(0.60, 0.40, 1.05),
    "speed-gemm-fp64": Scale(0.75, 0.55, 1.05),
    "speed-memory": Scale(0.75, 0.60, 1.02, 1024e9),
    # The card's bus is PCIe 3 x16; the same chip on an MI50 has twice that.
    "speed-to-card": Scale(10 / 15.75, 2.5 / 15.75, 2.1, 15.75e9),
    "speed-from-card": Scale(10 / 15.75, 2.5 / 15.75, 2.1, 15.75e9),
}
"""No measurement of a gfx906 stands behind the shares; calibrate them on healthy cards."""


def cases_of(level: Level, *, source: str) -> tuple[tuple[Case, Trial], ...]:
    """List the trials of a level: whole sizes on a card, small ones in a rehearsal."""
    if not level.soak:
        return ()
    card = source == "device"
    side, seconds = (4096, 5.0) if card else (128, 0.1)
    sizes = {"speed-memory": 1 << 30} if card else {}
    found = []
    for name in SCALES:
        dtype = name.rpartition("-")[2] if "gemm" in name else "i32"
        size = side if "gemm" in name else sizes.get(name, 256 << 20 if card else 1 << 20)
        found.append((_case(name, dtype), Trial(name, "fwd", dtype, f"n{size}s{seconds:g}")))
    return tuple(found)


def _case(name: str, dtype: str) -> Case:
    return Case(
        id=name,
        kind="speed",
        name=name,
        family="gemm" if "gemm" in name else "copy",
        tier="r3",
        dtypes=(dtype,),
        directions=("fwd",),
        source="levels of the suite: speed",
        oracle="integer",
        bound="shares of the peak at the clock it ran at",
        why="a device faster than possible computed nothing; a slow one is ill or throttled",
    )


def trials(cases: Sequence[Case], level: str, /) -> Iterator[Trial]:
    """Yield nothing: these trials depend on the device and come from `cases_of`."""
    del cases, level
    yield from ()


def prepare(trial: Trial, /) -> Prepared:
    """Make the request of a trial. Raises ValueError for a profile that is none."""
    size, _, seconds = trial.profile.removeprefix("n").partition("s")
    number, time = int(size), float(seconds)
    wanted = ("rate", "wrong", "y")
    if trial.dtype == "i32":
        way = "up" if trial.case == "speed-to-card" else "down"
        program = "speed.copy" if trial.case == "speed-memory" else "speed.host"
        attributes = {"bytes": number, "seconds": time, "way": way}
        seed = {"seed": Array((1,), "i32", bytes(4))}
        made = Request(trial.key, program, seed, attributes, "i32", wanted)
        return Prepared(replace(made, measured=("rate",)))
    code, most = CODES[trial.dtype], ONES[trial.dtype]
    inputs = {
        name: Array((number, number), trial.dtype, matrix(name, number, code=code, most=most))
        for name in ("a", "b")
    }
    made = Request(trial.key, "speed.gemm", inputs, {"seconds": time}, trial.dtype, wanted)
    return Prepared(replace(made, measured=("rate",)))


def judge(prepared: Prepared, outcome: Outcome, /) -> Judgement:
    """Judge the numbers; `error` is the rate, for `graded`, and `bound` is nobody's yet."""
    if isinstance(outcome, Failed):
        return Judgement(Verdict(outcome.verdict), None, None, "integer", outcome.message)
    [rate] = struct.unpack(DOUBLE, outcome.outputs["rate"].data)
    fault = _fault(prepared.request, outcome)
    if not fault and not (math.isfinite(rate) and rate > 0):
        fault = f"a rate of {rate} per second"
    if fault:
        return Judgement(Verdict.MISMATCH, None, 0.0, "integer", fault)
    text = f"rehearsal: {rate:.3g} per second, not judged: only a card has a peak to keep to"
    return Judgement(Verdict.MATCH, rate, None, "integer", text)


def _fault(request: Request, outcome: Computed) -> str:
    [wrong] = struct.unpack("<q", outcome.outputs["wrong"].data)
    if wrong:
        return f"{wrong} differences counted on the device itself"
    y = outcome.outputs["y"]
    if request.program != "speed.gemm":
        words = int(str(request.attributes["bytes"])) // 4
        step = max(1, words // 64)
        want = struct.pack("<64i", *(step * at for at in range(64)))
        return "" if y.data == want else "words are not what was copied"
    a, b, found = (_floats(array) for array in (*request.inputs.values(), y))
    side = request.inputs["a"].shape[0]
    for number in range(SAMPLES):
        row, column = number * 37 % side, number * 101 % side
        want_sum = sum(a[row * side + k] * b[k * side + column] for k in range(side))
        got = found[row * side + column]
        if abs(want_sum) <= EXACT and got != want_sum:
            return f"product[{row},{column}]: expected {want_sum:g}, got {got:g}"
    return ""


def _floats(array: Array) -> tuple[float, ...]:
    code = CODES[array.dtype]
    return struct.unpack(f"<{math.prod(array.shape)}{code}", array.data)


def graded(
    record: TrialRecord, name: str, *, identity: Mapping[str, object], clock: float | None
) -> TrialRecord:
    """Judge a card's rate by its share of the peak at `clock` hertz; None: nobody read it.

    Below the least share without a clock nothing is proven: the card may have been held back.
    """
    scale = SCALES.get(name)
    rate = record.error
    if scale is None or rate is None or record.verdict is not Verdict.MATCH:
        return record
    peak = scale.peak or peak_flops(name.rpartition("-")[2], identity)
    if not scale.peak and clock:
        peak *= clock / CLOCK
    share = rate / peak if peak else math.inf
    slow, unread = share < scale.poor, not scale.peak and not clock
    at = f" at {clock / 1e6:.0f} MHz" if clock and not scale.peak else ""
    text = f"{rate:.3g} per second, {share:.0%} of the peak{at}"
    verdict = Verdict.MATCH
    if share > scale.possible:
        verdict, text = Verdict.MISMATCH, f"impossible speed: {text}; nothing was computed"
    elif slow and unread:
        verdict, text = Verdict.UNPROVEN, f"slow, and the clock could not be read: {text}"
    elif slow:
        verdict, text = Verdict.MISMATCH, f"too slow: {text}, at least {scale.poor:.0%}"
    elif share < scale.good:
        text = f"warn: {text}, good is {scale.good:.0%}"
    oracle = record.oracle if verdict is Verdict.MATCH else "hygiene"
    return replace(record, verdict=verdict, oracle=oracle, bound=peak, detail=text)


def plant(
    fault: str, prepared: Prepared, outputs: Mapping[str, Array], /
) -> Mapping[str, Array]:
    """Plant nothing: faults are planted in kernels' results, these are rates."""
    del fault, prepared
    return outputs


def self_check(group: str, /) -> bool:
    """Say whether a difference, and a speed no card has, are flagged."""
    name = "speed-gemm-fp64" if group.endswith("gemm") else "speed-memory"
    rate = struct.pack(DOUBLE, 1.2 * (SCALES[name].peak or 3.36e12))
    trial = Trial(
        name,
        "fwd",
        "fp64" if group.endswith("gemm") else "i32",
        "n64s1" if group.endswith("gemm") else "n256s1",
    )
    prepared = prepare(trial)
    y = _right(prepared.request)
    outputs = {"rate": Array((1,), "fp64", rate), "wrong": Array((1,), "i64", bytes(8)), "y": y}
    bent = {**outputs, "y": replace(y, data=bytes([y.data[0] ^ 1]) + y.data[1:])}
    counted = {**outputs, "wrong": Array((1,), "i64", struct.pack("<q", 1))}
    said = [judge(prepared, Computed(made, 1.0)) for made in (outputs, bent, counted)]
    record = TrialRecord(trial.key, said[0].verdict, error=said[0].error)
    card = {"arch": "gfx906", "cu": 60}
    fast = graded(record, name, identity=card, clock=CLOCK)
    verdicts = [*(item.verdict for item in said), fast.verdict]
    return verdicts == [Verdict.MATCH, *[Verdict.MISMATCH] * 3]


def _right(request: Request) -> Array:
    if request.program != "speed.gemm":
        return Array((64,), "i32", struct.pack("<64i", *range(64)))
    a, b = (_floats(array) for array in request.inputs.values())
    side = request.inputs["a"].shape[0]
    columns = [b[column::side] for column in range(side)]
    rows = [a[row * side : (row + 1) * side] for row in range(side)]
    y = [
        math.fsum(x * w for x, w in zip(row, column))  # noqa: B905 - Python 3.10
        for row in rows
        for column in columns
    ]
    return Array((side, side), "fp64", struct.pack(f"<{side * side}d", *y))
