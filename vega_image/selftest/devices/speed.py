"""How fast a device is: products, copies in its memory, copies from and to the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

PREFIX = "speed."
SAMPLES = 64


def run(
    torch: Any, program: str, tensors: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Run one; `rate` is in flop/s or bytes/s. Raises KeyError for a name that is none."""
    table = {"speed.gemm": gemm, "speed.copy": copy, "speed.host": host}
    return table[program](torch, tensors, attributes)


def gemm(
    torch: Any, tensors: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Multiply two matrices again and again; `wrong` counts where the last differs."""
    a, b = tensors["a"], tensors["b"]
    first = a @ b
    last = [first]

    def once() -> None:
        last[0] = a @ b

    rate = _rate(torch, once, a, float(attributes["seconds"])) * 2.0 * a.shape[0] ** 3
    return _told(torch, rate, (last[0] != first).sum(), y=first)


def copy(
    torch: Any, tensors: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Copy a large block within the device's memory: every byte is read and written."""
    source = torch.arange(int(attributes["bytes"]) // 4, device=tensors["seed"].device)
    source = source.to(torch.int32)
    target = torch.zeros_like(source)
    seconds = float(attributes["seconds"])
    rate = _rate(torch, lambda: target.copy_(source), source, seconds)
    wrong = (target != source).sum()
    moved = 2.0 * rate * source.numel() * source.element_size()
    return _told(torch, moved, wrong, y=_sample(target))


def host(
    torch: Any, tensors: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Copy a large block to the device or back, from memory the bus can read directly."""
    place = tensors["seed"].device
    here = torch.arange(int(attributes["bytes"]) // 4, dtype=torch.int32)
    if place.type != "cpu":
        here = here.pin_memory()
    there = here.to(place)
    up = attributes["way"] == "up"
    source, target = (here, torch.zeros_like(there)) if up else (there, torch.zeros_like(here))
    seconds = float(attributes["seconds"])
    rate = _rate(torch, lambda: target.copy_(source, non_blocking=True), there, seconds)
    wrong = (target.to("cpu") != here).sum()
    return _told(torch, rate * here.numel() * here.element_size(), wrong, y=_sample(target))


def _rate(torch: Any, once: Callable[[], Any], near: Any, seconds: float) -> float:
    """Return how often per second, waiting for the device only at both ends of a batch."""
    once()
    _wait(torch, near)
    began = time.perf_counter()
    rounds, batch = 0, 1
    while not rounds or time.perf_counter() - began < seconds:
        for _ in range(batch):
            once()
        _wait(torch, near)
        rounds, batch = rounds + batch, min(2 * batch, 16)
    return rounds / max(time.perf_counter() - began, 1e-9)


def _wait(torch: Any, near: Any) -> None:
    if near.device.type != "cpu":
        torch.cuda.synchronize(near.device)


def _sample(block: Any) -> Any:
    return block[:: max(1, block.numel() // SAMPLES)][:SAMPLES]


def _told(torch: Any, rate: float, wrong: Any, *, y: Any) -> Mapping[str, Any]:
    told = torch.tensor([rate], dtype=torch.float64)
    return {"rate": told, "wrong": wrong.reshape(1), "y": y}
