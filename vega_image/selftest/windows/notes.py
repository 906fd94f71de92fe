"""What a reader of the verdict should know and what decides nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vega_image.selftest.reading import NotAvailable
from vega_image.selftest.windows.hip import hip_device
from vega_image.selftest.windows.presence import DISABLED, accepted, the_card
from vega_image.selftest.windows.values import Gathered

TDR_DEFAULTS = {"TdrLevel": 3, "TdrDelay": 2, "TdrDdiDelay": 5}
"""Microsoft's documented defaults; seconds but for the level."""


def notes_of(gathered: Gathered) -> tuple[str, ...]:
    """Say what is unusual, in fixed order."""
    return (*_displays(gathered), *_hip(gathered), *_sdks(gathered), *_tdr(gathered))


def _displays(gathered: Gathered) -> Iterator[str]:
    if isinstance(gathered.displays, NotAvailable):
        return
    card = the_card(gathered)
    for one in gathered.displays:
        if one.present and one is not card and one.pci and one not in accepted(gathered):
            word = "an AMD" if one.pci.startswith("1002:") else "another"
            yield f"{word} GPU {one.pci} is present too; HIP may count it first"
        elif one.problem == DISABLED and one is not card:
            yield f"{one.instance_id} is disabled"


def _hip(gathered: Gathered) -> Iterator[str]:
    device = hip_device(gathered)
    if device is None or isinstance(gathered.hip, NotAvailable):
        return
    yield f"HIP calls the card {device.arch}, {device.compute_units} compute units"
    if device.index:
        yield f"HIP counts the card as number {device.index}: set HIP_VISIBLE_DEVICES to it"


def _sdks(gathered: Gathered) -> Iterator[str]:
    if isinstance(gathered.drivers, NotAvailable):
        return
    for sdk in gathered.drivers.sdks:
        yield f"HIP SDK {sdk.version} is installed in {sdk.path}; it must not come first"


def _tdr(gathered: Gathered) -> Iterator[str]:
    if not isinstance(gathered.tdr, NotAvailable):
        told = (gathered.tdr.level, gathered.tdr.delay, gathered.tdr.ddi_delay)
        for (name, default), value in zip(TDR_DEFAULTS.items(), told):  # noqa: B905 - 3 and 3
            if value not in {None, default}:
                yield f"{name} is {value}, Windows' default is {default}"
    if not isinstance(gathered.resets, NotAvailable) and gathered.resets:
        yield f"Windows reset the display driver {len(gathered.resets)} times (event 4101)"
