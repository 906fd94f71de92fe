"""What the person gave for the building of a VM image, held against what is needed for it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vega_image.errors import BytesError, UsageError
from vega_image.lock import LockedFile, LockedIso
from vega_image.process import run, which
from vega_image.sources.iso import measure, verify_iso
from vega_image.store import digest_file
from vega_image.windows.hcl import variables
from vega_image.windows.parts import Job
from vega_image.windows.spec import Platform

OPENSSH: Final = "openssh"
VIRTIO: Final = "virtio"
KEY: Final = "ssh_private_key_file"
KEYGEN: Final = "ssh-keygen"
_OURS: Final = frozenset({"iso_path", "iso_checksum", "output_directory", "serial_log"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What `build` of a Windows target was given; `timeout` in seconds.

    `variables` are NAME=VALUE of packer/variables.pkr.hcl.
    """

    platform: Platform | None = None
    iso: Path | None = None
    payload: Path | None = None
    ssh_key: Path | None = None
    driver: Path | None = None
    timeout: float = 6 * 3600.0
    variables: tuple[str, ...] = ()

    def words(self, job: Job) -> list[str]:
        """Return the options of a command that goes on, with capitals for what is not given."""
        words = (
            [f"--platform {job.platform}"] if job.platform is not job.target.platform else []
        )
        words.append(f"--iso {_word(self.iso, 'FILE')}")
        if needed(job):
            words.append(f"--payload {_word(self.payload, 'DIR')}")
        words.append(f"--ssh-key {_word(self.ssh_key, 'FILE')}")
        if self.driver is not None:
            words.append(f"--driver {_word(self.driver, 'DIR')}")
        return [*words, *(f"--var {shlex.quote(item)}" for item in self.variables)]


def needed(job: Job) -> tuple[str, ...]:
    """Return the sources whose files must be on the second CD: the drivers, and OpenSSH."""
    names = [OPENSSH, *([VIRTIO] if job.drivers else [])]
    return tuple(name for name in names if name in {item.name for item in job.payload()})


def settings(job: Job, given: Given) -> dict[str, str]:
    """Return packer's variables as given, but for secrets and those that we set.

    Raises UsageError BAD_VARIABLE for one that the tree does not declare, sets itself, or
    that is a secret: those go by environment.
    """
    declared = {item.name: item for item in variables(job) if item.name not in _OURS}
    found: dict[str, str] = {}
    for item in given.variables:
        name, sign, value = item.partition("=")
        hint = (
            f"--var NAME=VALUE with {', '.join(n for n in declared if n not in secrets(job))}"
        )
        if not sign or name not in declared or name in found:
            what = "is given twice" if name in found else "is no variable of this tree"
            raise UsageError("BAD_VARIABLE", f"--var {name!r} {what}", at="--var", hint=hint)
        if declared[name].sensitive:
            msg = f"{name} is a secret: a command line can be read by others"
            hint = f"export PKR_VAR_{name}, and leave --var {name} out"
            raise UsageError("BAD_VARIABLE", msg, at="--var", hint=hint)
        found[name] = value
    return found


def secrets(job: Job) -> tuple[str, ...]:
    """Return the names of packer's variables that only the environment may give."""
    return tuple(item.name for item in variables(job) if item.sensitive)


