"""Judge an operation's outputs: to the bit, or under the bound of its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array
from vega_image.selftest.suites import degraded
from vega_image.selftest.suites.arrays import HALVES, decode, digest, encode
from vega_image.selftest.suites.compare import Compared, exactly, within
from vega_image.selftest.suites.conv.oracle import judged, text
from vega_image.selftest.suites.golden_table import golden
from vega_image.selftest.suites.ops.op import Bilinear, Exact
from vega_image.selftest.suites.ops.reference import OpReference
from vega_image.selftest.verdict import Verdict

GUARD = "guard/"


@dataclass(frozen=True)
class OpOracle:
    """`main` answers the trial; `guard`, where there is one, must be right to the bit.

    `stem` is what the golden hash goes by, where one was written.
    """

    main: OpReference
    integers: bool
    names: tuple[str, ...]
    formats: tuple[str, ...]
    guard: OpReference | None = None
    stem: str = ""

    @property
    def exact(self) -> bool:
        """Whether the one right answer is asked for."""
        return self.integers or isinstance(self.main.bound, Exact)

    @property
    def kind(self) -> str:
        """Integer or real."""
        return "integer" if self.exact else "real"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The outputs the device must return."""
        return self.names + (() if self.guard is None else self._guards)

    @property
    def _guards(self) -> tuple[str, ...]:
        return tuple(GUARD + name for name in self.names)

    @property
    def expects(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """Shape and format of each output."""
        shapes = [
            (tuple(y.shape), f) for y, f in zip(self.main.values, self.formats, strict=False)
        ]
        found = dict(zip(self.names, shapes, strict=False))
        return (
            found
            if self.guard is None
            else {**found, **dict(zip(self._guards, shapes, strict=False))}
        )

    def reference(self) -> Mapping[str, Array]:
        """Return the fp64 results, rounded once."""
        found = dict(zip(self.names, self.main.values, strict=False))
        if self.guard is not None:
            found.update(zip(self._guards, self.guard.values, strict=False))
        formats = dict(zip(self.wanted, self.formats * 2, strict=False))
        return {name: encode(value, formats[name]) for name, value in found.items()}

    def judge(self, outputs: Mapping[str, Array], solver: str) -> Judgement:
        """Judge a device's outputs; the solver is not known to matter here."""
        del solver
        right = golden(self.stem)
        if right and digest(outputs, self.wanted) == right:
            return Judgement(Verdict.MATCH, 0.0, 0.0, self.kind)
        if self.guard is not None:
            for name, want in zip(self._guards, self.guard.values, strict=False):
                found = exactly(name, outputs[name], want)
                if found.wrong:
                    return judged(found, "integer")
        compared = self._compare(outputs)
        worst = max(compared, key=lambda found: (found.wrong > 0, found.usage))
        wrong = [i for i, found in enumerate(compared) if found.wrong]
        if wrong and all(self._degraded(outputs, i) for i in wrong):
            return Judgement(Verdict.DEGRADED, worst.error, worst.bound, self.kind, text(worst))
        return judged(worst, self.kind)

    def _compare(self, outputs: Mapping[str, Array]) -> list[Compared]:
        pairs = zip(self.names, self.main.values, strict=False)
        if self.exact:
            signed = self._moved
            return [exactly(name, outputs[name], want, signed=signed) for name, want in pairs]
        limits = self.main.limits()
        return [
            within(name, outputs[name], want, limit)
            for (name, want), limit in zip(pairs, limits, strict=False)
        ]

    @property
    def _moved(self) -> bool:
        bound = self.main.bound
        return isinstance(bound, Exact) and bound.moved and self.main.slopes is None

    def _degraded(self, outputs: Mapping[str, Array], which: int) -> bool:
        bound = self.main.bound
        if self.guard is None or not isinstance(bound, Bilinear):
            return False
        terms = bound.terms if self.main.slopes is None else bound.slope_terms
        assert self.main.dtype in HALVES
        return degraded.tolerates(
            decode(outputs[self.names[which]]),
            self.main.values[which],
            squares=self.main.squares()[which],
            terms=terms,
            dtype=self.main.dtype,
        )
