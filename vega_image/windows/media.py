"""What lies on the second CD below vega/: scripts, first-boot scripts, stages and data. Pure.

Scripts are plain files; what differs from spec to spec stands in settings.json, payload.json
and image.json, which the scripts read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from vega_image.errors import UsageError
from vega_image.windows.parts import Job
from vega_image.windows.spec import Platform

_FIRST_BOOT = "firstboot/windows"
# Windows Setup and Packer call the others; a bare machine gets a Windows that they have made.
_ON_METAL = frozenset(
    {"tell.ps1", "capture.ps1", "first-boot.ps1", "account.ps1", "build-root.ps1"}
)
_ONLY_METAL = frozenset({"capture.ps1"})
# A run of the self-test must end before the clock of its task does.
_RUN_SHARE = (2, 3)


def render_media(job: Job, image: str) -> dict[str, bytes]:
    """Return media/vega of the tree; `image` is the digest that the gate knows the image by.

    Raises UsageError TEMPLATE_ABSENT or TEMPLATE_INVALID.
    """
    files: dict[str, bytes] = {}
    for name, data in job.parts.below("windows/scripts"):
        if _is_for(job.platform, name):
            files[f"scripts/{name}"] = data
    defaults = _defaults(job)
    for name, data in job.parts.below(_FIRST_BOOT):
        files[f"firstboot/{name}"] = _with_defaults(name, data, defaults.get(name, {}))
    files["image.json"] = _json(_image(job, image))
    files["settings.json"] = _json(_settings(job))
    metal = job.platform is Platform.METAL
    if not metal:
        # Only a CD has a payload; stages have their digests in stage.json.
        files["payload.json"] = _json({"schema": 1, "files": list(_payload(job))})
    first = "scripts/capture.ps1" if metal else "scripts/prepare.ps1"
    for name in (first, "scripts/first-boot.ps1", "firstboot/register-task.ps1"):
        if name not in files:
            msg = f"templates/windows: {name} is not there"
            raise UsageError("TEMPLATE_ABSENT", msg, at=name)
    return {f"media/vega/{name}": data for name, data in files.items()}


def _is_for(platform: Platform, script: str) -> bool:
    if platform is Platform.METAL:
        return script in _ON_METAL
    return script not in _ONLY_METAL


def _defaults(job: Job) -> dict[str, dict[str, str]]:
    """Return the parameters whose defaults are the spec's: script -> line -> new line.

    Windows Setup and the task call these scripts without words.
    """
    first = job.target.first_boot
    limit = first.time_limit_minutes
    run = limit * _RUN_SHARE[0] // _RUN_SHARE[1]
    return {
        "register-task.ps1": {
            "[int]$Port = 8080,": f"[int]$Port = {first.port},",
            "[int]$LimitMinutes = 150\n": f"[int]$LimitMinutes = {limit}\n",
        },
        "self-test.ps1": {
            "[string]$Level = 'r2',": f"[string]$Level = '{first.level}',",
            "[int]$LimitMinutes = 100\n": f"[int]$LimitMinutes = {run}\n",
        },
    }


def _with_defaults(name: str, data: bytes, changes: Mapping[str, str]) -> bytes:
    for old, new in changes.items():
        if data.count(old.encode()) != 1:
            at = f"templates/{_FIRST_BOOT}/{name}"
            said = old.strip(", \n")
            msg = f"{at}: the parameter {said} is not there, or twice"
            raise UsageError("TEMPLATE_INVALID", msg, at=at)
        data = data.replace(old.encode(), new.encode())
    return data


def _image(job: Job, image: str) -> dict[str, object]:
    """Return what the gate compares with; the stage `seal` adds the libraries it has made."""
    return {
        "image": image,
        "profile": job.target.finddb,
        "cards": [f"1002:{card.lower()}" for card in job.target.first_boot.cards],
        "hip_dlls": {},
    }


def _settings(job: Job) -> dict[str, object]:
    target = job.target
    return {
        "schema": 1,
        "image": target.name,
        "version": target.version,
        "platform": job.platform,
        "administrator": target.administrator,
        "port": target.first_boot.port,
        "limit_minutes": target.first_boot.time_limit_minutes,
        "updates": {
            "policy": target.updates.policy,
            "block_drivers": target.updates.block_drivers,
        },
    }


def _payload(job: Job) -> Iterator[dict[str, object]]:
    for item in job.payload():
        yield {
            "name": item.name,
            "file": item.file,
            "version": item.version,
            "size": item.size,
            "sha256": item.sha256,
            "where": item.where,
        }


def _json(value: Mapping[str, object]) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
