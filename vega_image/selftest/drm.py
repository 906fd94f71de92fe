"""The graphics driver's view of one card: its PCI device folder in /sys."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from vega_image.selftest.reading import NotAvailable, Reading, Sysroot, integer

CARDS = "sys/class/drm"
PCI = "sys/bus/pci/devices"
SLOT = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ABSOLUTE_ZERO = -273.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The slowest PCIe hop between card and processor; `max_*` is what the card itself can do.

    Speeds are GT/s per lane. `hop` is `card`, or the bridge the slowest hop belongs to: a
    Vega 20 sits behind a switch of its own, whose inner link is always wide.
    """

    width: Reading[int]
    speed: Reading[float]
    max_width: Reading[int]
    max_speed: Reading[float]
    hop: str
    replays: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCount:
    """Errors one block of the chip counted since the driver loaded."""

    block: str
    uncorrected: Reading[int]
    corrected: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Temperature:
    """One sensor, degrees Celsius."""

    label: str
    now: Reading[float]
    critical: Reading[float]
    emergency: Reading[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Watts: drawn now, the limit set, the limit the card starts with, the highest allowed."""

    now: Reading[float]
    cap: Reading[float]
    cap_default: Reading[float]
    cap_max: Reading[float]


def device_folder(root: Sysroot, slot: Reading[str], minor: Reading[int]) -> str:
    """Return the PCI device folder of a card, by its address, else by its render node."""
    if isinstance(slot, NotAvailable):
        return f"{CARDS}/{render_name(minor)}/device"
    for card in card_folders(root):
        if slot_of(root, card) == slot:
            return card
    return f"{PCI}/{slot}"


def render_name(minor: Reading[int]) -> str:
    """Name a render node, e.g. `renderD128`."""
    return f"renderD{minor if isinstance(minor, int) else '?'}"


def card_folders(root: Sysroot) -> tuple[str, ...]:
    """Return the PCI device folders of all DRM cards."""
    names = (name for name in root.names(CARDS) if re.fullmatch(r"card[0-9]+", name))
    return tuple(f"{CARDS}/{name}/device" for name in names)


def slot_of(root: Sysroot, folder: str) -> Reading[str]:
    """Return the PCI address of a device folder."""
    text = root.text(f"{folder}/uevent")
    lines = text.splitlines() if isinstance(text, str) else []
    for line in lines:
        key, _, value = line.partition("=")
        if key == "PCI_SLOT_NAME" and SLOT.fullmatch(value):
            return value
    target = root.target(folder)
    known = isinstance(target, str) and SLOT.fullmatch(target)
    return target if known else NotAvailable(f"{folder}: no PCI address")


def pci_id(root: Sysroot, folder: str, *, prefix: str = "") -> Reading[str]:
    """Return `vendor:device` of a device, or with prefix `subsystem_` of its board."""
    vendor = root.integer(f"{folder}/{prefix}vendor", base=16)
    device = root.integer(f"{folder}/{prefix}device", base=16)
    if isinstance(vendor, NotAvailable):
        return vendor
    return device if isinstance(device, NotAvailable) else pci_text(vendor, device)


def pci_text(vendor: int, device: int) -> str:
    """Write a PCI id as lspci does.

    >>> pci_text(4098, 26287)
    '1002:66af'
    """
    return f"{vendor:04x}:{device:04x}"


def unique_id(root: Sysroot, folder: str) -> Reading[str]:
    """Return the chip's serial number, 16 hex digits."""
    number = root.integer(f"{folder}/unique_id", base=16)
    if isinstance(number, NotAvailable):
        return number
    return f"{number:016x}" if number > 0 else NotAvailable(f"{folder}/unique_id: zero")


def read_link(root: Sysroot, folder: str) -> Link:
    """Read the card's link and those of the bridges above it; keep the slowest."""
    hops = [("card", folder), *_bridges(root, folder)]
    readings = [(name, *_current(root, at)) for name, at in hops]
    known = [hop for hop in readings if isinstance(hop[1], int)]
    hop, width, speed = min(known, key=_throughput) if known else readings[0]
    return Link(
        width=width,
        speed=speed,
        max_width=_width(root, f"{folder}/max_link_width"),
        max_speed=_speed(root, f"{folder}/max_link_speed"),
        hop=hop,
        replays=root.integer(f"{folder}/pcie_replay_count"),
    )


def _throughput(hop: tuple[str, Reading[int], Reading[float]]) -> float:
    _, width, speed = hop
    lanes = width if isinstance(width, int) else 0
    return lanes * (speed if isinstance(speed, float) else 1.0)


def _bridges(root: Sysroot, folder: str) -> list[tuple[str, str]]:
    top = os.path.realpath(root.path)
    real = os.path.realpath(root.path / folder)
    found: list[tuple[str, str]] = []
    while (real := os.path.dirname(real)).startswith(f"{top.rstrip('/')}/"):  # noqa: PTH120
        relative = os.path.relpath(real, top)
        if not root.exists(f"{relative}/current_link_width"):
            break
        found.append((os.path.basename(real), relative))  # noqa: PTH119
    return found


def _current(root: Sysroot, folder: str) -> tuple[Reading[int], Reading[float]]:
    width = _width(root, f"{folder}/current_link_width")
    return width, _speed(root, f"{folder}/current_link_speed")


def _width(root: Sysroot, name: str) -> Reading[int]:
    lanes = root.integer(name)
    if isinstance(lanes, int) and lanes <= 0:
        return NotAvailable(f"{name}: no link")
    return lanes


def _speed(root: Sysroot, name: str) -> Reading[float]:
    text = root.text(name)
    if isinstance(text, NotAvailable):
        return text
    found = re.match(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) GT/s", text)
    return float(found.group(1)) if found else NotAvailable(f"{name}: not a speed")


def read_errors(root: Sysroot, folder: str) -> Reading[tuple[ErrorCount, ...]]:
    """Read the error counters; a card without ECC has none, which is not `no errors`."""
    suffix = "_err_count"
    names = [name for name in root.names(f"{folder}/ras") if name.endswith(suffix)]
    if not names:
        return NotAvailable(f"{folder}/ras: no error counters")
    return tuple(
        _count(root, f"{folder}/ras/{name}", name.removesuffix(suffix)) for name in names
    )


def _count(root: Sysroot, name: str, block: str) -> ErrorCount:
    text = root.text(name)
    if isinstance(text, NotAvailable):
        return ErrorCount(block=block, uncorrected=text, corrected=text)
    fields = dict(line.partition(":")[::2] for line in text.splitlines())

    def number(key: str) -> Reading[int]:
        value = integer(fields.get(key, "").strip())
        return value if value is not None and value >= 0 else NotAvailable(f"{name}: no {key}")

    return ErrorCount(block=block, uncorrected=number("ue"), corrected=number("ce"))


def read_temperatures(root: Sysroot, folder: str) -> Reading[tuple[Temperature, ...]]:
    """Read every temperature sensor."""
    base = _hwmon(root, folder)
    sensors = [
        name.removesuffix("_input")
        for name in root.names(base)
        if re.fullmatch(r"temp[0-9]+_input", name)
    ]
    if not sensors:
        return NotAvailable(f"{base}: no temperature sensor")
    return tuple(_temperature(root, f"{base}/{sensor}", sensor) for sensor in sensors)


def _temperature(root: Sysroot, stem: str, sensor: str) -> Temperature:
    label = root.text(f"{stem}_label")
    return Temperature(
        label=label if isinstance(label, str) else sensor,
        now=_celsius(root, f"{stem}_input"),
        critical=_celsius(root, f"{stem}_crit"),
        emergency=_celsius(root, f"{stem}_emergency"),
    )


def _celsius(root: Sysroot, name: str) -> Reading[float]:
    degrees = _scaled(root.integer(name), 1e3)
    if isinstance(degrees, float) and degrees <= ABSOLUTE_ZERO:
        return NotAvailable(f"{name}: no reading")
    return degrees


def read_power(root: Sysroot, folder: str) -> Power:
    """Read the power limits; kernels name the present draw `average` or `input`."""
    stem = f"{_hwmon(root, folder)}/power1"
    now = root.integer(f"{stem}_average")
    if isinstance(now, NotAvailable):
        now = root.integer(f"{stem}_input")
    return Power(
        now=_scaled(now, 1e6),
        cap=_scaled(root.integer(f"{stem}_cap"), 1e6),
        cap_default=_scaled(root.integer(f"{stem}_cap_default"), 1e6),
        cap_max=_scaled(root.integer(f"{stem}_cap_max"), 1e6),
    )


def _hwmon(root: Sysroot, folder: str) -> str:
    names = root.names(f"{folder}/hwmon")
    return f"{folder}/hwmon/{names[0] if names else 'hwmon'}"


def _scaled(value: Reading[int], unit: float) -> Reading[float]:
    return value if isinstance(value, NotAvailable) else value / unit
