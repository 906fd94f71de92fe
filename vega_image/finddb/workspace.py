"""The workspace a solver needs, where it follows from the problem alone.

The formulas are those of MIOpen's src/solver/conv/gemm.cpp. They give the recorded number of
every one of the 23,984 items that the gfx906_60 find-db has of these solvers.
"""

from __future__ import annotations

from math import prod

from vega_image.finddb.problem import BYTES, Problem

COLUMNS = frozenset({"GemmFwdRest", "GemmBwdRest", "GemmWrwUniversal"})
TRANSPOSED = frozenset({"GemmFwd1x1_0_2", "GemmBwd1x1_stride2"})
# Transforms of the whole problem stand there: no recorded one is 0.
NEVER_ZERO = "ConvWinograd3x3MultipassWrW<"


def knowable(solver: str) -> bool:
    """Whether `least` can say more than 0 for a solver."""
    return solver in COLUMNS or solver in TRANSPOSED or solver.startswith(NEVER_ZERO)


def least(solver: str, problem: Problem) -> int:
    """Return the bytes that a solver needs at least for a problem; 0 where nothing is known.

    >>> from vega_image.finddb.problem import parse_key
    >>> conv1 = parse_key("64-112-112-7x7-3-224-224-32-3x3-2x2-1x1-0-NCHW-FP32-W")
    >>> least("GemmWrwUniversal", conv1)
    7375872
    """
    size = BYTES.get(problem.x_dtype, 1)
    places = prod(problem.y_size)
    if solver in COLUMNS:
        return problem.x_channels * prod(problem.filter) * places * size
    if solver in TRANSPOSED:
        return problem.batch * (problem.x_channels + problem.y_channels) * places * size
    return 1 if solver.startswith(NEVER_ZERO) else 0
