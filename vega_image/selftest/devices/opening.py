"""From what --device says to a device. Nothing of torch is loaded before it is needed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import cast

from vega_image.selftest.devices.tensors import TORCH
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.seam import Device
from vega_image.selftest.suite import load_module

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
        load_torch_modules()


def _torch_device(kind: str, index: int) -> Device:
    load_torch_modules()
    from vega_image.selftest.devices import cpu, hip  # noqa: PLC0415 - after the check

    return cpu.open_cpu() if kind == "cpu" else hip.open_hip(index)


def load_torch_modules() -> None:
    """Import numpy and torch. Raises SelftestError (5): not there, broken, or too old."""
    load_module("numpy")
    torch = load_module("torch")
    absent = [name for name in TORCH.values() if not hasattr(torch, name)]
    if absent:
        version = getattr(torch, "__version__", "of no known version")
        raise SelftestError(
            "DTYPE_MISSING",
            f"torch {version} has no {', '.join(absent)}",
            exit_code=5,
            hint="run it with the image's own Python, or with torch 2 or later",
            at="torch",
        )


def _foreign(module: str, function: str, *, spec: str) -> Device:
    try:
        make = getattr(importlib.import_module(module), function)
        device = make()
    except (Exception, SystemExit) as error:
        text = f"cannot be opened: {type(error).__name__}: {error}"
        raise SelftestError(
            "UNKNOWN_DEVICE", text, hint=f"--device takes {WORDS}", at=spec
        ) from error
    methods = [getattr(device, name, None) for name in ("identity", "run")]
    if not all(map(callable, methods)) or not isinstance(getattr(device, "source", None), str):
        text = f"{spec} returns {type(device).__name__}, which is no device"
        hint = "see the protocol in vega_image/selftest/seam.py"
        raise SelftestError("UNKNOWN_DEVICE", text, hint=hint, at=spec)
    return cast("Device", device)
