"""Speed of reading and linting a find-db, beside a straightforward parser in the same run.

    python benchmarks/finddb.py FILE

The rival splits every line at '=', ';', ':' and ',' and turns the numbers into numbers. It
checks nothing. Both read a warm cache; times are medians, memory is the process's peak.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from vega_image.finddb.lint import lint
from vega_image.finddb.opening import open_db

ROUNDS = 5
QUERIES = 1000
Plain = dict[str, list[tuple[str, float, int, str]]]


def plain(path: Path) -> Plain:
    """Parse as one would at first."""
    found: Plain = {}
    for line in path.read_text().splitlines():
        key, value = line.split("=")
        items = []
        for item in value.split(";"):
            head, rest = item.split(":")
            fields = rest.split(",")
            if head.startswith("miopen"):
                items.append((fields[0], float(fields[1]), int(fields[2]), head))
            else:
                items.append((head, float(fields[0]), int(fields[1]), fields[2]))
        found[key] = items
    return found


def seconds(work: Callable[[], object]) -> float:
    """Median time of some rounds; the first, which warms the cache, does not count."""
    times: list[float] = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> int:
    """Measure the file named on the command line."""
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and one file
        print(__doc__)
        return 2
    path = Path(sys.argv[1])
    both = seconds(lambda: lint(open_db(path)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    loaded = seconds(lambda: len(open_db(path)))
    rival = seconds(lambda: plain(path))
    db = open_db(path)
    keys = [key.decode() for key in list(db.index)[:: max(1, len(db) // QUERIES)]]
    start = time.perf_counter()
    for key in keys:
        _ = db[key]
    each = (time.perf_counter() - start) / len(keys)
    print(
        f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {len(db)} records; "
        f"load {loaded:.3f} s; load + lint {both:.3f} s, peak {peak:.0f} MB; "
        f"split() {rival:.3f} s; ratio lint/split {both / rival:.2f}; "
        f"query by key {each * 1e6:.0f} us"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
