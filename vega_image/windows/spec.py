"""What a Windows target asks for: images/<target>.yaml of kind `windows`. Reads no file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from vega_image.errors import UsageError
from vega_image.model import Model
from vega_image.spec import FindDbProfile, Gpu, Name, Source

PciId = Annotated[str, StringConstraints(pattern=r"^[0-9A-F]{4}$")]
Locale = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[A-Za-z]{4})?-[A-Z]{2}$")]
Keyboard = Annotated[
    str, StringConstraints(pattern=r"^([0-9a-f]{4}:[0-9a-f]{8}|[a-z]{2,3}-[A-Z]{2})$")
]
# Windows allows more; these are the names that no quoting rule and no path can break.
Account = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,19}$")]
DISK_LEAST_GIB = 64


class Platform(StrEnum):
    """Where the image comes to life: a hypervisor, or the bare machine."""

    QEMU = "qemu"
    HYPERV = "hyperv"
    PROXMOX = "proxmox"
    METAL = "metal"


def refuse_platform(name: str, platform: str | None) -> None:
    """Refuse --platform for a target of another kind; raises UsageError BAD_PLATFORM."""
    if platform is not None:
        msg = f"--platform is for Windows targets, which {name} is not"
        raise UsageError("BAD_PLATFORM", msg, at="--platform", hint="leave it out")


class Strategy(StrEnum):
    """How a stage gets its result: compiled on the machine, or from a locked archive."""

    SOURCE = "source"
    PREBUILT = "prebuilt"


class UpdatePolicy(StrEnum):
    """Who decides on updates: a person, or the office's own update server."""

    MANUAL = "manual"
    WSUS = "wsus"


class Edition(Model):
    """Which image of which medium is installed: by index, by name, or by both."""

    source: Name = Field(description="an `iso` source of this spec")
    index: int | None = Field(default=None, ge=1)
    name: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _chooses(self) -> Edition:
        if self.index is None and self.name is None:
            msg = "an edition is chosen by `index`, by `name`, or by both"
            raise ValueError(msg)
        return self


class Language(Model):
    """Language, formats and keyboard; the medium must hold the display language."""

    display: Locale = "en-US"
    formats: Locale = "en-US"
    keyboard: Keyboard = "en-US"
    time_zone: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9 .+-]{0,63}$")] = (
        "UTC"
    )


class Disk(Model):
    """The disk of the image: EFI, MSR, Windows, and the rest; sizes in MiB and GiB."""

    size_gib: int = Field(default=256, ge=DISK_LEAST_GIB, le=4096)
    efi_mib: int = Field(default=300, ge=260, le=2048)
    msr_mib: int = Field(default=16, ge=16, le=128)
    build_gib: int = Field(
        default=0, ge=0, description="a partition B: for the native build; 0: a folder of C:"
    )

    @model_validator(mode="after")
    def _leaves_room(self) -> Disk:
        if self.size_gib - self.build_gib < DISK_LEAST_GIB:
            msg = f"less than {DISK_LEAST_GIB} GiB would be left for Windows"
            raise ValueError(msg)
        return self


class Machine(Model):
    """The virtual machine that is built in, where there is one."""

    cpus: int = Field(default=4, ge=2, le=256)
    memory_gib: int = Field(default=16, ge=4, le=1024)
    secure_boot: bool = Field(default=False, description="with vTPM; wants the efi-tpm overlay")


class Updates(Model):
    """Windows and driver updates; a newer driver branch may drop the card."""

    policy: UpdatePolicy = UpdatePolicy.MANUAL
    block_drivers: bool = True
    install_while_building: bool = Field(
        default=False, description="wants the windows-update overlay and a newer packer"
    )


class FirstBoot(Model):
    """What the image does before it may serve."""

    level: Literal["r1", "r2", "r3", "r4"] = "r2"
    cards: tuple[PciId, ...] = Field(default=("66AF",), min_length=1, description="PCI ids")
    time_limit_minutes: int = Field(default=150, ge=10, le=1440)
    port: int = Field(default=8080, ge=1, le=65535)


class Stack(Model):
    """The compiled software: its version as the upstream counts it."""

    rocm: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+(\.\d+)?$")]
    pytorch: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+(\.\d+)?$")]


class WindowsStage(Model):
    """One stage of the native build: a recipe of templates/stages/ and its options."""

    name: Name
    recipe: Name
    strategy: Strategy | None = Field(
        default=None, description="source or prebuilt, for a stage that makes something"
    )
    options: dict[str, str] = Field(default_factory=dict)
    sources: tuple[Name, ...] = ()


class WindowsTarget(Model):
    """One file under images/ of kind `windows`."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    kind: Literal["windows"]
    version: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]*$")]
    title: str
    description: str
    gpu: Gpu = "gfx906"
    epoch: int = Field(ge=0, description="seconds since 1970")
    licenses: str
    sources: dict[Name, Source]
    platform: Platform = Field(description="the default of --platform")
    edition: Edition
    language: Language = Language()
    administrator: Account = Field(default="vega", description="account made for provisioning")
    computer_name: Annotated[str, StringConstraints(pattern=r"^([A-Z][A-Z0-9-]{0,14}|\*)$")] = (
        Field(default="*", description="* lets Windows choose")
    )
    disk: Disk = Disk()
    machine: Machine = Machine()
    updates: Updates = Updates()
    stack: Stack
    stages: tuple[WindowsStage, ...] = Field(min_length=1)
    finddb: FindDbProfile = Field(default=FindDbProfile.SAFE, description="profile")
    first_boot: FirstBoot = FirstBoot()
