"""What a Windows tree is made from, besides its spec and its lock: texts and rows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vega_image.errors import UsageError
from vega_image.lock import Lock, LockedFile
from vega_image.lockfile import unresolved
from vega_image.spec import FileSource
from vega_image.windows.spec import Platform, Strategy, WindowsTarget

PROGRAMS = r"C:\Program Files\VegaImage"
LABEL = "VEGA"
BUILD_LABEL = "VEGABUILD"
# Sources that the scripts and the page know by name.
VIRTIO, OPENSSH = "virtio", "openssh"


class Bound(Protocol):
    """An upper bound: its number, whether it was published or estimated, and where."""

    @property
    def value(self) -> int:
        """The number, in the unit that the forecast names."""

    @property
    def basis(self) -> str:
        """`published` or `estimate`."""

    @property
    def source(self) -> str:
        """Who says so."""


class Forecast(Protocol):
    """What a stage needs: minutes, free disk and memory in GiB."""

    @property
    def minutes(self) -> Bound:
        """The longest it may take."""

    @property
    def disk_gib(self) -> Bound:
        """Free disk when it begins."""

    @property
    def memory_gib(self) -> Bound:
        """Memory of the machine."""


class StageRow(Protocol):
    """One stage of the native build, as its folder NN-NAME on the media has it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def folder(self) -> str:
        """NN-NAME, below media/vega/stages."""

    @property
    def strategy(self) -> Strategy | None:
        """How it gets its result, if it makes one."""

    @property
    def inputs(self) -> str:
        """The digest of stage.json's `inputs`."""

    @property
    def forecast(self) -> Forecast:
        """What it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Texts by their path.

    `texts`: below templates/, of `windows/` and `firstboot/windows/`; the others in the tree:
    `stage_files`: media/vega/stages and media/vega/patches; `shared`: playbooks and inventory.
    """

    texts: Mapping[str, bytes]
    stage_files: Mapping[str, bytes] = field(default_factory=dict)
    stages: Sequence[StageRow] = ()
    shared: Mapping[str, bytes] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """Return a template; raises UsageError TEMPLATE_ABSENT or TEMPLATE_INVALID."""
        at = f"templates/{path}"
        try:
            return self.texts[path].decode("utf-8")
        except KeyError:
            msg = f"{at} is not there"
            raise UsageError("TEMPLATE_ABSENT", msg, at=at) from None
        except UnicodeDecodeError as error:
            msg = f"{at}: not UTF-8 text at byte {error.start}"
            raise UsageError("TEMPLATE_INVALID", msg, at=at) from None

    def below(self, folder: str) -> Iterator[tuple[str, bytes]]:
        """Yield (path below the folder, bytes) of its texts, sorted."""
        for path, data in sorted(self.texts.items()):
            if path.startswith(f"{folder}/"):
                yield path.removeprefix(f"{folder}/"), data


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFile:
    """A file the office brings; `sha256` and `size` (bytes) are None until it is locked."""

    name: str
    file: str
    where: str
    version: str | None
    size: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """One rendering: everything that its modules compute values from."""

    target: WindowsTarget
    lock: Lock
    platform: Platform
    parts: Parts

    @property
    def drivers(self) -> bool:
        """Whether Windows Setup sees the disk only with virtio drivers."""
        return self.platform in {Platform.QEMU, Platform.PROXMOX}

    @property
    def builder(self) -> str:
        """Packer's name for the platform's builder."""
        return {Platform.QEMU: "qemu", Platform.HYPERV: "hyperv-iso"}.get(
            self.platform, "proxmox-iso"
        )

    @property
    def newer(self) -> bool:
        """Whether the machine wants what packer 1.6.6 does not have."""
        asked = self.target.machine.secure_boot or self.target.updates.install_while_building
        return asked or self.platform is Platform.PROXMOX

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The sources without a digest, sorted."""
        return unresolved(self.lock)

    def payload(self) -> tuple[PayloadFile, ...]:
        """Return every file that the office brings, by the name of its source."""
        found: list[PayloadFile] = []
        for name, source in sorted(self.target.sources.items()):
            if not isinstance(source, FileSource):
                continue
            locked = self.lock.sources.get(name)
            known = locked if isinstance(locked, LockedFile) else None
            found.append(
                PayloadFile(
                    name=name,
                    file=source.file,
                    where=source.where,
                    version=source.version,
                    size=known.size if known else None,
                    sha256=known.sha256 if known else None,
                )
            )
        return tuple(found)
