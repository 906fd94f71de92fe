"""From what --device says to a device. Nothing of torch is loaded before it is needed."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.seam import Device

WORDS = "cpu, hip, hip:N, replay:FILE or python:MODULE:FUNCTION"


def open_device(spec: str) -> Device:
    """Open a device. Raises SelftestError: unknown word, no torch, no card, bad recording.

    `python:MODULE:FUNCTION` calls a function that returns a Device: for devices that others
    write, above all broken ones.
    """
    kind, _, rest = spec.partition(":")
    if kind == "replay" and rest:
        from vega_image.selftest.devices.replay import ReplayDevice  # noqa: PLC0415 - closed

        return ReplayDevice.load(Path(rest))
    if kind == "python" and rest.count(":") == 1:
        return _foreign(*rest.split(":"), spec=spec)
    if spec == "cpu":
        return _torch_device("cpu", 0)
    if re.fullmatch(r"hip(:[0-9]{1,3})?", spec):
        return _torch_device("hip", int(rest or "0"))
    raise SelftestError(
        "UNKNOWN_DEVICE", f"no such device: {spec}", hint=f"--device takes {WORDS}", at=spec
    )


def preload(spec: str) -> None:
    """Import what the device's children will need, without touching the device.

    Raises SelftestError if it cannot be imported.
    """
    if spec == "cpu" or spec.startswith("hip"):
        _torch_modules()


def _torch_device(kind: str, index: int) -> Device:
    _torch_modules()
    from vega_image.selftest.devices import cpu, hip  # noqa: PLC0415 - after the check

    return cpu.open_cpu() if kind == "cpu" else hip.open_hip(index)


def _torch_modules() -> None:
    for name in ("numpy", "torch"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise SelftestError(
                "MODULE_MISSING",
                f"this Python cannot import {name}: {error}",
                exit_code=5,
                hint="run it with the image's own Python, or use --device replay:FILE",
                at=name,
            ) from error


def _foreign(module: str, function: str, *, spec: str) -> Device:
    try:
        make = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise SelftestError("UNKNOWN_DEVICE", str(error), at=spec) from error
    return cast("Callable[[], Device]", make)()
