"""Wall time and peak memory of `selftest` on two processors, against its budgets.

    python benchmarks/selftest.py [r1] [r2] [golden]

Each is a whole process, the import of torch included. Memory is the sum over the process and
all its children, sampled; pages that forked children share count in each. Exits 1 over budget.
Where the seconds of processors are few beside the wall time, other work was measured too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.1
MEMORY_BUDGET = 4 << 30
PROCESSORS = 2
GB = 1e9
PAGE = resource.getpagesize()


@dataclass(frozen=True)
class Budget:
    """Words after `selftest` that must end with exit code 0 in this many seconds."""

    words: tuple[str, ...]
    seconds: float


BUDGETS = {
    "r1": Budget(("run", "--device", "cpu", "--level", "r1"), 15.0),
    "r2": Budget(("run", "--device", "cpu", "--level", "r2"), 120.0),
    "golden": Budget(("golden",), 360.0),
}


@dataclass
class Peak:
    """The most memory that a process and its descendants held together, in bytes."""

    pid: int
    held: int = 0

    def watch(self, ended: threading.Event) -> None:
        """Sample until the process ended."""
        while not ended.wait(SAMPLE_SECONDS):
            self.held = max(self.held, sum(resident(pid) for pid in family(self.pid)))


def family(pid: int) -> Iterator[int]:
    """Yield a process and all that descend from it."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))
    except OSError:
        return


def resident(pid: int) -> int:
    """Return the bytes of memory a process has; 0 for one that is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0


def measured(budget: Budget) -> tuple[int, float, float, int]:
    """Return exit code, seconds, seconds of processors and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        report = ("--report", folder) if budget.words[0] == "run" else ()
        argv = [sys.executable, "-m", "vega_image.selftest", *budget.words, *report]
        began, spent = time.perf_counter(), processor_seconds()
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peak, ended = Peak(process.pid), threading.Event()
        watcher = threading.Thread(target=peak.watch, args=(ended,))
        watcher.start()
        code = process.wait()
        wall = time.perf_counter() - began
        ended.set()
        watcher.join()
    return code, wall, processor_seconds() - spent, peak.held


def processor_seconds() -> float:
    """Return what all children that ended have used so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(names: list[str]) -> int:
    """Print each figure beside its budget; return 1 if one is over it."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    print(f"load average at the start: {os.getloadavg()[0]:.1f} on {PROCESSORS} processors")
    within = True
    for name in names or list(BUDGETS):
        budget = BUDGETS[name]
        code, wall, spent, held = measured(budget)
        good = code == 0 and wall <= budget.seconds and held <= MEMORY_BUDGET
        within = within and good
        print(
            f"selftest {name}: {wall:.1f} s (budget {budget.seconds:.0f} s) "
            f"for {spent:.1f} s of processors, "
            f"{held / GB:.2f} GB (budget {MEMORY_BUDGET / GB:.2f} GB), exit {code}"
            + ("" if good else "  OVER BUDGET")
        )
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
