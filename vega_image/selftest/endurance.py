"""The long part of levels r3 and r4: soak and memory patterns, as a suite like any other.

Standard library only: what the device says is checked against integers computed here.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.levels import Level
from vega_image.selftest.seam import Array, Computed, Failed, Outcome, Request
from vega_image.selftest.verdict import Verdict

NAME = "vega_image.selftest.endurance"
FAULTS: tuple[str, ...] = ()
PATTERNS = ("zeros", "ones", "checker", "walking-one", "walking-zero", "address", "mixed",
            "modulo-20")  # fmt: skip
SOAK_SLICE = 10.0
BLOCK_BYTES = 256 << 20
SPLITMIX = 0x9E3779B1
WORD = 0xFFFFFFFF
SPREAD = 7
CHANNELS, SIDE, FILTERS = 3, 32, 8
SAMPLES = 48


@dataclass(frozen=True)
class Size:
    """How big: the side of the product, seconds in all, bytes of memory, passes, fade."""

    side: int
    soak: float
    memory: int
    passes: int
    fade: float


@dataclass(frozen=True)
class Prepared:
    """A trial of endurance made ready."""

    request: Request
    flops: float = 0.0


def size_of(level: Level, *, source: str, memory: int, soak: float | None) -> Size:
    """Take the level's own size for a card; a rehearsal elsewhere is short and small.

    `memory` is the card's in bytes, 0 if nobody knows. `soak` overrides the seconds.
    """
    if source == "device":
        wanted = level.soak if soak is None else soak
        return Size(4096, wanted, int(memory * level.share), level.passes, level.fade)
    passes = min(level.passes, 1)
    rehearsal = min(level.soak, 2.0) if soak is None else soak
    return Size(256, rehearsal, 16 << 20 if passes else 0, passes, min(level.fade, 1.0))


def cases_of(size: Size) -> tuple[tuple[Case, Trial], ...]:
    """List the trials, in order: memory first, since the soak rests on it."""
    items: list[tuple[Case, Trial]] = []
    if size.memory and size.passes:
        for name in PATTERNS:
            items += [
                _memory(name, size.memory, hold=0.0, rep=rep) for rep in range(size.passes)
            ]
        if size.fade:
            items.append(_memory("checker", size.memory, hold=size.fade, rep=size.passes))
    rounds = -(-size.soak // SOAK_SLICE)
    items += [_soak(size.side, size.soak / rounds, rep) for rep in range(int(rounds))]
    return tuple(items)


def _memory(name: str, size: int, *, hold: float, rep: int) -> tuple[Case, Trial]:
    why = "no error counter of this card can be trusted to exist; this is the only evidence"
    case = _case(f"memory-{name}", "memory", "every word reads back as written", why)
    return case, Trial(case.id, "fwd", "i32", f"b{size}h{hold:g}", rep)


def _soak(side: int, seconds: float, rep: int) -> tuple[Case, Trial]:
    why = "rare errors show only when the same exact work is repeated hot"
    case = _case("soak", "soak", "every repeat equals the first, which equals integers", why)
    return case, Trial(case.id, "fwd", "fp32", f"n{side}s{seconds:g}", rep)


def _case(name: str, family: str, bound: str, why: str) -> Case:
    return Case(
        id=name,
        kind="endurance",
        name=name,
        family=family,
        tier="r3",
        dtypes=("i32",) if family == "memory" else ("fp32",),
        directions=("fwd",),
        source="levels of the suite: soak and memory patterns",
        oracle="integer",
        bound=bound,
        why=why,
    )


def trials(cases: Sequence[Case], level: str, /) -> Iterator[Trial]:
    """Yield nothing: these trials depend on the device's size and come from `cases_of`."""
    del cases, level
    yield from ()


def prepare(trial: Trial, /) -> Prepared:
    """Make the request of a trial. Raises ValueError for a profile that is none."""
    if trial.case == "soak":
        return _prepare_soak(trial)
    found = re.fullmatch(r"b([0-9]+)h([0-9.]+)", trial.profile)
    if found is None:
        raise ValueError(trial.profile)
    attributes = {
        "pattern": trial.case.removeprefix("memory-"),
        "bytes": int(found.group(1)),
        "hold": float(found.group(2)),
        "block": BLOCK_BYTES,
        "seed": trial.rep + 1,
    }
    seed = Array((1,), "i32", struct.pack("<i", trial.rep + 1))
    wanted = ("wrong", "sample", "checked")
    return Prepared(
        Request(trial.key, "endurance.memory", {"seed": seed}, attributes, "i32", wanted)
    )


