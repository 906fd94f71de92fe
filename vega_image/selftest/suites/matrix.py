"""The detection matrix: every fault, direction and format against the union of the oracles.

Each run plants one fault in what the processor computed, for operands of a seed of its own,
in every profile that the suite has for the format, and asks whether any of them is flagged. A
run that leaves every output as it was, to the bit, has nothing to be found: not applicable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vega_image.selftest.case import Trial
from vega_image.selftest.devices import programs
from vega_image.selftest.devices.tensors import to_array, to_tensor
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array, Computed
from vega_image.selftest.suites.arrays import encode
from vega_image.selftest.suites.backend import load_torch
from vega_image.selftest.suites.conv.geometry import DATA, FORWARD, WEIGHTS, Geometry
from vega_image.selftest.suites.conv.inputs import operands
from vega_image.selftest.suites.conv.oracle import ConvOracle
from vega_image.selftest.suites.conv.prepare import NAMES, prepare_oracle
from vega_image.selftest.suites.judge import judge
from vega_image.selftest.suites.plant import FAULTS, PRECISION, plant
from vega_image.selftest.suites.prepared import Prepared
from vega_image.selftest.tables import find_case
from vega_image.selftest.verdict import WRONG, Verdict

DIRECTIONS = (FORWARD, DATA, WEIGHTS)
DTYPES = ("fp32", "fp16", "bf16")
PROFILES: Mapping[str, tuple[str, ...]] = {
    "fp32": ("int", "wide-a", "wide-b", "real"),
    "fp16": ("int", "acc", "wide-a", "wide-b", "real"),
    "bf16": ("int", "acc", "real"),
}
SMALL = 2.0**-20
"""About 1e-6, and exact: what whole numbers are times this is still right to the bit."""
STEMS = (
    Geometry(2, 3, 32, 32, 16, 7, 7, (2, 2), (3, 3)),
    Geometry(2, 3, 17, 31, 8, 3, 3, (1, 1), (1, 1)),
    Geometry(1, 3, 33, 29, 12, 5, 5, (2, 2), (2, 2)),
)
GROUPED = (
    Geometry(2, 16, 12, 13, 24, 3, 3, (1, 1), (1, 1), (1, 1), 4),
    Geometry(2, 8, 14, 14, 8, 3, 3, (2, 2), (1, 1), (1, 1), 8),
)
DILATED = (
    Geometry(2, 8, 16, 16, 8, 3, 3, (1, 1), (2, 2), (2, 2)),
    Geometry(1, 3, 24, 24, 8, 3, 3, (1, 1), (3, 3), (3, 3)),
)
OTHERS = (
    Geometry(2, 16, 13, 11, 16, 3, 3, (1, 1), (1, 1)),
    Geometry(2, 8, 9, 15, 6, 4, 4, (2, 1), (1, 2)),
)
EVERY = (*STEMS, *GROUPED, *DILATED, *OTHERS)
ONLY: Mapping[str, tuple[Geometry, ...]] = {
    "wrong-c3-wgrad": STEMS,
    "groups-mixed": GROUPED,
    "dilation-ignored": DILATED,
}


@dataclass(frozen=True)
class Place:
    """Where a fault is looked for: geometry, direction, format, seed, size of gradients."""

    geometry: Geometry
    direction: str
    dtype: str
    seed: int
    scale: float = 1.0


@dataclass(frozen=True)
class Run:
    """One fault, one geometry, one seed: seen, missed, or nothing to see."""

    fault: str
    place: Place
    applicable: bool
    seen: bool


@dataclass(frozen=True)
class Cell:
    """All runs of one fault in one direction and format."""

    fault: str
    direction: str
    dtype: str
    runs: tuple[Run, ...]

    @property
    def applicable(self) -> int:
        """Runs in which the fault changed something."""
        return sum(run.applicable for run in self.runs)

    @property
    def seen(self) -> int:
        """Runs in which an oracle flagged it."""
        return sum(run.seen for run in self.runs)

    def __str__(self) -> str:
        if not self.applicable:
            return "N/A"
        return f"{100 * self.seen / self.applicable:.0f} % of {self.applicable}"


def ready(place: Place, profile: str) -> Prepared:
    """Make a convolution ready, its gradient operand times the place's scale."""
    geometry, direction, dtype = place.geometry, place.direction, place.dtype
    name = f"matrix {geometry}:{dtype}:{direction}:{profile}:{place.seed}"
    drawn = operands(geometry, direction, dtype, profile=profile, name=name)
    slope = {DATA: 0, WEIGHTS: 1}.get(direction)
    scaled = [x * place.scale if i % 2 == slope else x for i, x in enumerate(drawn)]
    arrays = {key: encode(x, dtype) for key, x in zip(NAMES, scaled, strict=False)}
    oracle = ConvOracle(geometry, direction, dtype, profile, arrays)
    trial = Trial("conv0000", direction, dtype, profile, place.seed)
    return prepare_oracle(find_case(trial.case), trial, oracle, layout="NCHW")


