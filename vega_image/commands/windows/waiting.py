"""What a VM image cannot be built without and is not here: tools, a medium, files, a key."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vega_image.checks.windows import Outcome
from vega_image.commands.windows.given import KEY, KEYGEN, Given, needed, settings
from vega_image.engines.packer import Packer
from vega_image.errors import EngineError
from vega_image.process import which
from vega_image.windows.hcl import variables
from vega_image.windows.parts import Job
from vega_image.windows.spec import Platform

KVM: Final = Path("/dev/kvm")
# Packer makes the second CD with the first of these that is there.
CD_MAKERS: Final = ("xorriso", "mkisofs", "genisoimage")
_BY_HAND: Final[Mapping[Platform, str]] = {
    Platform.HYPERV: "a Windows host with Hyper-V: packer runs there",
    Platform.PROXMOX: "a Proxmox node, and packer 1.7 or newer with its plugins",
    Platform.METAL: "the generalized image of `--platform qemu`, and a Windows to capture it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One thing that is not here; `package` is Debian's name of what brings it, if one does."""

    what: str
    how: str
    package: str | None = None


def missing(job: Job, given: Given, environ: Mapping[str, str]) -> list[Missing]:
    """Return everything that keeps packer from being started, in the order to mend it."""
    if job.platform is not Platform.QEMU:
        return [
            Missing(what=_BY_HAND[job.platform], how="README.md of the tree, section Build")
        ]
    return [*_tools(job, given, environ), *_brought(job, given)]


def unchecked(outcome: Outcome) -> list[Missing]:
    """Return the checks that could not be run, as things that are missing."""
    return [
        Missing(what=f"check {name}: {error.message}", how=error.hint or "")
        for name, error in outcome.not_run.items()
    ]


def _tools(job: Job, given: Given, environ: Mapping[str, str]) -> Iterator[Missing]:
    yield from _packer(environ)
    if job.newer:
        yield Missing(
            what="packer 1.7 or newer with its plugins, for secure_boot or updates",
            how="README.md of the tree, section Build",
        )
    if which("qemu-system-x86_64") is None:
        how = "apt-get install qemu-system-x86"
        yield Missing(what="qemu-system-x86_64", how=how, package="qemu-system-x86")
    if which("qemu-img") is None:
        yield Missing(what="qemu-img", how="apt-get install qemu-utils", package="qemu-utils")
    if not any(which(name) for name in CD_MAKERS[: 1 if needed(job) else None]):
        yield Missing(what="xorriso", how="apt-get install xorriso", package="xorriso")
    if which(KEYGEN) is None:
        how, package = "apt-get install openssh-client", "openssh-client"
        yield Missing(what=KEYGEN, how=how, package=package)
    chosen = settings(job, given)
    firmware = Path(chosen.get("firmware") or _default(job, "firmware"))
    if not firmware.is_file():
        found = Missing(what=f"firmware {firmware}", how="--var firmware=FILE")
        if "firmware" not in chosen:
            found = Missing(what="UEFI firmware", how="apt-get install ovmf", package="ovmf")
        yield found
    if chosen.get("accelerator", "kvm") == "kvm" and not os.access(KVM, os.R_OK | os.W_OK):
        how = "a host with virtualization; without, for days: --var accelerator=none"
        yield Missing(what=f"KVM ({KVM})", how=f"{how} --var cpu=qemu64")


def _packer(environ: Mapping[str, str]) -> Iterator[Missing]:
    try:
        Packer.find(environ)
    except EngineError as error:
        yield Missing(what=error.message, how=error.hint or "", package="packer")


def _brought(job: Job, given: Given) -> Iterator[Missing]:
    if given.iso is None:
        source = job.lock.sources[job.target.edition.source]
        name = getattr(source, "iso", job.target.edition.source)
        how = "--iso FILE; vega-image downloads no medium"
        yield Missing(what=f"the medium {name}", how=how)
    if needed(job) and given.payload is None:
        files = {item.name: item.file for item in job.payload()}
        names = ", ".join(files[name] for name in needed(job))
        yield Missing(what=f"{names}", how="--payload DIR, the folder that holds them")
    if given.ssh_key is None and KEY not in settings(job, given):
        yield Missing(what="an ssh key", how="--ssh-key FILE; ssh-keygen -t ed25519 -f FILE")


def _default(job: Job, name: str) -> str:
    [found] = [item.default for item in variables(job) if item.name == name]
    return shlex.split(found or "''")[0]
