"""What each program's name means, in torch, on whatever device the operands lie."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vega_image.selftest.suites.linalg.table import rows
from vega_image.selftest.suites.ops.reference import outputs_of
from vega_image.selftest.suites.ops.table import operations

Tensors = Mapping[str, Any]
Attributes = Mapping[str, Any]
Program = Callable[[Any, Tensors, Attributes], dict[str, Any]]
GUARD = "guard/"


class UnknownProgramError(Exception):
    """A request names a program that this version does not have."""


def run(torch: Any, program: str, inputs: Tensors, attributes: Attributes) -> dict[str, Any]:
    """Compute a program's outputs as tensors.

    Raises UnknownProgramError for a name that is none, and whatever torch raises.
    """
    kind, _, name = program.partition(".")
    if kind == "conv":
        return _conv(torch, inputs, attributes)
    if kind == "copy":
        return {"y": inputs["x"].clone()}
    if kind == "op":
        return _operation(torch, name, inputs, attributes=attributes)
    if kind == "linalg":
        found = {row.name: row for row in rows()}.get(name)
        if found is not None:
            return found.run(torch, inputs, attributes)
    msg = f"program {program!r}"
    raise UnknownProgramError(msg)


def _conv(torch: Any, inputs: Tensors, attributes: Attributes) -> dict[str, Any]:
    if "a_guard" not in inputs:
        with _own_kernels(torch, inputs["a"], attributes["direction"]):
            return {"y": _direction(torch, inputs["a"], inputs["b"], attributes)}
    y = _direction(torch, inputs["a"], inputs["b"], attributes)
    guard = _direction(torch, inputs["a_guard"], inputs["b_guard"], attributes)
    return {"y": y, "guard": guard}


@contextmanager
def _own_kernels(torch: Any, x: Any, direction: str) -> Iterator[None]:
    """Take torch's own kernel for fp16 weight gradients on a processor, not oneDNN's.

    For these oneDNN has only its reference code on most processors, a hundred times
    slower. Without a guard the sums are exact in any order and width, so either must be right.
    """
    if (x.device.type, x.dtype, direction) != ("cpu", torch.float16, "W"):
        yield
        return
    with warnings.catch_warnings():
        # Setting the flags looks at TF32 too, which warns where there is no Intel GPU.
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def _direction(torch: Any, a: Any, b: Any, attributes: Attributes) -> Any:
    stride, pad, dilation, groups = (
        attributes[name] for name in ("stride", "pad", "dilation", "groups")
    )
    last = torch.channels_last if attributes["layout"] == "NHWC" else torch.contiguous_format
    a, b = a.contiguous(memory_format=last), b.contiguous(memory_format=last)
    if attributes["direction"] == "F":
        return torch.nn.functional.conv2d(a, b, None, stride, pad, dilation, groups)
    backward = torch.ops.aten.convolution_backward
    rest = (None, stride, pad, dilation, False, [0, 0], groups)
    if attributes["direction"] == "B":
        x = torch.empty(attributes["x"], dtype=a.dtype, device=a.device, memory_format=last)
        return backward(a, x, b, *rest, [True, False, False])[0]
    w = torch.empty(attributes["w"], dtype=a.dtype, device=a.device, memory_format=last)
    return backward(b, a, w, *rest, [False, True, False])[1]


def _operation(
    torch: Any, name: str, inputs: Tensors, *, attributes: Attributes
) -> dict[str, Any]:
    op = operations().get(name)
    if op is None:
        msg = f"program 'op.{name}'"
        raise UnknownProgramError(msg)
    op = op.as_variant(attributes["variant"])
    letter = "d" if attributes["direction"] == "bwd" else "y"
    found: dict[str, Any] = {}
    for prefix in ("", GUARD):
        if f"{prefix}x0" not in inputs and prefix:
            continue
        given = _numbered(inputs, f"{prefix}x")
        slopes = _numbered(inputs, f"{prefix}v") if letter == "d" else None
        results = outputs_of(torch, op, given, slopes)
        found.update({f"{prefix}{letter}{i}": y for i, y in enumerate(results)})
    return found


def _numbered(inputs: Tensors, prefix: str) -> list[Any]:
    found: list[Any] = []
    while f"{prefix}{len(found)}" in inputs:
        found.append(inputs[f"{prefix}{len(found)}"])
    return found
