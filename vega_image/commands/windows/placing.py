"""Put into a tree what nobody renders: the key that may log on, OpenSSH, the drivers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from vega_image.commands.windows.given import (
    KEY,
    OPENSSH,
    VIRTIO,
    Given,
    needed,
    payload_file,
    public_key,
    settings,
)
from vega_image.errors import BytesError, UsageError
from vega_image.process import run
from vega_image.store import disk_errors, write_atomic
from vega_image.windows.manual import DRIVERS
from vega_image.windows.parts import Job

MEDIA: Final = "media/vega"
_FOLDER: Final = "w11/amd64"


def place(job: Job, given: Given, tree: Path) -> None:
    """Copy what was given into media/vega of the tree, once more held against the lock.

    Raises BytesError PAYLOAD_WRONG, or DRIVERS_ABSENT when the driver medium lacks a folder;
    EngineError DISK_FULL; what `payload_file` and `public_key` raise.
    """
    media = tree / MEDIA
    private = given.ssh_key or Path(settings(job, given).get(KEY) or "/nonexistent")
    if given.ssh_key is not None or settings(job, given).get(KEY):
        write_atomic(media / "authorized_keys", public_key(private))
    if given.driver is not None:
        display = media / "drivers" / "display"
        shutil.rmtree(display, ignore_errors=True)
        with disk_errors(display):
            shutil.copytree(given.driver, display)
    for name in needed(job):
        if given.payload is None:
            msg = f"{name}: no folder was given"
            raise UsageError("PAYLOAD_ABSENT", msg, at=name, hint="--payload DIR")
        file = payload_file(job, given.payload, name)
        if name == OPENSSH:
            _copy(file, media / "installers" / file.name)
        elif name == VIRTIO:
            _extract(file, media / "drivers")


def _copy(file: Path, target: Path) -> None:
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(file, target)


def _extract(medium: Path, drivers: Path) -> None:
    """Take the drivers for Windows 11 from the medium of virtio-win, each in its folder.

    What the operator has put beside them stays: the display driver of the card.
    """
    _remove(drivers)
    with disk_errors(drivers):
        drivers.mkdir(parents=True, exist_ok=True)
    argv = ["xorriso", "-osirrox", "on", "-indev", str(medium)]
    for name in DRIVERS:
        argv += ["-extract", f"/{name}/{_FOLDER}", str(drivers / name)]
    done = run(argv)
    empty = [name for name in DRIVERS if not any((drivers / name).glob("*.inf"))]
    if done.returncode or empty:
        _remove(drivers)
        what = f"lacks {', '.join(f'{x}/{_FOLDER}' for x in empty)}" if empty else "is damaged"
        msg = f"{medium}: the driver medium {what}"
        hint = "get virtio-win.iso of the virtio-win project again"
        raise BytesError("DRIVERS_ABSENT", msg, at=str(medium), hint=hint)
    for name in DRIVERS:
        # A CD's files are read-only, and so would be the tree.
        for path in [drivers / name, *(drivers / name).rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def _remove(drivers: Path) -> None:
    for name in DRIVERS:
        shutil.rmtree(drivers / name, ignore_errors=True)
