"""Who the device is, told without touching it, and the gate's key made from that."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from vega_image.selftest import datafiles
from vega_image.selftest.devices.opening import open_device, preload
from vega_image.selftest.encode import encode
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.facts import Card, Facts, read_facts
from vega_image.selftest.finding import Finding
from vega_image.selftest.findings import judge_facts
from vega_image.selftest.gate import UNREAD, Key
from vega_image.selftest.seam import Device

CARD_FIELDS = {"pci": "pci_id", "subsystem": "subsystem", "vbios": "vbios",
               "unique_id": "unique_id", "arch": "gfx", "cu": "compute_units",
               "slot": "pci_slot"}  # fmt: skip
CARD = re.compile(r"hip(:[0-9]{1,3})?")
FOREIGN = "python:"


@dataclass(frozen=True)
class Known:
    """A device as the parent knows it. `open` is for the child; `memory` is the card's.

    `foreign` is code from outside the suite. Whatever it says of itself, it runs on the
    processor as far as anybody can prove, so its `source` is never `device`; `claims` is what
    it says, and decides how much is asked of it. `folder` is the card's below /sys;
    `gathered` the folder of a Windows machine's facts.
    """

    source: str
    identity: Mapping[str, object]
    open: Callable[[], Device]
    findings: tuple[Finding, ...] = ()
    memory: int = 0
    folder: str = ""
    gathered: str = ""
    claims: str = ""
    foreign: bool = False

    @property
    def asked_as(self) -> str:
        """The source whose amount of work this device gets."""
        return self.claims or self.source


def know(spec: str) -> Known:
    """Find out what a device is; a card is read about in /sys and left alone.

    Raises SelftestError: unknown device, no card (7), or a machine that must not compute (7).
    """
    if CARD.fullmatch(spec):
        return _card(spec)
    preload(spec)
    device = open_device(spec)
    if not spec.startswith(FOREIGN):
        return Known(device.source, device.identity(), lambda: device)
    source = "replay" if device.source == "replay" else "cpu"
    identity = _told(device, spec)
    return Known(source, identity, lambda: device, claims=device.source, foreign=True)


def _told(device: Device, spec: str) -> Mapping[str, object]:
    """Return what code from outside says of itself, as plain values."""
    try:
        told = dict(device.identity())
    except (Exception, SystemExit) as error:
        raise SelftestError(
            "DEVICE_IDENTITY",
            f"{spec} cannot say what it is: {type(error).__name__}: {error}",
            exit_code=7,
            hint="identity() returns a mapping, see vega_image/selftest/seam.py",
            at=spec,
        ) from error
    return {str(key): _plain(one) for key, one in told.items()}


def _plain(value: object) -> object:
    """Return a value that JSON can hold; NaN and infinity are no JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float)) else str(value)


def plan_for(spec: str) -> Known:
    """Return what a dry run needs of a device: nothing is opened, no card need be there.

    Raises SelftestError for an unknown device.
    """
    if not CARD.fullmatch(spec):
        return know(spec)
    return Known("device", {}, lambda: open_device(spec))


def _card(spec: str) -> Known:
    if os.name == "nt":
        raise SelftestError(
            "WINDOWS_FACTS",
            "Windows does not tell a program who the card is",
            exit_code=7,
            hint="run gather-facts.ps1, then add --facts DIR",
            at=spec,
        )
    facts = read_facts(Path("/"), os.environ, uid=os.getuid(), gids=os.getgroups())
    return card_of(facts, spec)


def card_of(facts: Facts, spec: str) -> Known:
    """Pick a card for the own suite. Raises SelftestError (7) for what the facts forbid."""
    known = card_known(facts, spec)
    preload(spec)
    return replace(known, open=lambda: open_device(spec))


def card_known(facts: Facts, spec: str) -> Known:
    """Pick a card, for whoever opens it himself. Raises SelftestError (7)."""
    findings = judge_facts(facts)
    refusing = [item for item in findings if item.severity == "refuse"]
    if refusing:
        first = refusing[0]
        text = f"{first.title}: {first.detail}"
        raise SelftestError(first.code, text, exit_code=7, hint=first.action, at=spec)
    index = int(spec.partition(":")[2] or "0")
    if index >= len(facts.cards):
        text = f"there are {len(facts.cards)} gfx906 cards, no number {index}"
        raise SelftestError(
            "NO_SUCH_CARD", text, exit_code=7, hint="vega-image doctor", at=spec
        )
    card = facts.cards[index]
    return Known(
        source="device",
        identity={**_identity(card), "driver": _driver(facts)},
        open=not_opened,
        findings=findings,
        memory=card.vram if isinstance(card.vram, int) else 0,
        folder=f"sys/bus/pci/devices/{card.pci_slot}",
    )


def not_opened() -> NoReturn:
    """Stand in for opening a device that an external suite opens itself."""
    msg = "an external suite opens its device itself"
    raise AssertionError(msg)


def _identity(card: Card) -> dict[str, object]:
    return {name: encode(getattr(card, field)) for name, field in CARD_FIELDS.items()}


def _driver(facts: Facts) -> str:
    version = facts.driver.version
    return version if isinstance(version, str) else str(facts.driver.source_version)


def suite_version() -> str:
    """Return the suite's version with a digest of its tables: other data, other suite.

    Raises SelftestError (4) for damaged tables.
    """
    sha = hashlib.sha256()
    for name in datafiles.TABLES:
        sha.update(datafiles.table(name))
    return f"{datafiles.SUITE_VERSION}+{sha.hexdigest()[:12]}"


def key_of(known: Known, *, image: str, profile: str, suite: str) -> Key:
    """Make the gate's key; what nobody could read is `not available`, hence pending."""
    told = {
        name: str(known.identity.get(name, UNREAD))
        for name in ("pci", "subsystem", "vbios", "unique_id", "driver")
    }
    return Key(image=image, kernel=platform.release(), profile=profile, suite=suite, **told)


def boot_id() -> str:
    """Name this boot; empty where the system has no name for it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
