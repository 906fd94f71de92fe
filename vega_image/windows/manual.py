"""The operator's page of a Windows tree: exact commands, what is missing, forecasts. Pure.

Every `sh` block of the page runs as typed once the first one holds the operator's values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vega_image.lock import LockedGit
from vega_image.render import render_text
from vega_image.spec import GitSource, IsoSource
from vega_image.windows.answer import partitions
from vega_image.windows.manualbuild import build_lines, locked_iso
from vega_image.windows.manualmachine import inventory_lines, provision_lines, verdict_lines
from vega_image.windows.manualstages import stage_table
from vega_image.windows.manualzips import zip_values
from vega_image.windows.parts import OPENSSH, VIRTIO, Job, PayloadFile
from vega_image.windows.references import edition_of
from vega_image.windows.spec import Platform

# What Windows Setup, and the installed Windows, need of the virtio-win medium: its folders.
DRIVERS = ("vioscsi", "viostor", "vioserial", "NetKVM")
_DRIVERS_TOO = ", the virtio drivers (without them Windows Setup sees no disk)"
_NEEDS: Mapping[Platform, str] = {
    Platform.QEMU: "QEMU with KVM (`/dev/kvm`), UEFI firmware, Packer 1.6.6 or newer, xorriso",
    Platform.HYPERV: "a Hyper-V host with Packer",
    Platform.PROXMOX: "a Proxmox node, Packer 1.7 or newer with its plugins, xorriso",
    Platform.METAL: "`qemu-img`, a Windows machine for the capture, and Windows PE",
}
_PACKAGES: Mapping[Platform, str] = {
    Platform.QEMU: "packer qemu-system-x86 qemu-utils ovmf xorriso openssh-client",
    Platform.HYPERV: "openssh-client",
    Platform.PROXMOX: "xorriso openssh-client",
    Platform.METAL: "qemu-utils openssh-client",
}
_PROGRAMS: Mapping[Platform, str] = {
    Platform.QEMU: "packer qemu-system-x86_64 qemu-img xorriso",
    Platform.HYPERV: "",
    Platform.PROXMOX: "packer xorriso",
    Platform.METAL: "qemu-img",
}
_EVERY_PROGRAM = "vega-image ssh ssh-keygen ssh-keyscan ansible ansible-playbook"
_NEVER: Mapping[Platform, str] = {
    Platform.QEMU: "Packer's build beyond `packer validate` and a medium that is no Windows.",
    Platform.HYPERV: "Packer's build beyond `packer validate`; no Hyper-V was at hand.",
    Platform.PROXMOX: "Packer's build and the overlays in full; no Proxmox was at hand.",
    Platform.METAL: "The capture, and a start on a bare machine.",
}


def render_manual(job: Job) -> bytes:
    """Return README.md of the tree."""
    target = job.target
    edition = edition_of(target)
    table = stage_table(job.parts.stages)
    values: dict[str, object] = {
        "title": target.title,
        "name": target.name,
        "version": target.version,
        "platform": job.platform,
        "edition": f"{edition.index} ({edition.name})",
        "lock": job.lock.digest,
        "values": _values(job),
        "needs": _NEEDS[job.platform],
        "packages": _PACKAGES[job.platform],
        "tool_lines": list(_tool_lines(job)),
        "medium": _medium(job),
        "missing": _missing(job),
        "steps": _steps(job),
        "number": 6,
        "inventory_lines": inventory_lines(job),
        "provision_lines": provision_lines(job),
        "verdict_lines": verdict_lines(job),
        "git": _git(job),
        "level": target.first_boot.level,
        "port": target.first_boot.port,
        "limit": target.first_boot.time_limit_minutes,
        "never": _NEVER[job.platform],
        **table,
    }
    return _text(job, "README.md.j2", values).encode()


def _text(job: Job, name: str, values: Mapping[str, object]) -> str:
    path = f"windows/readme/{name}"
    return render_text(job.parts.text(path), values, at=f"templates/{path}")


def _tool_lines(job: Job) -> Iterator[str]:
    programs = f"{_EVERY_PROGRAM} {_PROGRAMS[job.platform]}".rstrip()
    yield f"for PROGRAM in {programs}; do"
    yield '  command -v "$PROGRAM" > /dev/null || echo "missing: $PROGRAM"'
    yield "done"
    if job.platform is Platform.QEMU:
        yield 'test -w /dev/kvm || echo "missing: /dev/kvm, or the right to it (group kvm)"'
        if not job.target.machine.secure_boot:
            yield 'test -r "$FIRMWARE" || echo "missing: $FIRMWARE"'
    yield 'test -f "$KEY" || ssh-keygen -q -t ed25519 -N \'\' -f "$KEY"'


def _medium(job: Job) -> str:
    name = job.target.edition.source
    source, known = job.target.sources[name], locked_iso(job)
    assert isinstance(source, IsoSource)
    return f"`{source.iso or name}`, {known.size} bytes, SHA-256 `{known.sha256}`"


def _values(job: Job) -> Iterator[tuple[str, str, str]]:
    yield "TREE", '"$PWD"', "this folder"
    yield "FACTORY", '"$HOME/vega-image"', "vega-image's folder, which holds images/"
    yield "PAYLOAD", '"$HOME/payload"', "the files of section 2, in one folder"
    yield "KEY", '"$HOME/.ssh/vega"', "an ssh key without a passphrase; made below if absent"
    yield "OFFICE", '"$HOME/office"', "the inventory; made in section 6 if absent"
    yield "HOST", "192.0.2.10", "address of the machine, once it runs"
    if job.platform is not Platform.METAL:
        yield "DRIVER", '"$HOME/driver"', "the unpacked display driver; section 3"
    if job.platform in {Platform.QEMU, Platform.PROXMOX}:
        yield "ISO", '"$HOME/windows.iso"', "the installation medium"
    if job.platform is Platform.QEMU:
        yield "OUT", f'"$HOME/{job.target.name}"', "where the image goes; must not exist"
        yield "FIRMWARE", "/usr/share/ovmf/OVMF.fd", "UEFI, as Debian's package ovmf has it"
    if job.platform is Platform.PROXMOX:
        yield "PVE", '"https://pve.example:8006/api2/json"', "address of the API"
        yield "NODE", '"pve"', "the node that builds"
        yield "API_USER", "'vega@pve!packer'", "user, realm and name of the API token"
        yield "BRIDGE", '"vmbr0"', "network of the machine"
        yield "DISKS", '"local-lvm"', "storage for disks"
        yield "ISOS", '"local"', "storage for ISO files"
    if job.platform is Platform.METAL:
        yield "VM", '"$HOME/vm"', "a new folder, for the tree of the virtual machine"
        yield (
            "IMAGE",
            f'"$HOME/{job.target.name}/{job.target.name}.qcow2"',
            "what that one makes",
        )
        yield "VHDX", f'"$HOME/{job.target.name}.vhdx"', "the same for Windows"


def _git(job: Job) -> list[tuple[str, str, str]]:
    sources = sorted(job.lock.sources.items())
    return [
        (name, source.url, source.commit or f"{source.branch}, no commit yet")
        for name, source in sources
        if isinstance(source, LockedGit)
    ]


def _missing(job: Job) -> str:
    """Say which sources have no digest yet, who has them, and how they get one."""
    names = job.unresolved
    if not names:
        return "Nothing: every file has its digest in the lock.\n"
    payload = {item.name: item for item in job.payload()}
    rows = [_missing_row(job, name, payload.get(name)) for name in names]
    values = zip_values(job)
    zips = _text(job, "zips.md.j2", values) if values["made"] else ""
    lines = list(_lock_lines(job))
    return _text(job, "missing.md.j2", {"rows": rows, "zips": zips, "lines": lines})


def _missing_row(job: Job, name: str, item: PayloadFile | None) -> dict[str, str]:
    if item is not None:
        version = item.version or "any"
        what = f"file `{item.file}`"
        return {"name": name, "what": what, "version": version, "where": item.where}
    source = job.target.sources[name]
    assert isinstance(source, GitSource)
    place = f"`sources.{name}.commit` of `images/{job.target.name}.yaml`"
    what = f"commit of `{source.branch}`, in {place}" if source.branch else f"bytes of {place}"
    return {"name": name, "what": what, "version": "", "where": source.url}


def _lock_lines(job: Job) -> Iterator[str]:
    name = job.target.name
    yield f'vega-image lock {name} -C "$FACTORY" --payload "$PAYLOAD"'
    yield f'vega-image render {name} -C "$FACTORY" --platform {job.platform} -o "$TREE"'


def _steps(job: Job) -> str:
    shared: dict[str, object] = {
        "name": job.target.name,
        "build_lines": list(build_lines(job)),
        "layout_lines": list(_layout_lines(job)),
        "file_lines": list(_file_lines(job)),
        "drivers": _DRIVERS_TOO if job.drivers else "",
    }
    own = _text(job, f"{job.platform}.md.j2", shared)
    if job.platform is Platform.METAL:
        return own.rstrip("\n") + "\n"
    return (_text(job, "files.md.j2", shared) + own).rstrip("\n") + "\n"


def _file_lines(job: Job) -> Iterator[str]:
    media = '"$TREE/media/vega'
    yield f'cp "$KEY.pub" {media}/authorized_keys"'
    yield f'vega-image selftest pack --output {media}/vega-selftest.pyz"'
    payload = {item.name: item for item in job.payload()}
    yield f'mkdir -p {media}/installers" {media}/drivers"'
    if OPENSSH in payload:
        yield f'cp "$PAYLOAD/{payload[OPENSSH].file}" {media}/installers/"'
    if job.drivers and VIRTIO in payload:
        for name in DRIVERS:
            yield (
                f'xorriso -osirrox on -indev "$PAYLOAD/{payload[VIRTIO].file}" '
                f'-extract /{name}/w11/amd64 {media}/drivers/{name}"'
            )
    yield 'if [ -d "$DRIVER" ]; then'
    yield f'  cp -r "$DRIVER/." {media}/drivers/display"'
    yield "else"
    yield '  echo "missing: $DRIVER"'
    yield "fi"


def _layout_lines(job: Job) -> Iterator[str]:
    name = job.target.name
    yield "$From = 'D:\\'"
    yield f'$Wim = "${{From}}{name}.wim"'
    yield "if ((Get-FileHash -LiteralPath $Wim -Algorithm SHA256).Hash -ne"
    yield '    (Get-Content -LiteralPath "$Wim.sha256").Split()[0]) { throw "$Wim is damaged" }'
    yield "@("
    yield from (f"    '{line}'" for line in _diskpart(job))
    yield ") | Set-Content -LiteralPath X:\\layout.txt -Encoding Ascii"
    yield "diskpart.exe /s X:\\layout.txt"
    yield "if ($LASTEXITCODE -ne 0) { throw 'the disk has no partitions' }"
    yield "dism.exe /Apply-Image /ImageFile:$Wim /Index:1 /ApplyDir:W:\\"
    yield "if ($LASTEXITCODE -ne 0) { throw 'Windows is not on the disk' }"
    yield "bcdboot.exe W:\\Windows /s S: /f UEFI"
    yield "if ($LASTEXITCODE -ne 0) { throw 'the machine would not start' }"
    yield "$Scripts, $Programs = 'W:\\Windows\\Setup\\Scripts', 'W:\\Program Files\\VegaImage'"
    yield "New-Item -ItemType Directory -Path $Scripts -Force | Out-Null"
    for source, place in (
        ("answer\\unattend-oobe.xml", "W:\\Windows\\Panther\\unattend.xml"),
        ("media\\vega\\firstboot\\SetupComplete.cmd", "$Scripts"),
        ("media\\vega\\firstboot\\*", '"$Programs\\firstboot"'),
        ("media\\vega\\scripts\\*", '"$Programs\\scripts"'),
        ("media\\vega\\image.json", "$Programs"),
        ("media\\vega\\settings.json", "$Programs"),
    ):
        yield f'Copy-Item "${{From}}{source}" {place} -Force'


def _diskpart(job: Job) -> Iterator[str]:
    """Yield the disk of the answer files in diskpart.exe's words: S: is EFI, W: Windows."""
    yield from ("select disk 0", "clean", "convert gpt")
    for item in partitions(job):
        size = f" size={item.size}" if item.size else ""
        yield f"create partition {item.type.lower()}{size}"
        if item.format:
            yield f"format quick fs={item.format.lower()} label={item.label}"
        letter = {"System": "S", "Windows": "W"}.get(item.label)
        if letter:
            yield f"assign letter={letter}"
