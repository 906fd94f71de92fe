"""Answer files: Windows Setup in a virtual machine, and a generalized image's first boot. Pure.

Reference: Microsoft, Unattended Windows Setup Reference. No password and no key is in them:
the account is made by a script, with a password that nobody learns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from vega_image.errors import UsageError
from vega_image.render import render_text
from vega_image.windows.parts import BUILD_LABEL, LABEL, PROGRAMS, Job
from vega_image.windows.references import edition_of
from vega_image.windows.spec import Platform

# Microsoft-Windows-Deployment, RunSynchronousCommand: Path has at most 259 characters.
_PATH_LONGEST = 259
_SHELL = "powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass"
# In Windows PE nobody knows the letter of a CD; a path that is not there is only logged.
_CD_LETTERS = "DEFGH"
_OOBE_KEY = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Setup\OOBE"
_LAB_KEY = r"HKLM\SYSTEM\Setup\LabConfig"
_WINDOWS = 3
_LAB = ("BypassTPMCheck", "BypassSecureBootCheck")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of RunSynchronous, in its order."""

    order: int
    what: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition, by its number on the disk: `size` in MiB, None for all that is left."""

    number: int
    type: str
    size: int | None = None
    format: str = ""
    label: str = ""

    @property
    def extent(self) -> str:
        """The element that says how long it is."""
        return "Extend" if self.size is None else "Size"

    @property
    def length(self) -> str:
        """What that element holds."""
        return "true" if self.size is None else str(self.size)


def render_answers(job: Job) -> dict[str, bytes]:
    """Return answer/unattend-oobe.xml, and media/autounattend.xml but for bare machines.

    Raises UsageError TEMPLATE_INVALID for a command that Setup would cut.
    """
    files = {"answer/unattend-oobe.xml": _filled(job, "unattend-oobe.xml.j2", _first_boot())}
    if job.platform is not Platform.METAL:
        files["media/autounattend.xml"] = _filled(job, "autounattend.xml.j2", _setup())
    return files


def _filled(job: Job, name: str, commands: Sequence[Command]) -> bytes:
    language = job.target.language
    layout = partitions(job)
    values: dict[str, object] = {
        "display": language.display,
        "formats": language.formats,
        "keyboard": language.keyboard,
        "time_zone": language.time_zone,
        "computer_name": job.target.computer_name,
        "partitions": layout,
        "formatted": _formatted(layout),
        "windows": _WINDOWS,
        "image_keys": _image_keys(job),
        "drivers": _text(job, "drivers.xml.j2", {"driver_paths": list(_driver_paths(job))})
        if job.drivers
        else "",
        "lab": "" if job.target.machine.secure_boot else _run(job, _lab()),
        "run": _run(job, commands),
    }
    # A fragment that is not wanted leaves its line empty.
    lines = _text(job, name, values).splitlines(keepends=True)
    return "".join(line for line in lines if line.strip()).encode()


def _text(job: Job, name: str, values: Mapping[str, object]) -> str:
    path = f"windows/answer/{name}"
    return render_text(job.parts.text(path), values, at=f"templates/{path}")


def _run(job: Job, commands: Sequence[Command]) -> str:
    escaped = [
        Command(order=item.order, what=escape(item.what), path=escape(item.path))
        for item in commands
    ]
    return _text(job, "commands.xml.j2", {"commands": escaped}).rstrip("\n")


def _image_keys(job: Job) -> list[tuple[str, str]]:
    asked, edition = job.target.edition, edition_of(job.target)
    index = [("/IMAGE/INDEX", str(edition.index))] if asked.index is not None else []
    name = [("/IMAGE/NAME", escape(edition.name))] if asked.name is not None else []
    return [*index, *name]


def _driver_paths(job: Job) -> Iterator[tuple[int, str]]:
    if job.drivers:
        for number, letter in enumerate(_CD_LETTERS, 1):
            yield number, rf"{letter}:\vega\drivers"


def partitions(job: Job) -> tuple[Partition, ...]:
    """Return EFI, MSR, Windows, and the one for builds where the spec wants it.

    Setup gives letters from C on only, hence the label: scripts/build-root.ps1 makes it B:.
    """
    disk = job.target.disk
    windows = (disk.size_gib - disk.build_gib) * 1024 - disk.efi_mib - disk.msr_mib
    found = [
        Partition(number=1, type="EFI", size=disk.efi_mib, format="FAT32", label="System"),
        Partition(number=2, type="MSR", size=disk.msr_mib),
        Partition(
            number=_WINDOWS,
            type="Primary",
            size=windows if disk.build_gib else None,
            format="NTFS",
            label="Windows",
        ),
    ]
    if disk.build_gib:
        build = Partition(number=4, type="Primary", format="NTFS", label=BUILD_LABEL)
        found.append(build)
    return tuple(found)


def _formatted(layout: Sequence[Partition]) -> list[dict[str, object]]:
    made = [item for item in layout if item.format]
    return [
        {"order": order, "number": item.number, "format": item.format, "label": item.label}
        for order, item in enumerate(made, 1)
    ]


def _lab() -> tuple[Command, ...]:
    return tuple(
        Command(
            order=order,
            what="A virtual machine without TPM and Secure Boot",
            path=rf"reg.exe add {_LAB_KEY} /v {name} /t REG_DWORD /d 1 /f",
        )
        for order, name in enumerate(_LAB, 1)
    )


def _setup() -> tuple[Command, ...]:
    """Return what specialize does in a virtual machine, as SYSTEM, before any logon."""
    script = r"vega\scripts\prepare.ps1"
    prepare = (
        f'{_SHELL} -Command "foreach ($d in [IO.DriveInfo]::GetDrives()) '
        f"{{ if ($d.IsReady -and $d.VolumeLabel -eq '{LABEL}') "
        f"{{ & ($d.Name + '{script}'); exit $LASTEXITCODE }} }} exit 5\""
    )
    return _numbered(("No account page", _no_account_page()), ("Prepare from the CD", prepare))


def _first_boot() -> tuple[Command, ...]:
    """Return what specialize does on each machine that starts the generalized image."""
    gate = rf'{_SHELL} -File "{PROGRAMS}\firstboot\register-task.ps1"'
    own = rf'{_SHELL} -File "{PROGRAMS}\scripts\first-boot.ps1"'
    return _numbered(
        ("Hold out of service", gate),
        ("No account page", _no_account_page()),
        ("A password of this machine's own", own),
    )


def _no_account_page() -> str:
    return f"reg.exe add {_OOBE_KEY} /v UnattendCreatedUser /t REG_DWORD /d 1 /f"


def _numbered(*pairs: tuple[str, str]) -> tuple[Command, ...]:
    found = []
    for order, (what, path) in enumerate(pairs, 1):
        if len(path) > _PATH_LONGEST:
            msg = f"{what}: a command of {len(path)} characters, Setup takes {_PATH_LONGEST}"
            raise UsageError("TEMPLATE_INVALID", msg)
        found.append(Command(order=order, what=what, path=path))
    return tuple(found)
