"""The processor as a device: a reference run, which says nothing about any card."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from vega_image.selftest.devices.torchdevice import TorchDevice
from vega_image.selftest.devices.torchprograms import compute
from vega_image.selftest.seam import Request
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
        compute=_compute,
        scratch_bytes=lambda: SCRATCH_BYTES,
    )


def _compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convolve 16-bit formats with fp32 sums and one rounding, as the card does.

    torch's own weight gradient in fp16 takes seconds on a processor, and adds in fp16.
    """
    torch = load_torch()
    halves = (torch.float16, torch.bfloat16)
    dtypes = {tensor.dtype for tensor in tensors.values()} & set(halves)
    if not request.program.startswith("conv") or not dtypes:
        return compute(request, tensors)
    dtype = dtypes.pop()
    wide = {
        name: tensor.float() if tensor.dtype == dtype else tensor
        for name, tensor in tensors.items()
    }
    results = compute(request, wide)
    return {name: result.to(dtype) for name, result in results.items()}


def _identity(version: str) -> Mapping[str, object]:
    return {
        "arch": platform.machine(),
        "processor": platform.processor() or platform.machine(),
        "driver": f"torch {version}",
        "halves": "convolutions in fp32, rounded once",
    }
