"""The convolution solvers of MIOpen 3.5.1 (ROCm 7.2.4), read from the library's registry."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

TABLE = "miopen_solvers.tsv"
FIELDS = 6


@dataclass(frozen=True)
class Solver:
    """`applicable`: to at least one problem on gfx906 with 60 CUs: yes, no or unknown.

    `switch` is the variable that turns the solver off when 0; some share one. Where it ends in
    `=1` the solver is off unless so set, and nobody should: it was withdrawn upstream.
    """

    name: str
    id: int
    algo: str
    directions: str
    applicable: str
    switch: str


def parse(text: str) -> tuple[Solver, ...]:
    """Read the table; raises ValueError for one that has another form."""
    lines = [line.split("\t") for line in text.splitlines()[1:]]
    if not lines or any(len(line) != FIELDS for line in lines):
        msg = f"{TABLE}: {FIELDS} fields a line, and at least one line"
        raise ValueError(msg)
    return tuple(Solver(line[0], int(line[1]), *line[2:]) for line in lines)


def solvers() -> tuple[Solver, ...]:
    """Return every convolution solver."""
    data = files("vega_image.selftest") / "data" / TABLE
    return parse(data.read_text(encoding="utf-8"))


def candidates(direction: str, *, named: frozenset[str] | None = None) -> tuple[Solver, ...]:
    """Return those that may apply to a direction on gfx906; MIOpen has the last word.

    `named` keeps only solvers of these names.
    """
    return tuple(
        solver
        for solver in solvers()
        if direction in solver.directions
        and solver.applicable != "no"
        and not solver.switch.endswith("=1")
        and (named is None or solver.name in named)
    )