def given_secrets(job: Job, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that the environment gives, as packer reads them: PKR_VAR_NAME."""
    found = {name: environ.get(f"PKR_VAR_{name}", "") for name in secrets(job)}
    return {name: value for name, value in found.items() if value}


def verify_given(
    job: Job, given: Given, *, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> None:
    """Hold every file that was given against the lock, before any work.

    `progress` hears (done, total) in bytes of the medium. Raises UsageError for files that are
    not there or no files, BytesError (exit 4) for other bytes than the locked ones.
    """
    if given.iso is not None:
        locked = medium(job)
        verify_iso(given.iso, size=locked.size, sha256=locked.sha256, progress=progress)
    if given.ssh_key is not None:
        public_key(given.ssh_key)
    if given.driver is not None and not any(given.driver.rglob("*.inf")):
        msg = f"{given.driver}: no .inf below it, so this is no unpacked driver"
        hint = "unpack AMD's installer with an archiver, and name that folder"
        raise UsageError("BAD_DRIVER", msg, at=str(given.driver), hint=hint)
    if given.payload is not None:
        for name in needed(job):
            payload_file(job, given.payload, name)


def driver_digests(folder: Path | None) -> dict[str, str]:
    """Return the files of a driver by their path in it, each with its digest."""
    paths = sorted(folder.rglob("*")) if folder else []
    return {
        path.relative_to(folder or path).as_posix(): digest_file(path)
        for path in paths
        if path.is_file()
    }


def medium(job: Job) -> LockedIso:
    """Return the locked installation medium."""
    locked = job.lock.sources[job.target.edition.source]
    assert isinstance(locked, LockedIso)
    return locked


def public_key(private: Path) -> bytes:
    """Return the public half of a key pair, one line.

    Raises UsageError BAD_SSH_KEY for halves that are absent, no pair, readable by others, or
    behind a passphrase, which packer could not ask for.
    """
    path = private.with_name(f"{private.name}.pub")
    hint = f"ssh-keygen -t ed25519 -f {shlex.quote(str(private))}"
    for file in (private, path):
        if not file.is_file():
            msg = f"there is no file {file}: --ssh-key names the private half, beside its .pub"
            raise UsageError("BAD_SSH_KEY", msg, at=str(file), hint=hint)
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not re.fullmatch(r"(ssh|ecdsa|sk)-[!-~]+ [A-Za-z0-9+/=]+( [^\n]*)?", text):
        msg = f"{path} is no public key of ssh"
        raise UsageError("BAD_SSH_KEY", msg, at=str(path), hint=hint)
    _refuse_no_pair(private, text, hint)
    return f"{text}\n".encode()


def _refuse_no_pair(private: Path, public: str, hint: str) -> None:
    """Let ssh-keygen make the public half anew; without that program `missing` names it."""
    program = which(KEYGEN)
    if program is None:
        return
    done = run([program, "-y", "-P", "", "-f", str(private)])
    said = done.output.strip().splitlines()
    if done.returncode != 0:
        what = next((line for line in said if "incorrect passphrase" in line), "")
        if what:
            what = "it has a passphrase, which packer cannot ask for"
        elif any("UNPROTECTED" in line for line in said):
            what, hint = "others can read it", f"chmod 600 {shlex.quote(str(private))}"
        msg = f"{private}: {what or 'no private key of ssh'}"
        raise UsageError("BAD_SSH_KEY", msg, at=str(private), hint=hint)
    if not said or said[-1].split()[:2] != public.split()[:2]:
        msg = f"{private} and {private.name}.pub are not halves of one key"
        raise UsageError("BAD_SSH_KEY", msg, at=str(private), hint=hint)


def payload_file(job: Job, folder: Path, name: str) -> Path:
    """Return a source's file in the payload folder, once it is the locked one.

    Raises UsageError PAYLOAD_ABSENT, BytesError PAYLOAD_WRONG.
    """
    locked = job.lock.sources[name]
    assert isinstance(locked, LockedFile)
    path = folder / locked.file
    if not path.exists():
        msg = f"there is no file {path}, the source {name} of {job.target.name}"
        hint = f"put it there; vega-image plan {job.target.name} says who publishes it"
        raise UsageError("PAYLOAD_ABSENT", msg, at=str(path), hint=hint)
    found = measure(path)
    if locked.sha256 is not None and found != (locked.size, locked.sha256):
        msg = f"{path} has SHA-256 {found[1]}, the lock wants {locked.sha256}"
        hint = f"get the file again, or vega-image lock {job.target.name} --payload {folder}"
        raise BytesError("PAYLOAD_WRONG", msg, at=str(path), hint=hint)
    return path


def _word(path: Path | None, name: str) -> str:
    return name if path is None else shlex.quote(str(path))
