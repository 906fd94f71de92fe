"""What a Windows machine told, as values. Times are seconds since 1970, paths are Windows'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from vega_image.selftest.reading import NotAvailable, Reading

__all__ = ["NotAvailable"]


@dataclass(frozen=True)
class Display:
    """A display device as Plug and Play knows it.

    `pci` and `subsystem` are `vendor:device`, None for what is not on PCI. `problem` is
    Device Manager's code, 0 for none. `bus` is the PCI bus number where it is known.
    """

    instance_id: str
    pci: str | None
    subsystem: str | None
    name: str
    present: bool
    problem: int
    bus: int | None


@dataclass(frozen=True)
class DisplayDriver:
    """The driver package of one display device."""

    instance_id: str
    version: str | None
    provider: str | None


@dataclass(frozen=True)
class Sdk:
    """An installed HIP SDK."""

    version: str
    path: str


@dataclass(frozen=True)
class Drivers:
    """All display drivers and HIP SDKs found."""

    drivers: tuple[DisplayDriver, ...]
    sdks: tuple[Sdk, ...]


@dataclass(frozen=True)
class HipDevice:
    """A device of hipInfo's print; `arch` is gcnArchName as it stands, `bus` the PCI bus."""

    index: int
    name: str
    arch: str | None
    bus: int | None
    compute_units: int | None


@dataclass(frozen=True)
class HipInfo:
    """What hipInfo printed and how it ended.

    `exit_code` is None if it never ended by itself or could not be started, `why` then says
    which. `error` is HIP's own number, e.g. 100 for no device.
    """

    exit_code: int | None
    timed_out: bool
    why: str
    devices: tuple[HipDevice, ...]
    error: int | None


@dataclass(frozen=True)
class Library:
    """One copy of a HIP library; `place` is program, system32 or path."""

    name: str
    path: str
    place: str
    sha256: str
    version: str | None


@dataclass(frozen=True)
class Libraries:
    """All copies of the HIP libraries, and those hipInfo was seen to load."""

    folder: str
    copies: tuple[Library, ...]
    loaded: tuple[str, ...]


@dataclass(frozen=True)
class RuntimeFile:
    """A file of the Visual C++ runtime; `version` is None where the file is not there."""

    name: str
    version: str | None


@dataclass(frozen=True)
class System:
    """The Windows that runs; `boot` names the boot."""

    build: str
    boot: str
    booted: int
    gathered: int


@dataclass(frozen=True)
class Tdr:
    """Timeout detection and recovery of the display driver; None is Windows' default."""

    level: int | None
    delay: int | None
    ddi_delay: int | None


@dataclass(frozen=True)
class ImageFacts:
    """What the image says of itself: its digest, its find-db profile's, cards it is for.

    `libraries` maps a HIP library's file name to the SHA-256 the image was sealed with.
    """

    image: str | None
    profile: str | None
    cards: tuple[str, ...]
    libraries: Mapping[str, str]


VbiosTable: TypeAlias = "Mapping[str, str]"


@dataclass(frozen=True)
class Gathered:
    """One gathering; whatever could not be read says so and names its file."""

    displays: Reading[tuple[Display, ...]]
    drivers: Reading[Drivers]
    hip: Reading[HipInfo]
    libraries: Reading[Libraries]
    runtime: Reading[tuple[RuntimeFile, ...]]
    system: Reading[System]
    vbios: Reading[VbiosTable]
    tdr: Reading[Tdr]
    resets: Reading[tuple[int, ...]]
    image: Reading[ImageFacts]
