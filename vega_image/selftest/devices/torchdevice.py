"""A device that torch drives: guards around inputs, poison where outputs will be, timing."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vega_image.selftest.devices import endurance, neighbours, speed
from vega_image.selftest.devices.fence import GUARD, GUARD_BYTES, fenced
from vega_image.selftest.devices.programs import UnknownProgramError
from vega_image.selftest.devices.tensors import TORCH, to_array
from vega_image.selftest.seam import Array, Computed, Failed, Outcome, Request
from vega_image.selftest.verdict import Verdict

POISON = 0x7FC0DEAD
"""A quiet NaN in fp32 and bf16, and one half of it in fp16."""
DIRT = 0x3F9E3F9E
"""About 1.24 in fp32 and bf16, 1.9 in fp16: plausible numbers, the worst kind of dirt."""
LEAST_SCRATCH = 1 << 20
WORN = 0xFF
"""Put over every result that was brought back: NaN in all floats, so that no later trial
finds a right answer lying in memory."""
NO_MEMORY = ("can't allocate memory", "not enough memory", "Cannot allocate memory")
REFUSALS = (
    "not implemented",
    "not supported",
    "unsupported",
    "is not available",
    "module 'torch' has no attribute",
)

Compute = Callable[[Request, Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class TorchDevice:
    """`place` is torch's name of the device; `scratch_bytes` says how much to poison."""

    name: str
    source: str
    torch: Any
    place: str
    facts: Mapping[str, object]
    compute: Compute
    scratch_bytes: Callable[[], int]

    def identity(self) -> Mapping[str, object]:
        """Return what was read of the device."""
        return self.facts

    def run(self, request: Request) -> Outcome:
        """Copy in, poison, compute, look at the guards, copy out."""
        try:
            return self._run(request)
        except (MemoryError, self.torch.OutOfMemoryError) as error:
            return Failed(Verdict.CRASHED.value, f"memory limit, or out of memory: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a library raises is its failure
            return _failure(error)

    def _run(self, request: Request) -> Outcome:
        buffers = {name: self._guarded(array) for name, array in request.inputs.items()}
        tensors = {
            name: _inside(self.torch, buffer, request.inputs[name])
            for name, buffer in buffers.items()
        }
        hashes = {name: self._hash(tensor) for name, tensor in tensors.items()}
        blocks = self._poison(request)
        results, seconds, beside = self._computed(request, tensors)
        outputs = {name: to_array(self.torch, results[name]) for name in request.wanted}
        hygiene = [*beside, *self._about_inputs(request, buffers, tensors)]
        if not all(self._is_guard(block) for block in blocks):
            hygiene.append("memory beside the outputs was overwritten")
        self._wear(results)
        return Computed(outputs, seconds, inputs_sha256=hashes, hygiene=tuple(hygiene))

    def _computed(
        self, request: Request, tensors: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], float, tuple[str, ...]]:
        """Compute between guards; return results, seconds and what was written over."""
        if self.place != "cpu":
            fence = neighbours.lay(
                (request.room.get(name, 0) for name in request.wanted),
                guard=lambda size: self._filled(size, GUARD * 0x01010101),
                hole=lambda size: self._filled(size, _pattern(request)),
            )
            results, seconds = self._timed(request, tensors)
            return results, seconds, neighbours.overrun(fence, results, self._is_guard)
        if request.program.startswith((endurance.PREFIX, speed.PREFIX)):
            # A long test makes too many results to keep them all; it counts for itself.
            return *self._timed(request, tensors), ()
        with fenced(self.torch, _pattern(request)) as overrun:
            results, seconds = self._timed(request, tensors)
        return results, seconds, overrun(results)

    def _timed(
        self, request: Request, tensors: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], float]:
        self._finish()
        start = time.perf_counter()
        results = self.compute(request, tensors)
        self._finish()
        return results, time.perf_counter() - start

    def _about_inputs(
        self, request: Request, buffers: Mapping[str, Any], tensors: Mapping[str, Any]
    ) -> Iterator[str]:
        for name, buffer in buffers.items():
            if not self._intact(buffer, len(request.inputs[name].data)):
                yield f"memory around input {name} was overwritten"
            if bytes(self._bytes(tensors[name])) != request.inputs[name].data:
                yield f"input {name} is not what it was before the computation"

    def _wear(self, results: Mapping[str, Any]) -> None:
        for item in results.values():
            flat = self.torch.empty(0, dtype=self.torch.uint8, device=self.place)
            flat.set_(item.detach().untyped_storage()).fill_(WORN)

    def _guarded(self, array: Array) -> Any:
        torch, size = self.torch, len(array.data)
        padded = -(-size // GUARD_BYTES) * GUARD_BYTES
        buffer = torch.full(
            (padded + 2 * GUARD_BYTES,), GUARD, dtype=torch.uint8, device=self.place
        )
        if size:
            host = torch.frombuffer(bytearray(array.data), dtype=torch.uint8)
            buffer[GUARD_BYTES : GUARD_BYTES + size].copy_(host)
        return buffer

    def _intact(self, buffer: Any, size: int) -> bool:
        edges = buffer[:GUARD_BYTES], buffer[GUARD_BYTES + size :]
        return all(bool((edge == GUARD).all()) for edge in edges)

    def _is_guard(self, block: Any) -> bool:
        return bool((block.view(self.torch.uint8) == GUARD).all())

    def _filled(self, size: int, word: int) -> Any:
        signed = word - (1 << 32) if word >> 31 else word
        torch = self.torch
        return torch.full((size // 4,), signed, dtype=torch.int32, device=self.place)

    def _poison(self, request: Request) -> tuple[Any, Any]:
        """Fill memory the allocator will hand out next; leave a guard on either side of it."""
        pattern, guard = _pattern(request), GUARD * 0x01010101
        inputs = sum(len(array.data) for array in request.inputs.values())
        size = min(max(2 * inputs, LEAST_SCRATCH), self.scratch_bytes())
        before = self._filled(GUARD_BYTES, guard)
        hole = self._filled(size, pattern)
        small = [self._filled(GUARD_BYTES, pattern) for _ in range(8)]
        after = self._filled(GUARD_BYTES, guard)
        del hole, small
        return before, after

    def _finish(self) -> None:
        if self.place != "cpu":
            self.torch.cuda.synchronize(self.place)

    def _hash(self, tensor: Any) -> str:
        return hashlib.sha256(self._bytes(tensor)).hexdigest()

    def _bytes(self, tensor: Any) -> Any:
        flat = tensor.detach().to("cpu").contiguous().reshape(-1)
        if not flat.numel():
            return b""
        return flat.view(self.torch.uint8).numpy().data


def _pattern(request: Request) -> int:
    return POISON if request.scratch == "nan" else DIRT


def _inside(torch: Any, buffer: Any, array: Array) -> Any:
    dtype = getattr(torch, TORCH[array.dtype])
    if not math.prod(array.shape):
        return torch.empty(array.shape, dtype=dtype, device=buffer.device)
    inner = buffer[GUARD_BYTES : GUARD_BYTES + len(array.data)]
    return inner.view(dtype).reshape(array.shape)


def _failure(error: Exception) -> Failed:
    text = f"{type(error).__name__}: {error}"
    if any(words in str(error) for words in NO_MEMORY):
        return Failed(Verdict.CRASHED.value, f"memory limit, or out of memory: {text[:1000]}")
    refused = isinstance(error, (NotImplementedError, UnknownProgramError)) or any(
        word in str(error).lower() for word in REFUSALS
    )
    verdict = Verdict.UNSUPPORTED if refused else Verdict.CRASHED
    return Failed(verdict.value, text[:1000])
