"""Speed of slimming, beside `cp` of the same file in the same run.

    python benchmarks/slim.py FILE...

`cp` is the rival because whoever ships the file unslimmed has at least to copy it, and it
uses the kernel's own copying too. Both read a warm cache and write to the same folder.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from vega_image.codeobjects.census import census_file
from vega_image.codeobjects.slim import slim
from vega_image.process import run

ROUNDS = 5


def seconds(work: Callable[[], object], out: Path) -> float:
    """Median time of some rounds; the first, which warms the cache, does not count."""
    times: list[float] = []
    for _ in range(ROUNDS + 1):
        out.unlink(missing_ok=True)
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def measure(source: Path, folder: Path) -> None:
    """Print one line for a file."""
    out = folder / source.name
    copied = seconds(lambda: run(["cp", "--reflink=never", str(source), str(out)]), out)
    slimmed = seconds(lambda: slim(source, out, keep=["gfx906"], name=source.name), out)
    counted = seconds(lambda: census_file(source, source.name), folder / "none")
    size = source.stat().st_size
    print(
        f"{source.name}: {size / 1e6:.1f} MB -> {out.stat().st_size / 1e6:.1f} MB; "
        f"slim {slimmed:.3f} s = {size / slimmed / 1e9:.2f} GB/s of input; "
        f"cp {copied:.3f} s; ratio slim/cp {slimmed / copied:.2f}; census {counted:.3f} s"
    )


def main() -> int:
    """Measure every file named on the command line."""
    if len(sys.argv) < 2:  # noqa: PLR2004 - the program and one file
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:]:
            measure(Path(name), Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
