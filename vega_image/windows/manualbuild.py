"""How the operator builds with Packer: medium, overlays, and the call itself. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from vega_image.lock import LockedIso
from vega_image.windows.hcl import variables
from vega_image.windows.parts import Job
from vega_image.windows.spec import Platform

_SECRETS = frozenset({"product_key", "proxmox_token", "proxmox_password"})
# Where Microsoft's installer of the kit puts oscdimg.exe.
_ADK = (
    "C:\\Program Files (x86)\\Windows Kits\\10\\Assessment and Deployment Kit"
    "\\Deployment Tools\\amd64\\Oscdimg"
)


def build_lines(job: Job) -> Iterator[str]:
    """Yield the commands: for a shell, or for PowerShell on a Hyper-V host; none for metal."""
    name = job.target.name
    if job.platform is Platform.HYPERV:
        yield from _hyperv_lines(job)
    elif job.platform is not Platform.METAL:
        yield 'cd "$TREE"'
        yield f'echo "{locked_iso(job).sha256}  $ISO" | sha256sum --check -'
        yield "export CHECKPOINT_DISABLE=1"
        yield from _overlay_lines(job)
        yield from _packer_lines(job)
        if job.platform is Platform.QEMU:
            yield f"grep 'VEGA-IMAGE READY {name} ' \"$OUT.log\""


def locked_iso(job: Job) -> LockedIso:
    """Return what the lock says of the installation medium."""
    known = job.lock.sources[job.target.edition.source]
    assert isinstance(known, LockedIso)
    return known


def _overlays(job: Job) -> Iterator[tuple[str, str]]:
    if job.newer:
        yield "plugins", ""
    if job.target.machine.secure_boot or job.platform is Platform.PROXMOX:
        yield "efi-tpm", "source.pkr.hcl"
    if job.target.updates.install_while_building:
        yield "windows-update", "build.pkr.hcl"


def _overlay_lines(job: Job) -> Iterator[str]:
    for overlay, place in _overlays(job):
        yield f"cp packer/overlays/{overlay}.pkr.hcl packer/{place}"
    if job.newer:
        yield "packer init packer"
    else:
        yield 'case "$(packer version)" in'
        yield '  *" v1.6."*) ;;'
        yield "  *) cp packer/overlays/plugins.pkr.hcl packer/ && packer init packer ;;"
        yield "esac"


def _packer_lines(job: Job) -> Iterator[str]:
    given = {
        "iso_path": '"$ISO"',
        "iso_checksum": f"sha256:{locked_iso(job).sha256}",
        "output_directory": '"$OUT"',
        "serial_log": '"$OUT.log"',
        "ssh_private_key_file": '"$KEY"',
        "firmware": '"$FIRMWARE"',
        "proxmox_url": '"$PVE"',
        "proxmox_node": '"$NODE"',
        "proxmox_username": '"$API_USER"',
        "proxmox_bridge": '"$BRIDGE"',
        "proxmox_disk_pool": '"$DISKS"',
        "proxmox_iso_pool": '"$ISOS"',
    }
    if job.platform is Platform.PROXMOX:
        given = {name: word for name, word in given.items() if "$OUT" not in word}
    yield "packer build \\"
    for item in variables(job):
        if item.name in _SECRETS or (item.name not in given and item.default is None):
            continue
        if item.name in given:
            yield f"  -var {item.name}={given[item.name]} \\"
        elif item.name not in {"output_directory", "serial_log"}:
            assert item.default is not None
            word = item.default.strip('"')
            yield f"  -var {item.name}={shlex.quote(word)} \\"
    yield "  packer"


def _hyperv_lines(job: Job) -> Iterator[str]:
    yield "$Tree = 'D:\\windows-tree'"
    yield "$Iso = 'D:\\windows.iso'"
    yield f"$Out = 'D:\\{job.target.name}'"
    yield '$Key = "$HOME\\.ssh\\vega"'
    yield "$Switch = 'Default Switch'"
    yield f"$env:Path += ';{_ADK}'"
    yield "$env:CHECKPOINT_DISABLE = '1'"
    yield "Set-Location -LiteralPath $Tree"
    yield "if ((Get-FileHash -LiteralPath $Iso -Algorithm SHA256).Hash -ne"
    yield f"    '{locked_iso(job).sha256}') {{ throw 'another medium' }}"
    for overlay, place in _overlays(job):
        yield f"Copy-Item packer\\overlays\\{overlay}.pkr.hcl packer\\{place} -Force"
    if job.newer:
        yield "packer.exe init packer"
    else:
        yield "if ((packer.exe version | Select-Object -First 1) -notmatch ' v1\\.6\\.') {"
        yield "    Copy-Item packer\\overlays\\plugins.pkr.hcl packer\\ -Force"
        yield "    packer.exe init packer"
        yield "}"
    yield "if ($LASTEXITCODE -ne 0) { throw 'packer has no plugins' }"
    yield "packer.exe build `"
    for name, value in (
        ("iso_path", "$Iso"),
        ("iso_checksum", f"sha256:{locked_iso(job).sha256}"),
        ("output_directory", "$Out"),
        ("serial_log", "$Out.log"),
        ("ssh_private_key_file", "$Key"),
        ("headless", "true"),
        ("switch_name", "$Switch"),
    ):
        yield f'  -var "{name}={value}" `'
    yield "  packer"
    yield "if ($LASTEXITCODE -ne 0) { throw 'there is no image; the lines above say why' }"