def _prepare_soak(trial: Trial) -> Prepared:
    found = re.fullmatch(r"n([0-9]+)s([0-9.]+)", trial.profile)
    if found is None:
        raise ValueError(trial.profile)
    side, seconds = int(found.group(1)), float(found.group(2))
    inputs = {
        "a": _matrix("a", (side, side), side),
        "b": _matrix("b", (side, side), side),
        "x": _matrix("x", (1, CHANNELS, SIDE, SIDE), SIDE),
        "w": _matrix("w", (FILTERS, CHANNELS, 3, 3), 3),
    }
    wanted = ("y", "layer", "wrong", "rounds")
    made = Request(trial.key, "endurance.soak", inputs, {"seconds": seconds}, "fp32", wanted)
    return Prepared(replace(made, measured=("rounds",)))


def _matrix(name: str, shape: tuple[int, ...], width: int) -> Array:
    """Small integers: rows are windows into one random row, so that big ones are made fast."""
    rows = 1
    for length in shape[:-1]:
        rows *= length
    base = _small(name, width)
    twice = struct.pack(f"<{2 * width}f", *base, *base)
    offsets = ((row * SPREAD) % width for row in range(rows))
    data = b"".join(twice[4 * at : 4 * (at + width)] for at in offsets)
    return Array(shape, "fp32", data)


def matrix(name: str, width: int, *, code: str, most: int) -> bytes:
    """Return a square of small integers in a `struct` format, none larger than `most`."""
    base = [max(-most, min(most, value)) for value in _small(name, width)]
    twice = struct.pack(f"<{2 * width}{code}", *base, *base)
    size = struct.calcsize(code)
    offsets = ((row * SPREAD) % width for row in range(width))
    return b"".join(twice[size * at : size * (at + width)] for at in offsets)


