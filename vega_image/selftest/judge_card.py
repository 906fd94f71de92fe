"""What a gfx906 card's facts mean. Limits and their sources stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vega_image.selftest.drm import ErrorCount, Temperature
from vega_image.selftest.facts import Card
from vega_image.selftest.finding import Finding
from vega_image.selftest.reading import NotAvailable, Reading

MIB = 1 << 20
# A Radeon VII says 16368 MiB, not 16384; an ECC card keeps a little more for itself.
LEAST_VRAM = 15 * 1024 * MIB

RADEON_VII = "1002:66af"
RADEON_VII_VBIOS = "113-D3600200-"
MI50_VBIOS = "113-D16"
# Seen on Radeon VII and on MI50 cards that were made to look like one.
SHARED_VBIOS = "113-D3600200-105"


def judge_card(card: Card) -> Iterator[Finding]:
    """Yield everything to say about one card, an `info` naming it included."""
    for rule in RULES:
        yield from rule(card)


def where(card: Card) -> str:
    """Name a card by its PCI address, else by its KFD node."""
    return card.pci_slot if isinstance(card.pci_slot, str) else f"KFD node {card.node}"


def _identity(card: Card) -> Iterator[Finding]:
    size = f"{card.vram // MIB} MiB" if isinstance(card.vram, int) else "memory not available"
    target = card.target_id if isinstance(card.target_id, str) else card.gfx
    yield Finding(
        code="CARD",
        severity="info",
        title=f"{target} at {where(card)}: {card.compute_units} CUs, {size}",
        detail=f"PCI id {card.pci_id}, board {card.subsystem} rev {card.revision}, "
        f"VBIOS {card.vbios}, unique id {card.unique_id}",
        action=f"give a container --device /dev/kfd --device {card.render.path}{_group(card)}",
    )


def _group(card: Card) -> str:
    gid = card.render.gid
    return f" --group-add {gid}" if isinstance(gid, int) and gid > 0 else ""


def _board(card: Card) -> Iterator[Finding]:
    if isinstance(card.pci_id, NotAvailable) or isinstance(card.vbios, NotAvailable):
        return
    if card.pci_id != RADEON_VII:
        yield _accepted(
            "OTHER_VEGA20",
            f"{where(card)} is not a Radeon VII but another gfx906 card ({card.pci_id})",
            f"MI50, MI60 and Pro cards run the same code objects; VBIOS {card.vbios}",
        )
    elif card.vbios.startswith(MI50_VBIOS):
        yield _accepted(
            "MI50_AS_66AF",
            f"{where(card)} has a Radeon VII's PCI id and an MI50's VBIOS",
            f"the id {card.pci_id} does not prove the board: VBIOS {card.vbios}",
        )
    elif card.vbios == SHARED_VBIOS or not card.vbios.startswith(RADEON_VII_VBIOS):
        yield _accepted(
            "BOARD_UNCERTAIN",
            f"{where(card)}: the VBIOS does not say which board this is",
            f"PCI id {card.pci_id} with VBIOS {card.vbios}: Radeon VII or an altered MI50",
        )


def _accepted(code: str, title: str, detail: str) -> Finding:
    return Finding(
        code=code,
        severity="info",
        title=title,
        detail=f"{detail}; accepted",
        action="note it in the inventory; never flash a VBIOS",
        hazards=("PWR04",),
    )


def _memory(card: Card) -> Iterator[Finding]:
    sizes = [size for size in (card.vram, card.vram_driver) if isinstance(size, int)]
    if not sizes:
        yield Finding(
            code="VRAM_UNKNOWN",
            severity="warn",
            title=f"{where(card)}: the size of its memory cannot be read",
            detail=_why(card.vram),
            action="sudo dmesg | grep -i 'VRAM:'",
        )
    elif min(sizes) < LEAST_VRAM:
        yield Finding(
            code="VRAM_TOO_SMALL",
            severity="refuse",
            title=f"{where(card)} has {min(sizes) // MIB} MiB of memory, 16368 are expected",
            detail="a gfx906 card with less than 16 GB is a fake, a virtual slice, "
            "or has lost memory stacks",
            action="power the machine off for a minute, reseat the card, run doctor again; "
            "if it stays, replace the card",
        )


def _atomics(card: Card) -> Iterator[Finding]:
    if isinstance(card.atomics, NotAvailable):
        yield Finding(
            code="PCIE_ATOMICS_UNKNOWN",
            severity="warn",
            title=f"{where(card)}: whether PCIe atomics work cannot be read",
            detail=f"{card.atomics.why}; without them results are silently wrong",
            action="sudo dmesg | grep -i atomics; use the slot wired to the processor",
            hazards=("HW08",),
        )
    elif not (card.atomics.bits32 and card.atomics.bits64):
        missing = [
            bits
            for bits, there in (("32", card.atomics.bits32), ("64", card.atomics.bits64))
            if not there
        ]
        yield Finding(
            code="NO_PCIE_ATOMICS",
            severity="refuse",
            title=f"{where(card)}: no PCIe atomics ({' and '.join(missing)} bit)",
            detail="gfx906 then computes wrong numbers without an error "
            "(black images, networks that do not learn)",
            action="move the card to the first slot, the one wired to the processor; "
            "no riser, no chipset slot; then run doctor again",
            hazards=("HW08", "NUM12"),
        )


def _link(card: Card) -> Iterator[Finding]:
    link = card.link
    if not isinstance(link.width, int) or not isinstance(link.max_width, int):
        return
    at = "" if link.hop == "card" else f" (bridge {link.hop})"
    if link.width < link.max_width:
        yield Finding(
            code="LINK_NARROW",
            severity="warn",
            title=f"{where(card)} is linked by x{link.width} of x{link.max_width}{at}",
            detail=f"{_speed(link.speed)} now, {_speed(link.max_speed)} possible: "
            "loading models is slow, and cards in chipset slots have returned NaN",
            action="reseat the card in the first x16 slot, without a riser",
            hazards=("HW08",),
        )


def _speed(value: Reading[float]) -> str:
    return f"speed {value}" if isinstance(value, NotAvailable) else f"{value:g} GT/s"


def _target_features(card: Card) -> Iterator[Finding]:
    if card.xnack is True:
        yield Finding(
            code="XNACK_ON",
            severity="refuse",
            title=f"{where(card)}: page retry (xnack) is on",
            detail="assembly kernels are then disabled, and nothing here was made for it",
            action="remove amdgpu.noretry=0 from the kernel command line, reboot",
            hazards=("TGT07",),
        )
    if card.sramecc is False:
        yield Finding(
            code="SRAMECC_OFF",
            severity="info",
            title=f"{where(card)} reports sramecc-",
            detail="good cards report either; code objects for plain gfx906 run; accepted",
            action="nothing to do",
            hazards=("TGT04",),
        )


def _errors(card: Card) -> Iterator[Finding]:
    if isinstance(card.errors, NotAvailable):
        yield Finding(
            code="ECC_NOT_AVAILABLE",
            severity="info",
            title=f"{where(card)}: error counters not available",
            detail="normal for a Radeon VII: it has none, so memory errors go uncounted",
            action="nothing to do; selftest tests the memory instead",
        )
        return
    for count in card.errors:
        yield from _count(card, count)


def _count(card: Card, count: ErrorCount) -> Iterator[Finding]:
    if isinstance(count.uncorrected, int) and count.uncorrected > 0:
        yield Finding(
            code="ECC_UNCORRECTED",
            severity="refuse",
            title=f"{where(card)}: {count.uncorrected} uncorrected errors in {count.block}",
            detail="since the driver loaded; numbers computed since then may be wrong",
            action="reboot and run doctor again; if they come back, replace the card",
            hazards=("HW01",),
        )
    if isinstance(count.corrected, int) and count.corrected > 0:
        yield Finding(
            code="ECC_CORRECTED",
            severity="warn",
            title=f"{where(card)}: {count.corrected} corrected errors in {count.block}",
            detail="since the driver loaded; results are right, but a rising count is not",
            action="run doctor again after an hour of work and compare; keep stock clocks",
            hazards=("PWR05",),
        )


def _heat(card: Card) -> Iterator[Finding]:
    if isinstance(card.temperatures, NotAvailable):
        return
    hot = [sensor for sensor in card.temperatures if _too_hot(sensor)]
    for sensor in hot:
        yield Finding(
            code="TOO_HOT",
            severity="warn",
            title=f"{where(card)}: {sensor.label} at {sensor.now} C, limit {sensor.critical} C",
            detail="the card slows down or stops at its limit",
            action="clean the cooler, check the fans and the case's air flow",
            hazards=("PWR01", "PWR06"),
        )


def _too_hot(sensor: Temperature) -> bool:
    if isinstance(sensor.now, NotAvailable) or isinstance(sensor.critical, NotAvailable):
        return False
    return sensor.now >= sensor.critical


def _power(card: Card) -> Iterator[Finding]:
    cap, default = card.power.cap, card.power.cap_default
    if isinstance(cap, NotAvailable) or isinstance(default, NotAvailable) or cap == default:
        return
    yield Finding(
        code="POWER_CAP_CHANGED",
        severity="warn" if cap > default else "info",
        title=f"{where(card)}: power limit {cap:g} W, the card's own is {default:g} W",
        detail="a limit set by hand is lost at every reboot",
        action="set it in a systemd unit if it is wanted, else reboot",
        hazards=("PWR04",),
    )


def _why(reading: object) -> str:
    return reading.why if isinstance(reading, NotAvailable) else ""


RULES: tuple[Callable[[Card], Iterator[Finding]], ...] = (
    _identity,
    _board,
    _memory,
    _atomics,
    _link,
    _target_features,
    _errors,
    _heat,
    _power,
)
