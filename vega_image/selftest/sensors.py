"""Heat and power while a card works: read once a second, judged when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vega_image.selftest import drm
from vega_image.selftest.finding import Finding
from vega_image.selftest.reading import NotAvailable, Reading, Sysroot

JUNCTION_LIMIT = 105.0
CLOCK_DROP = 0.10
STEADY = 5


@dataclass(frozen=True)
class Sample:
    """One moment: degrees Celsius, watts, core clock in hertz."""

    junction: Reading[float]
    watts: Reading[float]
    clock: Reading[int]


def sample(root: Sysroot, folder: str) -> Sample:
    """Read a card's sensors; `folder` is its PCI device folder. Raises nothing."""
    sensors = drm.read_temperatures(root, folder)
    named = {} if isinstance(sensors, NotAvailable) else {item.label: item for item in sensors}
    junction = named.get("junction")
    names = root.names(f"{folder}/hwmon")
    base = f"{folder}/hwmon/{names[0] if names else 'hwmon'}"
    return Sample(
        junction=NotAvailable("no junction sensor") if junction is None else junction.now,
        watts=drm.read_power(root, folder).now,
        clock=root.integer(f"{base}/freq1_input"),
    )


def judge_samples(samples: Sequence[Sample]) -> tuple[Finding, ...]:
    """Warn of heat, and of a clock that falls under a constant load. Pure."""
    found: list[Finding] = []
    heat = [item.junction for item in samples if isinstance(item.junction, float)]
    hottest = max(heat, default=0.0)
    if hottest > JUNCTION_LIMIT:
        found.append(
            Finding(
                code="SOAK_TOO_HOT",
                severity="warn",
                title=f"The chip reached {hottest:.0f} °C",
                detail=f"more than {JUNCTION_LIMIT:.0f} °C at the junction during the soak",
                action="clean the cooler, check the fans, then run this level again",
                hazards=("PWR01",),
            )
        )
    clocks = [item.clock for item in samples if isinstance(item.clock, int)][STEADY:]
    if clocks and min(clocks) < (1 - CLOCK_DROP) * max(clocks):
        found.append(
            Finding(
                code="SOAK_CLOCK_FELL",
                severity="warn",
                title="The core clock fell under a constant load",
                detail=f"from {max(clocks) / 1e6:.0f} to {min(clocks) / 1e6:.0f} MHz",
                action="look at temperatures and power limit: vega-image doctor",
                hazards=("PWR01",),
            )
        )
    return tuple(found)
