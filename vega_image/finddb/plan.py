"""In which order to prove solvers on a card, and how long it will take.

First what the historic wrong gradient was: weight gradients of 3-channel input. Then the
layers of networks in use, then everything by cost. A record that no solver of the library
can serve gets the fallback that covers it, whose time follows from others of its kind.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vega_image.finddb.explain import serves
from vega_image.finddb.networks import geometry, network_geometries
from vega_image.finddb.problem import Problem
from vega_image.finddb.record import Record
from vega_image.finddb.registry import registry

RUNS = 4
OVERHEAD_SECONDS = 0.05
RGB_WEIGHTS, NETWORK, REST = 0, 1, 2
REASONS = ("C=3 weight gradient", "layer of a network", "by cost")
NAIVE = {
    "F": "ConvDirectNaiveConvFwd",
    "B": "ConvDirectNaiveConvBwd",
    "W": "ConvDirectNaiveConvWrw",
}
GEMM = {
    "F": ("GemmFwd1x1_0_1", "GemmFwd1x1_0_2", "GemmFwdRest"),
    "B": ("GemmBwd1x1_stride1", "GemmBwd1x1_stride2", "GemmBwdRest"),
    "W": ("GemmWrw1x1_stride1", "GemmWrwUniversal", "GemmWrwUniversal"),
}
UNKNOWN_RATE = 1e8  # multiply-adds in a ms: the slowest that naive kernels were recorded at


@dataclass(frozen=True, slots=True)
class Trial:
    """One solver to prove on one problem; `ms` is one run, measured where `recorded`."""

    key: str
    solver: str
    group: int
    macs: int
    ms: float
    recorded: bool

    @property
    def seconds(self) -> float:
        """Return what it takes: runs of integers, of reals twice, and again; setting up."""
        return RUNS * self.ms / 1000 + OVERHEAD_SECONDS

    @property
    def reason(self) -> str:
        """Say why it stands where it does."""
        return REASONS[self.group]


def plan(records: Iterable[Record]) -> list[Trial]:
    """Return every trial in the order of proving."""
    everything = list(records)
    rates = _rates(everything)
    trials = [trial for record in everything for trial in _trials(record, rates)]
    return sorted(trials, key=lambda one: (one.group, one.macs, one.key, one.ms))


def within(trials: Iterable[Trial], seconds: float) -> Iterator[Trial]:
    """Yield trials from the first on, until the next does not fit any more."""
    spent = 0.0
    for trial in trials:
        spent += trial.seconds
        if spent > seconds:
            return
        yield trial


def fallback(problem: Problem) -> str:
    """Return the GEMM solver that covers a problem, or the naive one where none does.

    GEMM serves all default layouts but INT8; which of the three follows from the window.
    """
    if problem.layout not in {"NCHW", "NCDHW"} or problem.dtype.startswith("INT"):
        return NAIVE[problem.direction]
    point, double, rest = GEMM[problem.direction]
    if set(problem.filter) != {1} or set(problem.pads) != {0}:
        return rest
    if set(problem.strides) == {1}:
        return point
    return double if set(problem.strides) == {2} and problem.dims == 2 else rest  # noqa: PLR2004


def _rates(records: list[Record]) -> dict[tuple[str, str], float]:
    """Return multiply-adds in a ms, by solver and data type, of the fallbacks recorded."""
    seen: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for record in records:
        for item in record.items:
            solver = registry().get(item.solver)
            if solver and solver.fallback and item.time > 0:
                problem = record.problem
                seen[item.solver, problem.dtype].append(problem.macs / item.time)
    return {kind: statistics.median(rates) for kind, rates in seen.items()}


def _trials(record: Record, rates: dict[tuple[str, str], float]) -> Iterator[Trial]:
    problem = record.problem
    group, macs = _group(problem), problem.macs
    served = [item for item in record.items if serves(item.solver, problem.direction)]
    for item in served:
        yield Trial(record.key, item.solver, group, macs, item.time, recorded=True)
    if not served:
        name = fallback(problem)
        ms = macs / rates.get((name, problem.dtype), UNKNOWN_RATE)
        yield Trial(record.key, name, group, macs, ms, recorded=False)


def _group(problem: Problem) -> int:
    if problem.first_layer_rgb and problem.direction == "W":
        return RGB_WEIGHTS
    return NETWORK if geometry(problem) in network_geometries() else REST
