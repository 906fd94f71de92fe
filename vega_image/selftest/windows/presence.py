"""Is the card there, is it well, has it the right driver: what Plug and Play knows. Pure."""

from __future__ import annotations

import re

from vega_image.selftest.reading import NotAvailable
from vega_image.selftest.windows.cause import Cause, unread
from vega_image.selftest.windows.values import Display, DisplayDriver, Gathered, ImageFacts

VEGA20 = {
    "1002:66a0": "Instinct MI50 or MI60",
    "1002:66a1": "Radeon Pro VII or Instinct MI50",
    "1002:66a2": "a Vega 20 board",
    "1002:66a3": "Radeon Pro Vega II",
    "1002:66a7": "a Radeon Pro Vega 20 board",
    "1002:66af": "Radeon VII",
}
"""From the PCI ID repository."""
DISABLED, PHANTOM = 22, 45
PROBLEMS = {
    10: ("the device cannot start", "reinstall the driver of branch 31.0.219*"),
    12: (
        "not enough resources",
        "set Above 4G Decoding on in the firmware, or take another card out",
    ),
    14: ("it works only after a restart", "restart the machine"),
    DISABLED: (
        "it is disabled",
        "Enable-PnpDevice -InstanceId '{instance}' as Administrator",
    ),
    28: ("no driver is installed for it", "install the driver of branch 31.0.219*"),
    31: ("Windows cannot load its driver", "reinstall the driver of branch 31.0.219*"),
    39: ("its driver is damaged or missing", "reinstall the driver of branch 31.0.219*"),
    43: (
        "the device reported a problem",
        "check both power plugs and restart; else reinstall the driver of branch 31.0.219*",
    ),
    PHANTOM: (
        "it was here before and does not answer now",
        "check its seat and both power plugs; set ASPM off in the firmware",
    ),
    52: ("its driver's signature cannot be verified", "install a signed driver"),
}
"""Device Manager's error codes, from Microsoft's list."""
EXPECTED = re.compile(r"31\.0\.219[0-9]{2}\.[0-9]{1,5}")
RDNA = re.compile(r"32\.[0-9.]+")
DRIVER_HINT = "install AMD's Vega and Polaris driver, 31.0.219*, and turn driver updates off"


def accepted(gathered: Gathered) -> tuple[Display, ...]:
    """Return the cards present that the image is for; those disabled come last."""
    displays, image = gathered.displays, gathered.image
    if isinstance(displays, NotAvailable) or isinstance(image, NotAvailable):
        return ()
    here = [one for one in displays if one.present and one.pci in image.cards]
    return tuple(sorted(here, key=lambda one: one.problem == DISABLED))


def the_card(gathered: Gathered) -> Display | None:
    """Return the card to be judged: the only accepted one that is not disabled."""
    cards = accepted(gathered)
    return cards[0] if cards else None


def driver_of(gathered: Gathered, card: Display) -> DisplayDriver | None:
    """Return what is known of a card's driver."""
    if isinstance(gathered.drivers, NotAvailable):
        return None
    found = (one for one in gathered.drivers.drivers if one.instance_id == card.instance_id)
    return next(found, None)


def on_the_bus(gathered: Gathered) -> Cause | None:
    """Judge by PCI id whether the card is there; names are never looked at."""
    displays, image = gathered.displays, gathered.image
    if isinstance(displays, NotAvailable):
        return unread(displays.why)
    if isinstance(image, NotAvailable):
        return unread(image.why)
    cards = [one for one in accepted(gathered) if one.problem != DISABLED]
    if len(cards) > 1:
        where = ", ".join(one.instance_id for one in cards)
        hint = "take the others out, or disable them with Disable-PnpDevice"
        return Cause("SEVERAL_CARDS", f"{len(cards)} cards: {where}; one is proven", hint)
    return None if accepted(gathered) else _absent(displays, image)


def _absent(displays: tuple[Display, ...], image: ImageFacts) -> Cause:
    wanted = ", ".join(f"{card} ({VEGA20.get(card, 'unknown')})" for card in image.cards)
    here = [one for one in displays if one.present]
    for one in here:
        if one.pci in VEGA20:
            detail = f"found {one.pci} ({VEGA20[one.pci]}), this image is for {wanted}"
            hint = "build an image whose cards name this id, and prove it on such a card"
            return Cause("OTHER_CARD", detail, hint)
    gone = [one for one in displays if one.pci in image.cards and one.problem == PHANTOM]
    if gone:
        return _problem(gone[0])
    found = ", ".join(sorted({one.pci or one.instance_id for one in here})) or "none at all"
    hint = "check the card's seat and both power plugs, then Get-PnpDevice -Class Display"
    return Cause("CARD_ABSENT", f"no {wanted} on the PCI bus; display devices: {found}", hint)


def problem_free(gathered: Gathered) -> Cause | None:
    """Judge Device Manager's code of the card."""
    card = the_card(gathered)
    return None if card is None or card.problem == 0 else _problem(card)


def _problem(card: Display) -> Cause:
    what, hint = PROBLEMS.get(card.problem, ("a problem", "look the code up in Device Manager"))
    detail = f"Error {card.problem} at {card.instance_id}: {what}"
    return Cause("CARD_PROBLEM", detail, hint.format(instance=card.instance_id))


def right_driver(gathered: Gathered) -> Cause | None:
    """Judge the driver: AMD's, of the branch for Vega."""
    card = the_card(gathered)
    if isinstance(gathered.drivers, NotAvailable):
        return unread(gathered.drivers.why)
    driver = None if card is None else driver_of(gathered, card)
    if driver is None or not driver.version:
        return Cause("DRIVER_MISSING", "no driver is bound to the card", DRIVER_HINT)
    if driver.provider and driver.provider.lower().startswith("microsoft"):
        detail = f"Microsoft's basic display driver {driver.version}; it has no HIP"
        return Cause("DRIVER_MISSING", detail, DRIVER_HINT)
    if EXPECTED.fullmatch(driver.version):
        return None
    branch = "the RDNA branch" if RDNA.fullmatch(driver.version) else "no branch known here"
    detail = f"driver {driver.version} is of {branch}; 31.0.219* is expected"
    return Cause("DRIVER_BRANCH", detail, DRIVER_HINT)
