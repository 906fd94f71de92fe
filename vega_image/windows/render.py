"""A Windows target -> the exact bytes of `render -o DIR`: what Setup, Packer and people read.

Pure: values in, bytes out. Texts are in templates/windows; the values they place are computed
in answer.py, hcl.py, media.py and manual.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from vega_image.digest import digest, digest_bytes
from vega_image.errors import UsageError
from vega_image.lock import Lock
from vega_image.windows.answer import render_answers
from vega_image.windows.hcl import render_hcl
from vega_image.windows.manual import render_manual
from vega_image.windows.media import render_media
from vega_image.windows.parts import Job, Parts
from vega_image.windows.spec import Platform, WindowsTarget

# Windows PowerShell 5.1 reads a file without a mark in the machine's code page, and cmd.exe in
# the console's: only ASCII is the same in all of them.
_ASCII = (".ps1", ".cmd")
_CRLF = (*_ASCII, ".xml")
# Joliet, which Windows reads and packer's xorriso call makes, has names of 64 characters.
_LONGEST = 64
_BY_COMMANDS = ("media/vega/vega-selftest.pyz",)
_ON_THE_CD = ("media/vega/authorized_keys", "media/vega/drivers")
_BY_OPERATOR = (*_ON_THE_CD, "media/vega/installers")


def render_windows(
    target: WindowsTarget, lock: Lock, *, platform: Platform, parts: Parts
) -> dict[str, bytes]:
    """Return every file of the tree, sorted; `context.json` names the others by digest.

    The same target, lock and texts give the same bytes. Raises UsageError TEMPLATE_ABSENT or
    TEMPLATE_INVALID, for a text that Windows could not read too.
    """
    job = Job(target, lock, platform, parts)
    files: dict[str, bytes] = {}
    made = (render_hcl(job), render_answers(job), render_media(job, image_id(job)))
    given = (parts.stage_files, parts.shared)
    for group in (*made, *given, {"README.md": render_manual(job)}):
        for path, data in group.items():
            if path in files:
                msg = f"{path}: two templates make this file"
                raise UsageError("TEMPLATE_INVALID", msg, at=path)
            files[path] = as_windows_reads(path, data)
    files["plan.json"] = _json(_plan(job))
    files["context.json"] = _json(_context(job, files))
    return dict(sorted(files.items()))


def image_id(job: Job) -> str:
    """Return the digest that the gate knows the image by: what it is made from."""
    return digest(
        {
            "target": job.target.name,
            "version": job.target.version,
            "lock": job.lock.digest,
            "platform": job.platform,
            "stages": {row.name: row.inputs for row in job.parts.stages},
        }
    )


def as_windows_reads(path: str, data: bytes) -> bytes:
    r"""Give texts for Windows its line ends; raises UsageError TEMPLATE_INVALID.

    >>> as_windows_reads("a.cmd", b"echo\n")
    b'echo\r\n'
    """
    name = path.rpartition("/")[2]
    if path.startswith("media/") and len(name) > _LONGEST:
        msg = f"{path}: a CD that Windows reads has names of at most {_LONGEST} characters"
        raise UsageError("TEMPLATE_INVALID", msg, at=path)
    if not path.endswith(_CRLF):
        return data
    if path.endswith(_ASCII):
        foreign = re.search(rb"[^\x00-\x7f]", data)
        if foreign is not None:
            line = data.count(b"\n", 0, foreign.start()) + 1
            at = f"{path}:{line}"
            msg = f"{at}: only ASCII is read alike by every Windows"
            raise UsageError("TEMPLATE_INVALID", msg, at=at)
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _plan(job: Job) -> dict[str, object]:
    return {
        "schema": 1,
        "target": job.target.name,
        "version": job.target.version,
        "platform": job.platform,
        "lock": job.lock.digest,
        "image": image_id(job),
        "unresolved": list(job.unresolved),
        "stages": [
            {
                "stage": row.name,
                "folder": row.folder,
                "strategy": row.strategy,
                "inputs": row.inputs,
                "minutes": row.forecast.minutes.value,
                "disk_gib": row.forecast.disk_gib.value,
                "memory_gib": row.forecast.memory_gib.value,
            }
            for row in job.parts.stages
        ],
    }


def _context(job: Job, files: Mapping[str, bytes]) -> dict[str, object]:
    metal = job.platform is Platform.METAL
    return {
        "target": job.target.name,
        "platform": job.platform,
        "lock": job.lock.digest,
        "rendered": {path: digest_bytes(data) for path, data in sorted(files.items())},
        "placed_by_commands": list(_BY_COMMANDS),
        "placed_by_operator": [
            path for path in _BY_OPERATOR if not (metal and path in _ON_THE_CD)
        ],
    }


def _json(value: Mapping[str, object]) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
