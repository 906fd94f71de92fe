"""Long tests on a device: products that must stay the same, memory that must keep patterns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

PREFIX = "endurance."
WORD_BYTES = 4
SPLITMIX = 0x9E3779B1
MODULUS = 20


def run(
    torch: Any, program: str, tensors: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Run one. Raises KeyError for a name that is none."""
    table = {"endurance.soak": soak, "endurance.memory": memory}
    return table[program](torch, tensors, attributes)


def soak(
    torch: Any, tensors: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Multiply and convolve the same integers for some seconds; count what ever differs.

    Two counts that do not share code: one by comparison, one by the sum of the result.
    """
    a, b, x, w = (tensors[name] for name in ("a", "b", "x", "w"))
    pad = w.shape[-1] // 2
    first = a @ b
    layer = torch.nn.functional.conv2d(x, w, padding=pad)
    want = (first.double().sum(), layer.double().sum())
    wrong = torch.zeros(2, dtype=torch.int64, device=a.device)
    rounds, until = 0, time.monotonic() + float(attributes["seconds"])
    while time.monotonic() < until or not rounds:
        again, also = a @ b, torch.nn.functional.conv2d(x, w, padding=pad)
        wrong[0] += (again != first).sum() + (also != layer).sum()
        sums = (again.double().sum(), also.double().sum())
        wrong[1] += sum(int(bool(got != was)) for got, was in zip(sums, want))  # noqa: B905
        rounds += 1
    return {"y": first, "layer": layer, "wrong": wrong, "rounds": torch.tensor([rounds])}


def memory(
    torch: Any, tensors: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Write a pattern over much memory, block by block, wait, read it all back.

    `seed` is one word: patterns are made on the device, so what comes back is a count of
    wrong words, the sum of all words and a sample, which the host knows as well.
    """
    place = tensors["seed"].device
    total, block = int(attributes["bytes"]), int(attributes["block"])
    words = min(total, block) // WORD_BYTES
    count = max(1, total // (words * WORD_BYTES))
    make = _pattern(torch, str(attributes["pattern"]), int(attributes["seed"]), place=place)
    blocks = [make(number * words, words) for number in range(count)]
    _hold(torch, float(attributes["hold"]), place)
    wrong = torch.zeros(1, dtype=torch.int64, device=place)
    for number, held in enumerate(blocks):
        wrong += (held != make(number * words, words)).sum()
    sample = torch.stack([held[:: max(1, words // 16)][:16] for held in blocks[:4]])
    checked = torch.tensor([count * words])
    return {"wrong": wrong, "sample": sample, "checked": checked}


def _hold(torch: Any, seconds: float, place: Any) -> None:
    # A fade test needs time to pass with the card at work elsewhere, not a sleeping card.
    until = time.monotonic() + seconds
    filler = torch.ones(256, 256, device=place)
    while time.monotonic() < until:
        filler = filler @ filler * (1.0 / 256)


def _pattern(torch: Any, name: str, seed: int, *, place: Any) -> Callable[[int, int], Any]:
    def address(start: int, words: int) -> Any:
        return torch.arange(start, start + words, dtype=torch.int64, device=place)

    def made(start: int, words: int) -> Any:
        value = words_of(torch, name, address(start, words), seed)
        value = value & 0xFFFFFFFF
        return torch.where(value >= 1 << 31, value - (1 << 32), value).to(torch.int32)

    return made


def words_of(torch: Any, name: str, address: Any, seed: int) -> Any:
    """Return the 32-bit pattern at word addresses, as i64. Raises KeyError for no pattern."""
    zero = torch.zeros_like(address)
    table: dict[str, Callable[[], Any]] = {
        "zeros": lambda: zero,
        "ones": lambda: zero + 0xFFFFFFFF,
        "checker": lambda: torch.where(address % 2 == 0, zero + 0x55555555, zero + 0xAAAAAAAA),
        "walking-one": lambda: torch.bitwise_left_shift(zero + 1, address % 32),
        "walking-zero": lambda: 0xFFFFFFFF - torch.bitwise_left_shift(zero + 1, address % 32),
        "address": lambda: address,
        "mixed": lambda: (address + seed) * SPLITMIX ^ (address >> 7),
        "modulo-20": lambda: torch.where(
            address % MODULUS == seed % MODULUS, zero + 0xFFFFFFFF, zero
        ),
    }
    return table[name]()
