"""What the parent sees of a card while its children work: heat, power, and the clock."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from pathlib import Path

from vega_image.selftest import hygiene, speed
from vega_image.selftest.finding import Finding
from vega_image.selftest.identity import Known
from vega_image.selftest.reading import Sysroot
from vega_image.selftest.result import Result
from vega_image.selftest.sensors import Sample, judge_samples, sample


@dataclass
class Seen:
    """Samples of one run, by trial. What is no card has no sensors of ours."""

    known: Known
    root: Sysroot = field(default_factory=lambda: Sysroot(Path("/")))
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def look(self, key: str) -> None:
        """Take a sample while a long or a speed trial runs."""
        if self.known.folder and key.startswith(("soak", "speed")):
            found = sample(self.root, self.known.folder)
            self.samples.setdefault(key, []).append(found)

    def graded(self, result: Result) -> Result:
        """Judge a speed by the clock it was reached at; a result judged once stays as it is."""
        card = self.known.asked_as == "device"
        if not card or not hygiene.peak_flops("fp32", self.known.identity):
            return result
        record = speed.graded(
            result.record,
            result.case.id,
            identity=self.known.identity,
            clock=self._clock(result.trial.key),
        )
        return replace(result, record=record)

    def _clock(self, key: str) -> float | None:
        taken = self.samples.get(key, [])
        clocks = [item.clock for item in taken if isinstance(item.clock, int) and item.clock]
        return float(statistics.median(clocks)) if clocks else None

    def findings(self) -> tuple[Finding, ...]:
        """Judge heat and clock of the soak."""
        soak = [
            one
            for key, taken in self.samples.items()
            if key.startswith("soak")
            for one in taken
        ]
        return judge_samples(soak)
