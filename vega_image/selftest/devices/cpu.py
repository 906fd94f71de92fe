"""The processor as a device: a reference run, which says nothing about any card."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from vega_image.selftest.devices.torchdevice import TorchDevice
from vega_image.selftest.devices.torchprograms import compute
from vega_image.selftest.suites.backend import load_torch

SCRATCH_BYTES = 32 << 20


def open_cpu() -> TorchDevice:
    """Return the processor. Raises ImportError without torch."""
    torch = load_torch()
    return TorchDevice(
        name="cpu",
        source="cpu",
        torch=torch,
        place="cpu",
        facts=_identity(str(torch.__version__)),
        compute=compute,
        scratch_bytes=lambda: SCRATCH_BYTES,
    )


def _identity(version: str) -> Mapping[str, object]:
    return {
        "arch": platform.machine(),
        "processor": platform.processor() or platform.machine(),
        "driver": f"torch {version}",
    }
