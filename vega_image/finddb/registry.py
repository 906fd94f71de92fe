"""The solvers of MIOpen 3.5.1 (ROCm 7.2.4) as its registry names them, and what each needs.

Names, ids, families, directions and switches are read from the library (selftest's table);
the kinds of kernels beside them were read from its sources and its build configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

from vega_image.finddb.record import algorithm
from vega_image.selftest.miopen.solvers import solvers

KERNELS = "solver_kernels.tsv"
FUSION = "fusion"
# Kinds of kernels that a build without MLIR and composable kernels has not got at all.
COMPILED_OUT = frozenset({"mlir", "ck"})
ASSEMBLY = frozenset({"asm", "asm+rocblas"})
FALLBACKS = frozenset({"rocblas", "naive"})
WHY_NOT = MappingProxyType(
    {
        "mlir": "MLIR is compiled out of the library",
        "ck": "composable kernels are compiled out of the library",
        "xdlops": "it needs matrix instructions, which gfx906 has not got",
        "other-chip": "it is written for another chip",
        "fusion": "it is a part of fused operations and serves no convolution of its own",
        "ck-legacy": "it applied to no recorded problem on gfx906",
        "hip": "it applied to no recorded problem on gfx906",
    }
)


@dataclass(frozen=True, slots=True)
class Solver:
    """One entry of the registry.

    `kernels`: rocblas, naive, opencl, hip, asm, asm+rocblas, mlir, ck, ck-legacy, xdlops,
    other-chip, fusion. `applicable`: to some problem on gfx906 with 60 CU: yes, no, unknown.
    `switch`: the variable that turns it off when 0, or on when it ends in `=1`; "" for none.
    """

    name: str
    id: int
    family: str
    directions: str
    kernels: str
    applicable: str
    switch: str

    @property
    def compiled_out(self) -> bool:
        """Whether the library has only its name."""
        return self.kernels in COMPILED_OUT

    @property
    def opt_in(self) -> bool:
        """Whether it is off unless its switch is set."""
        return self.switch.endswith("=1")

    @property
    def usable(self) -> bool:
        """Whether it may serve some problem on gfx906 as MIOpen comes."""
        return self.applicable != "no" and not self.opt_in and self.kernels != FUSION

    @property
    def fallback(self) -> bool:
        """Whether it is a GEMM or naive solver: together these cover every recorded problem."""
        return self.kernels in FALLBACKS and self.applicable == "yes"

    @property
    def assembly(self) -> bool:
        """Whether it needs assembly kernels, which Debian's build has not got."""
        return self.kernels in ASSEMBLY

    @property
    def why_not(self) -> str:
        """Say why it cannot serve; empty for one that can."""
        if self.opt_in:
            return f"it is off unless {self.switch} is set"
        return "" if self.usable else WHY_NOT.get(self.kernels, "it applies to no problem")

    @property
    def serves(self) -> str:
        """Say what it can serve with, or why it cannot."""
        if self.assembly and self.usable:
            return "can serve, but not in Debian's build (no assembly kernels)"
        return self.why_not or "can serve"

    def algorithm(self, direction: str) -> str:
        """Return the algorithm MIOpen records for it in a direction."""
        return algorithm(direction, self.family)


@lru_cache(maxsize=1)
def registry() -> Mapping[str, Solver]:
    """Return every solver by name."""
    kernels = _kernels()
    known = {
        solver.name: Solver(
            solver.name,
            solver.id,
            solver.algo,
            solver.directions,
            kernels[solver.name],
            solver.applicable,
            solver.switch,
        )
        for solver in solvers()
    }
    fused = {
        name: Solver(name, 0, "", "", FUSION, "no", "")
        for name, kind in kernels.items()
        if kind == FUSION
    }
    return MappingProxyType(known | fused)


def _kernels() -> dict[str, str]:
    text = (files("vega_image.finddb") / "data" / KERNELS).read_text(encoding="utf-8")
    return dict(line.split("\t") for line in text.splitlines()[1:])
