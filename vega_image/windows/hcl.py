"""Packer's templates of a Windows target: a core for packer 1.6.6, overlays for newer ones.

Of the core, packer 1.6.6 was asked what it accepts (checks/packer.py asks it again). Overlays
replace or join core files by the commands of README.md, as HCL2 cannot add to a block. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vega_image.render import render_text
from vega_image.windows.parts import PROGRAMS, Job
from vega_image.windows.spec import Platform

Pair: TypeAlias = tuple[str, str]
_CORE = "# As far as packer 1.6.6 goes, which distributions have."
_CHECKSUM = "its digest, as sha256:HEX; vega-image build verifies it before"
_GENERALIZE = (
    "powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass "
    rf'-File "{PROGRAMS}\scripts\generalize.ps1"'
)
# Versions that rgl/windows-vagrant built Windows 11 IoT LTSC with, August 2026; hashicorp's and
# that project's own plugins.
_PLUGINS: Mapping[Platform, Pair] = {
    Platform.QEMU: ("qemu", "1.1.6"),
    Platform.HYPERV: ("hyperv", "1.1.5"),
    Platform.PROXMOX: ("proxmox", "1.2.4"),
}
_UPDATE = ("windows-update", "0.18.4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One `variable` block; `default` is an HCL expression, None makes it required."""

    name: str
    description: str
    type: str = "string"
    default: str | None = None
    sensitive: bool = False

    @property
    def extra(self) -> list[Pair]:
        """The lines below `type`, aligned as `packer fmt` does."""
        lines = [("default", self.default)] if self.default is not None else []
        if self.sensitive:
            lines.append(("sensitive", "true"))
        return [(name.ljust(len("description")), str(value)) for name, value in lines]


def render_hcl(job: Job) -> dict[str, bytes]:
    """Return packer/ of the tree; nothing for bare machines, which packer cannot build."""
    if job.platform is Platform.METAL:
        return {}
    build = "windows/packer/build.pkr.hcl.j2"
    listed = {"variables": variables(job)}
    files = {
        "variables.pkr.hcl": _filled(job, "windows/packer/variables.pkr.hcl.j2", listed),
        "source.pkr.hcl": _source_file(job, newer=False),
        "build.pkr.hcl": _filled(job, build, _build(job, update=False)),
        "overlays/plugins.pkr.hcl": _filled(
            job, "windows/packer/plugins.pkr.hcl.j2", {"plugins": _plugins(job.platform)}
        ),
        "overlays/efi-tpm.pkr.hcl": _source_file(job, newer=True),
        "overlays/windows-update.pkr.hcl": _filled(job, build, _build(job, update=True)),
    }
    return {f"packer/{name}": data for name, data in files.items()}


def _filled(job: Job, path: str, values: Mapping[str, object]) -> bytes:
    return render_text(job.parts.text(path), values, at=f"templates/{path}").encode()


def _source_file(job: Job, *, newer: bool) -> bytes:
    """Return the builder's settings, and below them the variables that only they know."""
    values = _source(job, newer=newer)
    source = _filled(job, f"windows/packer/source-{job.platform}.pkr.hcl.j2", values)
    listed = {"variables": _source_variables(job.platform, newer=newer)}
    declared = _filled(job, "windows/packer/variables.pkr.hcl.j2", listed)
    return source + declared.partition(b"\n")[2]


def variables(job: Job) -> list[Variable]:
    """Return what the core declares; the first four are set by vega-image itself."""
    return [
        Variable(name="iso_path", description="the installation medium, a local file"),
        Variable(name="iso_checksum", description=_CHECKSUM),
        Variable(name="output_directory", description="the folder to make", default='"output"'),
        Variable(
            name="serial_log", description="where COM1 is written", default='"serial.log"'
        ),
        Variable(
            name="ssh_private_key_file",
            description="the private half of the key that README.md puts on the CD",
            default='""',
        ),
        Variable(
            name="product_key",
            description="empty for evaluation media; never written to a file of the tree",
            default='""',
            sensitive=True,
        ),
        *_own(job.platform),
    ]


