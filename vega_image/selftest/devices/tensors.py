"""Between the seam's arrays and torch's tensors, byte for byte."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.seam import Array

TORCH = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "u8": "uint8",
    "bool": "bool",
}
NAMES = {name: ours for ours, name in TORCH.items()}


def to_tensor(torch: Any, array: Array, device: str = "cpu") -> Any:
    """Return a tensor with an array's bytes, on a device."""
    dtype = getattr(torch, TORCH[array.dtype])
    if not array.data:
        return torch.empty(array.shape, dtype=dtype, device=device)
    flat = torch.frombuffer(bytearray(array.data), dtype=dtype)
    return flat.reshape(array.shape).to(device)


def to_array(torch: Any, tensor: Any) -> Array:
    """Return a tensor's elements in C order, wherever and however it lies."""
    here = tensor.detach().to("cpu").contiguous()
    dtype = NAMES[str(here.dtype).rpartition(".")[2]]
    raw = here.reshape(-1).view(torch.uint8).numpy().tobytes() if here.numel() else b""
    return Array(tuple(here.shape), dtype, raw)
