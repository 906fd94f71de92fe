"""A card through torch's HIP build. Written against the seam; no card was at hand to run it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vega_image.selftest.devices.torchdevice import TorchDevice
from vega_image.selftest.devices.torchprograms import compute
from vega_image.selftest.encode import encode
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.facts import Card, Facts, read_facts
from vega_image.selftest.suites.backend import load_torch

LEAST_SCRATCH = 256 << 20


def open_hip(index: int) -> TorchDevice:
    """Return a card. Raises SelftestError: torch built without HIP, or no such card."""
    torch = load_torch()
    if getattr(torch.version, "hip", None) is None:
        raise SelftestError(
            "NO_HIP",
            f"torch {torch.__version__} is not built for HIP",
            exit_code=7,
            hint="run inside the image, or use --device cpu for a reference run",
            at=f"hip:{index}",
        )
    if index >= torch.cuda.device_count():
        raise SelftestError(
            "NO_SUCH_CARD",
            f"HIP shows {torch.cuda.device_count()} cards, there is no number {index}",
            exit_code=7,
            hint="vega-image doctor",
            at=f"hip:{index}",
        )
    return TorchDevice(
        name=f"hip:{index}",
        source="device",
        torch=torch,
        place=f"cuda:{index}",
        facts=_identity(torch, index),
        compute=compute,
        scratch_bytes=lambda: _pool(torch, index),
    )


def _pool(torch: Any, index: int) -> int:
    """Return the bytes torch holds and does not use: where the next output will come from."""
    held, used = torch.cuda.memory_reserved(index), torch.cuda.memory_allocated(index)
    return max(int(held - used), LEAST_SCRATCH)


def _identity(torch: Any, index: int) -> Mapping[str, object]:
    shown = torch.cuda.get_device_properties(index)
    bus = getattr(shown, "pci_bus_id", None)
    card = _card(bus if isinstance(bus, int) else -1)
    base: dict[str, object] = {
        "arch": str(getattr(shown, "gcnArchName", "")),
        "cu": int(shown.multi_processor_count),
        "driver": f"hip {torch.version.hip}",
    }
    if card is None:
        return base
    names = {
        "pci": "pci_id",
        "subsystem": "subsystem",
        "vbios": "vbios",
        "unique_id": "unique_id",
    }
    return {**base, **{name: encode(getattr(card, field)) for name, field in names.items()}}


def _card(bus: int) -> Card | None:
    if os.name == "nt":
        # Windows has no /sys; who the card is comes from --facts, in the parent.
        return None
    facts = read_facts(Path("/"), os.environ, uid=os.getuid(), gids=os.getgroups())
    return card_on_bus(facts, bus)


def card_on_bus(facts: Facts, bus: int) -> Card | None:
    """Find the card HIP speaks of among those the kernel shows; a lone card needs no bus."""
    for card in facts.cards:
        slot = card.pci_slot
        if isinstance(slot, str) and int(slot.split(":")[1], 16) == bus:
            return card
    return facts.cards[0] if len(facts.cards) == 1 else None
