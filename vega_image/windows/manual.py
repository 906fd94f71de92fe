"""The operator's page of a Windows tree: exact commands, what is missing, forecasts. Pure.

Every `sh` block of the page runs as typed once the first one holds the operator's values.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from vega_image.lock import LockedGit
from vega_image.render import render_text
from vega_image.spec import GitSource, IsoSource
from vega_image.windows.answer import partitions
from vega_image.windows.hcl import variables
from vega_image.windows.manualstages import stage_table
from vega_image.windows.parts import Job, PayloadFile
from vega_image.windows.references import edition_of
from vega_image.windows.spec import Platform

# What Windows Setup, and the installed Windows, need of the virtio-win medium: its folders.
DRIVERS = ("vioscsi", "viostor", "vioserial", "NetKVM")
_VIRTIO, _OPENSSH = "virtio", "openssh"
_SECRETS = frozenset({"product_key", "proxmox_token", "proxmox_password"})
_ANSIBLE = "ansible-core with the collections of `playbooks/requirements.yml`"
_NEEDS: Mapping[Platform, str] = {
    Platform.QEMU: "vega-image, Packer 1.6.6 or newer, QEMU with KVM, `qemu-img`, OVMF, "
    f"xorriso, {_ANSIBLE}",
    Platform.HYPERV: f"vega-image, {_ANSIBLE}, and a Hyper-V host with Packer",
    Platform.PROXMOX: f"vega-image, Packer 1.7 or newer with its plugins, xorriso, {_ANSIBLE}",
    Platform.METAL: f"vega-image, `qemu-img`, {_ANSIBLE}, a Windows machine for the capture, "
    "and Windows PE",
}
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
        "missing": _missing(job),
        "steps": _steps(job),
        "number": 6,
        "provision_lines": _provision_lines(job),
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


def _values(job: Job) -> Iterator[tuple[str, str, str]]:
    yield "TREE", '"$PWD"', "this folder"
    yield "PAYLOAD", '"$HOME/payload"', "the files of section 2, in one folder"
    yield "KEY", '"$HOME/.ssh/vega"', "your ssh key; its public half is beside it, .pub"
    yield "INVENTORY", '"$TREE/inventory/office.yaml"', "your machines; this one is an example"
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
    return _text(job, "missing.md.j2", {"rows": rows, "lines": list(_lock_lines(job))})


def _missing_row(job: Job, name: str, item: PayloadFile | None) -> dict[str, str]:
    if item is not None:
        version = item.version or "any"
        return {
            "name": name,
            "file": f"`{item.file}`",
            "version": version,
            "where": item.where,
        }
    source = job.target.sources[name]
    assert isinstance(source, GitSource)
    commit = f"a commit of `{source.branch}`" if source.branch else "the commit's archive"
    return {"name": name, "file": f"{commit}, in the spec", "version": "", "where": source.url}


def _lock_lines(job: Job) -> Iterator[str]:
    name = job.target.name
    yield f'vega-image lock {name} --payload "$PAYLOAD"'
    yield f'vega-image render {name} --platform {job.platform} -o "$TREE"'


def _steps(job: Job) -> str:
    shared: dict[str, object] = {
        "name": job.target.name,
        "build_lines": list(_build_lines(job)),
        "layout_lines": list(_layout_lines(job)),
        "file_lines": list(_file_lines(job)),
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
    yield f'mkdir -p {media}/installers"'
    if _OPENSSH in payload:
        yield f'cp "$PAYLOAD/{payload[_OPENSSH].file}" {media}/installers/"'
    if job.drivers and _VIRTIO in payload:
        yield f'mkdir -p {media}/drivers"'
        for name in DRIVERS:
            yield (
                f'xorriso -osirrox on -indev "$PAYLOAD/{payload[_VIRTIO].file}" '
                f'-extract /{name}/w11/amd64 {media}/drivers/{name}"'
            )


def _build_lines(job: Job) -> Iterator[str]:
    name = job.target.name
    if job.platform is Platform.HYPERV:
        yield from _hyperv_lines(job)
    elif job.platform is not Platform.METAL:
        yield 'cd "$TREE"'
        yield f'echo "{_iso_digest(job)}  $ISO" | sha256sum --check -'
        yield from _overlay_lines(job)
        yield from _packer_lines(job)
        if job.platform is Platform.QEMU:
            yield f"grep 'VEGA-IMAGE READY {name} ' \"$OUT.log\""


def _iso_digest(job: Job) -> str:
    source = job.target.sources[job.target.edition.source]
    locked = job.lock.sources.get(job.target.edition.source)
    known = getattr(locked, "sha256", None) if isinstance(source, IsoSource) else None
    assert isinstance(known, str)
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


def _packer_lines(job: Job) -> Iterator[str]:
    given = {
        "iso_path": '"$ISO"',
        "iso_checksum": f"sha256:{_iso_digest(job)}",
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
    yield "Set-Location -LiteralPath $Tree"
    yield "if ((Get-FileHash -LiteralPath $Iso -Algorithm SHA256).Hash -ne"
    yield f"    '{_iso_digest(job)}') {{ throw 'another medium' }}"
    for overlay, place in _overlays(job):
        yield f"Copy-Item packer\\overlays\\{overlay}.pkr.hcl packer\\{place} -Force"
    if job.newer:
        yield "packer.exe init packer"
    yield "packer.exe build `"
    for name, value in (
        ("iso_path", "$Iso"),
        ("iso_checksum", f"sha256:{_iso_digest(job)}"),
        ("output_directory", "$Out"),
        ("serial_log", "$Out.log"),
        ("ssh_private_key_file", "$Key"),
        ("headless", "true"),
        ("switch_name", "$Switch"),
    ):
        yield f'  -var "{name}={value}" `'
    yield "  packer"


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


def _provision_lines(job: Job) -> Iterator[str]:
    folder = '"$TREE/media/vega/installers'
    files = [item.file for item in job.payload() if item.name != _VIRTIO]
    if files:
        yield f'mkdir -p {folder}"'
        yield f"for FILE in {' '.join(shlex.quote(file) for file in files)}; do"
        yield f'  cp "$PAYLOAD/$FILE" {folder}/"'
        yield "done"
    if job.platform is Platform.METAL:
        yield 'vega-image selftest pack --output "$TREE/media/vega/vega-selftest.pyz"'
    yield 'cd "$TREE/playbooks"'
    tree = '{\\"vega_tree\\": \\"$TREE\\", \\"vega_native_build\\": true}'
    yield f'ansible-playbook --inventory "$INVENTORY" --extra-vars "{tree}" windows.yaml'
