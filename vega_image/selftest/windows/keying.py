"""The gate's key of a Windows machine, from what was gathered. Pure."""

from __future__ import annotations

import hashlib

from vega_image.selftest.gate import UNREAD, Key
from vega_image.selftest.reading import NotAvailable, Reading
from vega_image.selftest.windows.presence import driver_of, the_card
from vega_image.selftest.windows.values import Gathered, ImageFacts, Libraries, System


def key_of(gathered: Gathered, *, suite: str) -> Key:
    """Make the key; a field nobody could read is `not available`, hence pending.

    `kernel` is Windows' build with its revision. No tool tells a card's unique id here.
    """
    card = the_card(gathered)
    image, system = gathered.image, gathered.system
    told = image if isinstance(image, ImageFacts) else None
    return Key(
        image=(told.image if told else None) or UNREAD,
        pci=(card.pci if card else None) or UNREAD,
        subsystem=(card.subsystem if card else None) or UNREAD,
        vbios=_vbios(gathered),
        unique_id=UNREAD,
        driver=_driver(gathered),
        kernel=system.build if isinstance(system, System) else UNREAD,
        profile=(told.profile if told else None) or UNREAD,
        suite=suite,
    )


def _vbios(gathered: Gathered) -> str:
    card = the_card(gathered)
    if card is None or isinstance(gathered.vbios, NotAvailable):
        return UNREAD
    return gathered.vbios.get(card.instance_id, UNREAD)


def _driver(gathered: Gathered) -> str:
    """Return the driver's version and one digest over every copy of the HIP libraries."""
    card = the_card(gathered)
    driver = driver_of(gathered, card) if card else None
    if driver is None or not driver.version or isinstance(gathered.libraries, NotAvailable):
        return UNREAD
    if not gathered.libraries.copies:
        return UNREAD
    return f"{driver.version} dlls sha256:{digest_of(gathered.libraries)}"


def digest_of(libraries: Libraries) -> str:
    """Return a digest over place, path and content of all copies, in any order."""
    lines = sorted(
        f"{one.sha256} {one.place} {one.path.lower()}\n" for one in set(libraries.copies)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def why_unread(gathered: Gathered, name: str) -> str:
    """Say which file left a field of the key unread, and why."""
    sources: dict[str, tuple[str, Reading[object]]] = {
        "image": ("image.json", gathered.image),
        "profile": ("image.json", gathered.image),
        "pci": ("pnp.json", gathered.displays),
        "subsystem": ("pnp.json", gathered.displays),
        "vbios": ("vbios.json", gathered.vbios),
        "kernel": ("os.json", gathered.system),
        "driver": ("dlls.json", gathered.libraries),
    }
    file, value = sources.get(name, ("", None))
    if isinstance(value, NotAvailable):
        return f"{name}: {value.why}"
    return f"{name}: {file}: does not tell it for this card"
