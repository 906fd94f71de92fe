"""What the rounding bound costs, as a multiple of the bare fp64 reference (budget 2.5).

Processor time of one thread, so that the ratio is the same beside other work: on a loaded
machine two threads that wait for each other cost several times what they compute.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial

# Read once, when the matrix library is loaded below.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from vega_image.selftest.case import Trial
from vega_image.selftest.seam import Computed
from vega_image.selftest.suites.conv.oracle import ConvOracle
from vega_image.selftest.suites.registry import judge, prepare

BUDGET = 2.5
REPEATS = 5
TRIALS = [("conv0000", way) for way in "FBW"] + [("conv0075", way) for way in "FBW"]


def bare_seconds(oracle: ConvOracle) -> float:
    """Time the reference alone."""
    return min(seconds(lambda: oracle.compute("a", "b")) for _ in range(REPEATS))


def judged_seconds(trial: Trial) -> float:
    """Time a whole judgement, reference included, each on an oracle that knows nothing yet."""
    right = prepare(trial).oracle.reference()
    fresh = [prepare(trial) for _ in range(REPEATS)]
    return min(seconds(partial(judge, one, Computed(right, 1.0))) for one in fresh)


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> int:
    """Print the ratio over some stems in all directions; return 1 if it is over budget."""
    bare = bounded = 0.0
    for case, direction in TRIALS:
        trial = Trial(case, direction, "fp32", "real")
        oracle = prepare(trial).oracle
        assert isinstance(oracle, ConvOracle)
        bare += bare_seconds(oracle)
        bounded += judged_seconds(trial)
    ratio = bounded / bare
    over = "  OVER BUDGET" if ratio > BUDGET else ""
    print(f"bound over bare fp64 reference: {ratio:.2f} (budget {BUDGET}){over}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