def computed(prepared: Prepared) -> Mapping[str, Array]:
    """Return what the processor makes of a request."""
    torch = load_torch()
    request = prepared.request
    tensors = {name: to_tensor(torch, array) for name, array in request.inputs.items()}
    found = programs.run(torch, request.program, tensors, request.attributes)
    return {name: to_array(torch, found[name]) for name in request.wanted}


def clean(place: Place) -> Iterator[tuple[str, Judgement]]:
    """Judge what the processor computes, untouched, in every profile."""
    for profile in PROFILES[place.dtype]:
        prepared = ready(place, profile)
        yield profile, judge(prepared, Computed(computed(prepared), 1.0))


def run(fault: str, place: Place) -> Run:
    """Plant a fault in every profile until one is flagged."""
    applicable = seen = False
    for profile in PROFILES[place.dtype]:
        prepared = ready(place, profile)
        right = computed(prepared)
        spoiled = plant(fault, prepared, right, seed=place.seed)
        if spoiled == right:
            continue
        applicable = True
        verdict = judge(prepared, Computed(spoiled, 1.0)).verdict
        # A short accumulator may be excused as DEGRADED; a wrong kernel never.
        seen = verdict in WRONG or (fault in PRECISION and verdict is Verdict.DEGRADED)
        if seen:
            break
    return Run(fault, place, applicable, seen)


def cell(fault: str, direction: str, dtype: str, *, seeds: int, scale: float = 1.0) -> Cell:
    """Run a cell over seeds, each with the next of the geometries that can have the fault."""
    geometries = ONLY.get(fault, EVERY)
    places = (
        Place(geometries[seed % len(geometries)], direction, dtype, seed, scale)
        for seed in range(seeds)
    )
    runs = tuple(run(fault, place) for place in places)
    return Cell(fault, direction, dtype, runs)


def cells(*, seeds: int, scale: float = 1.0) -> Iterator[Cell]:
    """Run the whole matrix."""
    for fault in FAULTS:
        for dtype in DTYPES:
            for direction in DIRECTIONS:
                yield cell(fault, direction, dtype, seeds=seeds, scale=scale)


def shortfalls(found: tuple[Cell, ...]) -> list[str]:
    """Say where the matrix is below its promise: 100 % structural, 99 % of precision rows."""
    structural = [
        f"{one.fault} {one.direction} {one.dtype}: {one}"
        for one in found
        if one.fault not in PRECISION and one.seen < one.applicable
    ]
    pooled = []
    for fault in PRECISION:
        row = [one for one in found if one.fault == fault]
        seen, all_runs = sum(c.seen for c in row), sum(c.applicable for c in row)
        if seen < 0.99 * all_runs:
            pooled.append(f"{fault}: {seen} of {all_runs}")
    return structural + pooled


def markdown(found: tuple[Cell, ...]) -> str:
    """Return the matrix as a table: a row per fault, a column per format and direction."""
    columns = [(dtype, direction) for dtype in DTYPES for direction in DIRECTIONS]
    table = {(one.fault, one.dtype, one.direction): str(one) for one in found}
    head = "| fault | " + " | ".join(f"{d} {w}" for d, w in columns) + " |"
    lines = [head, "|" + "---|" * (len(columns) + 1)]
    for fault in FAULTS:
        row = " | ".join(table[fault, dtype, direction] for dtype, direction in columns)
        lines.append(f"| {fault} | {row} |")
    return "\n".join(lines) + "\n"