def _own(platform: Platform) -> list[Variable]:
    headless = Variable(name="headless", description="no window", type="bool", default="true")
    if platform is Platform.QEMU:
        cpu = '"host,hv_relaxed,hv_vapic,hv_spinlocks=0x1fff,hv_time"'
        return [
            headless,
            Variable(name="accelerator", description="kvm, or none", default='"kvm"'),
            Variable(name="cpu", description="as QEMU's -cpu", default=cpu),
            Variable(
                name="firmware",
                description="UEFI firmware in one file, as Debian's package ovmf has it",
                default='"/usr/share/ovmf/OVMF.fd"',
            ),
        ]
    if platform is Platform.HYPERV:
        return [headless, Variable(name="switch_name", description="the virtual switch")]
    return [
        Variable(name="proxmox_url", description="address of the API"),
        Variable(name="proxmox_node", description="the node that builds"),
        Variable(name="proxmox_username", description="USER@REALM!TOKEN"),
        Variable(name="proxmox_bridge", description="network bridge", default='"vmbr0"'),
        Variable(name="proxmox_disk_pool", description="storage for disks"),
        Variable(name="proxmox_iso_pool", description="storage for ISO files"),
    ]


def _source_variables(platform: Platform, *, newer: bool) -> list[Variable]:
    if platform is Platform.QEMU and newer:
        code, store = "OVMF_CODE_4M.ms.fd", "OVMF_VARS_4M.ms.fd"
        return [
            Variable(
                name="firmware_code",
                description="UEFI code with Secure Boot, as Debian's package ovmf has it",
                default=f'"/usr/share/OVMF/{code}"',
            ),
            Variable(
                name="firmware_vars",
                description="its variables, with Microsoft's keys",
                default=f'"/usr/share/OVMF/{store}"',
            ),
        ]
    if platform is Platform.PROXMOX:
        name = "proxmox_token" if newer else "proxmox_password"
        what = "the secret of an API token" if newer else "packer 1.6.6 knows no token"
        return [Variable(name=name, description=what, sensitive=True)]
    return []


def _source(job: Job, *, newer: bool) -> dict[str, object]:
    target = job.target
    values: dict[str, object] = {
        "head": _head(job, newer=newer),
        "name": target.name,
        "title": f"{target.title} {target.version}",
        "administrator": target.administrator,
        "cpus": target.machine.cpus,
        "memory_mib": target.machine.memory_gib * 1024,
        "disk_gib": target.disk.size_gib,
        "disk_mib": target.disk.size_gib * 1024,
        "shutdown": _GENERALIZE,
        "extra": [aligned(group) for group in _extra(job, newer=newer)],
    }
    if job.platform is Platform.QEMU:
        firmware = [] if newer else [("-bios", "${var.firmware}")]
        serial = ("-serial", "file:${var.serial_log}")
        # Packer would give as many sockets as CPUs, of which Windows 11 Enterprise uses two.
        cores = ("-smp", f"cpus={target.machine.cpus},sockets=1,cores={target.machine.cpus}")
        values["qemuargs"] = [*firmware, ("-cpu", "${var.cpu}"), cores, serial]
    if job.platform is Platform.PROXMOX:
        values |= _proxmox(target.disk.size_gib, newer=newer)
    return values


def _head(job: Job, *, newer: bool) -> str:
    if newer:
        return "# For packer 1.7 and newer: takes the place of source.pkr.hcl (README.md)."
    if job.platform is Platform.PROXMOX:
        return (
            f"{_CORE} It can give a\n"
            "# machine neither UEFI nor a second CD: this can be checked, but Windows 11 does\n"
            "# not install on it. README.md puts overlays/efi-tpm.pkr.hcl in its place."
        )
    return _CORE


