"""`vega-image --help`, median of 15 runs, against `docker --help` in the same run."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15


def median(argv: list[str]) -> float:
    """Median wall seconds of whole processes."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Print both medians and their ratio."""
    ours = median([str(Path(sys.executable).parent / "vega-image"), "--help"])
    print(f"vega-image --help: {ours:.3f} s (budget 0.15 s)")
    rival = shutil.which("docker")
    if rival is None:
        print("docker --help: not installed, no ratio")
        return
    theirs = median([rival, "--help"])
    print(f"docker --help: {theirs:.3f} s; ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
