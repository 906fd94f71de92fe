"""The solvers that serve where nothing is proven: rocBLAS GEMM and the naive kernels.

Which GEMM solver applies follows from MIOpen's src/solver/conv/gemm.cpp. On the gfx906_60
find-db these conditions give the numbers that libMIOpen 7.2.4 gave itself: F 18,740 + 3,964 +
16,600, B 18,810 + 4,010 + 17,708, W 18,792 + 21,723; the naive kernels apply to all 120,454.
"""

from __future__ import annotations

from vega_image.finddb.problem import PLANE, Problem
from vega_image.finddb.record import CURRENT, Item, algorithm
from vega_image.finddb.workspace import least

NAIVE = {
    "F": "ConvDirectNaiveConvFwd",
    "B": "ConvDirectNaiveConvBwd",
    "W": "ConvDirectNaiveConvWrw",
}
POINT = {"F": "GemmFwd1x1_0_1", "B": "GemmBwd1x1_stride1", "W": "GemmWrw1x1_stride1"}
STRIDED = {"F": "GemmFwd1x1_0_2", "B": "GemmBwd1x1_stride2"}
REST = {"F": "GemmFwdRest", "B": "GemmBwdRest", "W": "GemmWrwUniversal"}
SOLVERS = (*NAIVE.values(), *POINT.values(), *STRIDED.values(), *REST.values())
_PACKED = frozenset({"NCHW", "NCDHW"})
_TYPES = frozenset({"FP32", "FP16", "BF16"})
# Only so that a record has an order: multiply-adds a millisecond, never measured.
GEMM_RATE, NAIVE_RATE = 1e9, 1e7
LEAST_MS = 1e-3


def gemm(problem: Problem) -> str | None:
    """Return the GEMM solver that applies to a problem, None where none does."""
    if problem.layout not in _PACKED or problem.dtype not in _TYPES:
        return None
    direction = problem.direction
    point = not any(problem.pads) and set(problem.filter) == {1}
    if point and set(problem.strides) == {1}:
        return POINT[direction]
    strided = point and problem.dims == PLANE and set(problem.strides) == {2}
    if strided and direction in STRIDED:
        return STRIDED[direction]
    return REST[direction]


def fallback_items(problem: Problem, recorded: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the fallback of a problem, as recorded where it is, the others behind those."""
    known = {item.solver: item for item in recorded if item.time > 0}
    names = [name for name in (gemm(problem), NAIVE[problem.direction]) if name is not None]
    items = [_enough(known[name], problem) for name in names if name in known]
    items.sort(key=lambda item: item.time)
    slowest = items[-1].time if items else 0.0
    for name in names:
        if name not in known:
            items.append(_nominal(name, problem, later_than=slowest))
            slowest = items[-1].time
    return tuple(items)


def _enough(item: Item, problem: Problem) -> Item:
    """Return a recorded item with the workspace it needs and its own algorithm."""
    need = max(item.workspace, least(item.solver, problem))
    right = algorithm(problem.direction, _family(item.solver))
    if item.workspace == need and item.algorithm == right:
        return item
    # The time keeps the digits it was read with.
    text = f"{item.written(CURRENT).partition(',')[0]},{need},{right}"
    return Item(solver=item.solver, time=item.time, workspace=need, algorithm=right, text=text)


def _family(name: str) -> str:
    return "Direct" if name in NAIVE.values() else "GEMM"


def _nominal(name: str, problem: Problem, *, later_than: float) -> Item:
    naive = name in NAIVE.values()
    time = max(problem.macs / (NAIVE_RATE if naive else GEMM_RATE), LEAST_MS, 2 * later_than)
    return Item(
        solver=name,
        time=time,
        workspace=least(name, problem),
        algorithm=algorithm(problem.direction, _family(name)),
    )