def _small(name: str, count: int) -> list[int]:
    stream = b"".join(
        hashlib.sha256(f"{name}:{number}".encode()).digest()
        for number in range(count // 32 + 1)
    )
    return [byte % 9 - 4 for byte in stream[:count]]


def judge(prepared: Prepared, outcome: Outcome, /) -> Judgement:
    """Compare what came back with integers."""
    if isinstance(outcome, Failed):
        return Judgement(Verdict(outcome.verdict), None, None, "integer", outcome.message)
    wrong = sum(abs(value) for value in _ints(outcome.outputs["wrong"]))
    if wrong:
        text = f"{wrong} differences counted on the device itself"
        return Judgement(Verdict.MISMATCH, float(wrong), 0.0, "integer", text)
    soak = prepared.request.program == "endurance.soak"
    fault = _soak_fault(prepared, outcome) if soak else _memory_fault(prepared, outcome)
    if fault:
        return Judgement(Verdict.MISMATCH, None, 0.0, "integer", fault)
    name = "rounds" if soak else "checked"
    text = f"{name} {_ints(outcome.outputs[name])[0]}"
    return Judgement(Verdict.MATCH, 0.0, 0.0, "integer", text)


def _soak_fault(prepared: Prepared, outcome: Computed) -> str:
    inputs = prepared.request.inputs
    side = inputs["a"].shape[0]
    a, b, y = (_floats(array) for array in (inputs["a"], inputs["b"], outcome.outputs["y"]))
    for number in range(SAMPLES):
        row, column = number * 37 % side, number * 101 % side
        want = sum(a[row * side + k] * b[k * side + column] for k in range(side))
        if y[row * side + column] != want:
            return f"product[{row},{column}]: expected {want:g}, got {y[row * side + column]:g}"
    return _layer_fault(inputs, _floats(outcome.outputs["layer"]))


def _layer_fault(inputs: Mapping[str, Array], layer: tuple[float, ...]) -> str:
    x, w = _floats(inputs["x"]), _floats(inputs["w"])
    for number in range(SAMPLES):
        k, i, j = number % FILTERS, number * 7 % SIDE, number * 13 % SIDE
        want = sum(
            x[(c * SIDE + i + r - 1) * SIDE + j + s - 1]
            * w[((k * CHANNELS + c) * 3 + r) * 3 + s]
            for c in range(CHANNELS)
            for r in range(3)
            for s in range(3)
            if 0 <= i + r - 1 < SIDE and 0 <= j + s - 1 < SIDE
        )
        got = layer[(k * SIDE + i) * SIDE + j]
        if got != want:
            return f"layer[{k},{i},{j}]: expected {want:g}, got {got:g}"
    return ""


def _memory_fault(prepared: Prepared, outcome: Computed) -> str:
    attributes = prepared.request.attributes
    total, seed = int(str(attributes["bytes"])), int(str(attributes["seed"]))
    words = min(total, BLOCK_BYTES) // 4
    count = max(1, total // (words * 4))
    if _ints(outcome.outputs["checked"]) != (count * words,):
        return f"{_ints(outcome.outputs['checked'])} words checked, not {count * words}"
    step = max(1, words // 16)
    addresses = [
        block * words + at * step for block in range(min(count, 4)) for at in range(16)
    ]
    got = [value & WORD for value in _ints(outcome.outputs["sample"])]
    want = [word_of(str(attributes["pattern"]), address, seed) for address in addresses]
    for address, expected, found in zip(addresses, want, got):  # noqa: B905 - Python 3.10
        if expected != found:
            return f"word {address:#x}: expected {expected:#010x}, got {found:#010x}"
    return "" if len(got) == len(want) else f"{len(got)} samples, not {len(want)}"


def word_of(pattern: str, address: int, seed: int) -> int:
    """Return the 32-bit word a pattern puts at a word address. Raises KeyError for none.

    >>> hex(word_of("checker", 1, 0)), hex(word_of("walking-zero", 33, 0))
    ('0xaaaaaaaa', '0xfffffffd')
    """
    bit = 1 << address % 32
    table = {
        "zeros": 0,
        "ones": WORD,
        "checker": 0xAAAAAAAA if address % 2 else 0x55555555,
        "walking-one": bit,
        "walking-zero": WORD ^ bit,
        "address": address,
        "mixed": (address + seed) * SPLITMIX ^ (address >> 7),
        "modulo-20": WORD if address % 20 == seed % 20 else 0,
    }
    return table[pattern] & WORD


def plant(
    fault: str, prepared: Prepared, outputs: Mapping[str, Array], /
) -> Mapping[str, Array]:
    """Plant nothing: faults are planted in kernels' results, these are counts."""
    del fault, prepared
    return outputs


def self_check(group: str, /) -> bool:
    """Say whether a count of one, and a wrong sample, are flagged."""
    soak = group.endswith("soak")
    item = _soak(64, 1.0, 0) if soak else _memory("address", 1 << 12, hold=0.0, rep=0)
    prepared = prepare(item[1])
    right = _right_soak(prepared) if soak else _right_memory()
    counted = {**right, "wrong": Array((1,), "i64", struct.pack("<q", 1))}
    name = "y" if soak else "sample"
    bent = right[name].data[:-1] + bytes([right[name].data[-1] ^ 0x40])
    first = bytes([right[name].data[0] ^ 1, *bent[1:]])
    sampled = {**right, name: Array(right[name].shape, right[name].dtype, first)}
    said = [judge(prepared, Computed(outputs, 1.0)).verdict for outputs in
            (right, counted, sampled)]  # fmt: skip
    return said == [Verdict.MATCH, Verdict.MISMATCH, Verdict.MISMATCH]


def _right_memory() -> dict[str, Array]:
    words = [word_of("address", at * 64, 1) for at in range(16)]
    return {
        "wrong": Array((1,), "i64", struct.pack("<q", 0)),
        "sample": Array((1, 16), "i32", struct.pack("<16I", *words)),
        "checked": Array((1,), "i64", struct.pack("<q", 1 << 10)),
    }


def _right_soak(prepared: Prepared) -> dict[str, Array]:
    inputs = prepared.request.inputs
    a, b, x, w = (_floats(inputs[name]) for name in ("a", "b", "x", "w"))
    side = inputs["a"].shape[0]
    span = range(side)
    y = [sum(a[i * side + k] * b[k * side + j] for k in span) for i in span for j in span]
    layer = [
        sum(
            x[(c * SIDE + i + r - 1) * SIDE + j + s - 1]
            * w[((k * CHANNELS + c) * 3 + r) * 3 + s]
            for c in range(CHANNELS)
            for r in range(3)
            for s in range(3)
            if 0 <= i + r - 1 < SIDE and 0 <= j + s - 1 < SIDE
        )
        for k in range(FILTERS)
        for i in range(SIDE)
        for j in range(SIDE)
    ]
    return {
        "y": Array((side, side), "fp32", struct.pack(f"<{len(y)}f", *y)),
        "layer": Array((FILTERS, SIDE, SIDE), "fp32", struct.pack(f"<{len(layer)}f", *layer)),
        "wrong": Array((2,), "i64", struct.pack("<2q", 0, 0)),
        "rounds": Array((1,), "i64", struct.pack("<q", 1)),
    }


def _floats(array: Array) -> tuple[float, ...]:
    return struct.unpack(f"<{len(array.data) // 4}f", array.data)


def _ints(array: Array) -> tuple[int, ...]:
    code, width = ("q", 8) if array.dtype == "i64" else ("i", 4)
    return struct.unpack(f"<{len(array.data) // width}{code}", array.data)