def _extra(job: Job, *, newer: bool) -> Iterable[Sequence[Pair]]:
    secure = "true" if job.target.machine.secure_boot else "false"
    if job.platform is Platform.HYPERV:
        yield [("enable_secure_boot", secure), *([("enable_tpm", "true")] if newer else [])]
    elif job.platform is Platform.QEMU and newer:
        yield [
            ("efi_boot", "true"),
            ("efi_firmware_code", "var.firmware_code"),
            ("efi_firmware_vars", "var.firmware_vars"),
            ("vtpm", "true"),
        ]
    elif job.platform is Platform.PROXMOX and newer:
        yield [("token", "var.proxmox_token")]
        yield [("machine", '"q35"'), ("bios", '"ovmf"'), ("serials", '["socket"]')]
    elif job.platform is Platform.PROXMOX:
        yield [("password", "var.proxmox_password")]
        yield [*_medium(), ("unmount_iso", "true")]


def _medium() -> list[Pair]:
    return [
        ("iso_url", "var.iso_path"),
        ("iso_checksum", "var.iso_checksum"),
        ("iso_storage_pool", "var.proxmox_iso_pool"),
    ]


def _proxmox(size_gib: int, *, newer: bool) -> dict[str, object]:
    if not newer:
        disk = [("storage_pool_type", '"lvm"'), ("format", '"raw"')]
        return {"disk": aligned([*_disk(size_gib), *disk]), "blocks": []}
    ide, unmount = ("type", '"ide"'), ("unmount", "true")
    files = '["media/autounattend.xml", "media/vega", "answer"]'
    pool = ("iso_storage_pool", "var.proxmox_iso_pool")
    cd = [ide, ("cd_files", files), ("cd_label", '"VEGA"'), pool, unmount]
    efi = [("efi_storage_pool", "var.proxmox_disk_pool"), ("pre_enrolled_keys", "false")]
    disk = [("format", '"raw"'), ("io_thread", "true"), ("discard", "true")]
    blocks = {
        "efi_config": efi,
        "boot_iso": [ide, *_medium(), unmount],
        "additional_iso_files": cd,
    }
    return {
        "disk": aligned([*_disk(size_gib), *disk]),
        "blocks": [{"name": name, "body": aligned(body)} for name, body in blocks.items()],
    }


def _disk(size_gib: int) -> list[Pair]:
    pool = ("storage_pool", "var.proxmox_disk_pool")
    return [("type", '"scsi"'), ("disk_size", f'"{size_gib}G"'), pool]


def aligned(pairs: Sequence[Pair]) -> list[Pair]:
    """Pad the names of neighbouring arguments, as `packer fmt` wants them.

    >>> aligned([("a", "1"), ("bcd", "2")])
    [('a  ', '1'), ('bcd', '2')]
    """
    width = max(len(name) for name, _ in pairs)
    return [(name.ljust(width), value) for name, value in pairs]


def _build(job: Job, *, update: bool) -> dict[str, object]:
    drivers = " and Type='Software'" if job.target.updates.block_drivers else ""
    head = "# For packer 1.7 and newer: takes the place of build.pkr.hcl (README.md)."
    proxmox = job.platform is Platform.PROXMOX
    scripts = ("wait-setup", "verify-payload", "updates", "license", "announce", "generalize")
    return {
        "head": head if update else _CORE,
        "builder": job.builder,
        "update": update,
        "criteria": f"IsInstalled=0{drivers}",
        "generalize": proxmox,
        "run": {name: rf"& '{PROGRAMS}\scripts\{name}.ps1'" for name in scripts},
        # Proxmox keeps the image: nobody makes an output folder there.
        "manifest": "manifest.json" if proxmox else "${var.output_directory}/manifest.json",
    }


def _plugins(platform: Platform) -> list[dict[str, str]]:
    name, version = _PLUGINS[platform]
    rows = [(name, version, f"github.com/hashicorp/{name}")]
    rows.append((*_UPDATE, "github.com/rgl/windows-update"))
    return [{"name": n, "version": f"= {v}", "source": s} for n, v, s in rows]
