"""Which code answers a request's program: the suites' own, or that of the long tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vega_image.selftest.devices import endurance, programs, speed
from vega_image.selftest.seam import Request
from vega_image.selftest.suites.backend import load_torch


def compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compute all outputs of a request. Raises whatever torch raises."""
    torch = load_torch()
    if request.program.startswith(endurance.PREFIX):
        return endurance.run(torch, request.program, tensors, request.attributes)
    if request.program.startswith(speed.PREFIX):
        return speed.run(torch, request.program, tensors, request.attributes)
    return programs.run(torch, request.program, tensors, request.attributes)
