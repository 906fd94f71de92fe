"""What an oracle says of one outcome; standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from vega_image.selftest.verdict import Verdict

ORACLES = ("integer", "real", "hygiene", "property", "statistic")


@dataclass(frozen=True)
class Judgement:
    """A trial's verdict and its evidence.

    `error` and `bound` are those of the element that uses up most of its bound, in the
    output's own units; `bound` is 0 where the answer must be exact. Both are None where no
    numbers came. `detail` names layer, direction, geometry and the first wrong element.
    """

    verdict: Verdict
    error: float | None
    bound: float | None
    oracle: str
    detail: str = ""

    @property
    def usage(self) -> float | None:
        """The share of the bound that was used; None where the answer must be exact."""
        if self.error is None or not self.bound:
            return None
        return self.error / self.bound
