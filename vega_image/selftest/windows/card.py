"""The card of a Windows machine for `selftest run --device hip --facts DIR`."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

from vega_image.selftest.devices.opening import open_device, preload
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.finding import Finding
from vega_image.selftest.identity import Known, not_opened, suite_version
from vega_image.selftest.windows.folder import read_folder
from vega_image.selftest.windows.hip import hip_device
from vega_image.selftest.windows.keying import key_of
from vega_image.selftest.windows.notes import notes_of
from vega_image.selftest.windows.values import Gathered
from vega_image.selftest.windows.verdict import Question, forbidding, told

SPEC = re.compile(r"hip(?::([0-9]{1,3}))?")


def know_gathered(spec: str, folder: Path) -> Known:
    """Know a card by what gather-facts.ps1 wrote, and how to open it.

    Raises SelftestError: no card is asked for (2), or the gate's cause (7, 9).
    """
    known = card_gathered(read_folder(folder), spec, folder=folder, now=time.time())
    preload(spec)
    return replace(known, open=lambda: open_device(spec))


def card_gathered(gathered: Gathered, spec: str, *, folder: Path, now: float) -> Known:
    """Pick the card that the gate judges; its identity is that of the gate's key."""
    wanted = SPEC.fullmatch(spec)
    if wanted is None:
        text = f"--facts tells of a card, {spec} is none"
        raise SelftestError("USAGE", text, hint="--device hip", at=spec)
    question = Question(suite_version(), now)
    if cause := forbidding(gathered, question):
        code = told(cause, gathered, question).exit_code
        raise SelftestError(cause.code, cause.detail, exit_code=code, hint=cause.hint, at=spec)
    device = hip_device(gathered)
    assert device is not None
    if device.index != int(wanted[1] or 0):
        raise SelftestError(
            "NO_SUCH_CARD",
            f"the card is HIP's number {device.index}, not {spec}",
            exit_code=7,
            hint=f"--device hip:{device.index}",
            at=spec,
        )
    key = key_of(gathered, suite=question.suite).to_json()
    told_of = {name: key[name] for name in ("pci", "subsystem", "vbios", "unique_id", "driver")}
    return Known(
        source="device",
        identity={**told_of, "arch": device.arch or "", "cu": device.compute_units or 0},
        open=not_opened,
        findings=tuple(map(_finding, notes_of(gathered))),
        gathered=str(folder),
    )


def _finding(note: str) -> Finding:
    return Finding(
        code="WINDOWS_NOTE", severity="info", title=note, detail="see gate", action="none"
    )
