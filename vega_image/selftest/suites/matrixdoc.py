"""Write docs/verification-matrix.md: `python -m vega_image.selftest.suites.matrixdoc FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from vega_image.selftest.files import write_whole
from vega_image.selftest.out import show
from vega_image.selftest.suites.matrix import (
    DIRECTIONS,
    DTYPES,
    EVERY,
    SMALL,
    Place,
    cells,
    clean,
    markdown,
    shortfalls,
)
from vega_image.selftest.verdict import Verdict

SEEDS = 20
CLEAN_SEEDS = 3
HEAD = """# Detection matrix of the verification suite

Made by `python -m vega_image.selftest.suites.matrixdoc docs/verification-matrix.md`; do not
edit. Device: the processor of this machine (torch, CPU). No card was involved: what is shown
is that the oracles see these faults, not that a card is free of them.

A cell is one fault in one direction (F forward, B backward-data, W backward-weights) and
format, {seeds} seeds over {geometries} geometries, for the union of the profiles of the format.
N/A: the fault leaves every output as it was, to the bit. Structural faults count as seen only
where the verdict is wrong (exit 8); the three precision faults also where it is DEGRADED.
"""


def written(seeds: int = SEEDS) -> tuple[str, list[str]]:
    """Return the document, and where the promise is not kept."""
    text = HEAD.format(seeds=seeds, geometries=len(EVERY))
    short: list[str] = []
    for title, scale in (("Gradients as drawn", 1.0), ("Gradients times 2^-20", SMALL)):
        found = tuple(cells(seeds=seeds, scale=scale))
        short += [f"{title}: {line}" for line in shortfalls(found)]
        text += f"\n## {title}\n\n{markdown(found)}"
    runs, alarms = false_alarms()
    text += f"\n## False alarms\n\n{alarms} in {runs} clean runs.\n"
    return text, short + ([f"{alarms} false alarms"] if alarms else [])


def false_alarms(seeds: int = CLEAN_SEEDS) -> tuple[int, int]:
    """Return how many clean runs were judged, and how many were not MATCH."""
    places = [
        Place(geometry, direction, dtype, seed, scale)
        for geometry in EVERY
        for direction in DIRECTIONS
        for dtype in DTYPES
        for seed in range(seeds)
        for scale in (1.0, SMALL)
    ]
    judged = [found.verdict for place in places for _, found in clean(place)]
    return len(judged), sum(verdict is not Verdict.MATCH for verdict in judged)


def main(path: Path) -> int:
    """Write the document; 1 where the matrix falls short of its promise."""
    text, short = written()
    write_whole(path, text.encode())
    for line in short:
        show(line)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
