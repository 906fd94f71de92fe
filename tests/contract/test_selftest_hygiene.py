"""Writes beyond outputs, outputs never written, inputs changed: each is seen on a device."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from vega_image.selftest.case import Trial
from vega_image.selftest.devices import neighbours
from vega_image.selftest.devices.opening import open_device
from vega_image.selftest.devices.torchdevice import TorchDevice
from vega_image.selftest.examine import Examiner
from vega_image.selftest.seam import Array, Computed, Request
from vega_image.selftest.suite import OWN, load_suite
from vega_image.selftest.verdict import Verdict

pytest.importorskip("torch")
MM = Trial("op27", "fwd", "fp32", "int")
STEM = Trial("conv0000", "W", "fp32", "int")
BACKWARD = Trial("op27", "bwd", "fp32", "int")
Compute = Callable[[Request, Mapping[str, Any]], Mapping[str, Any]]


def device(compute: Callable[[TorchDevice], Compute]) -> TorchDevice:
    cpu = open_device("cpu")
    assert isinstance(cpu, TorchDevice)
    return TorchDevice(**{**vars(cpu), "compute": compute(cpu)})


def scribbler(which: int, at: int, count: int) -> TorchDevice:
    """Computes right, then writes `count` bytes `at` bytes past an output's end."""

    def made(cpu: TorchDevice) -> Compute:
        def compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
            results = cpu.compute(request, tensors)
            y = results[request.wanted[which]]
            begin = y.data_ptr() if at < 0 else y.data_ptr() + y.numel() * y.element_size()
            ctypes.memset(begin + at, 0, count)
            return results

        return compute

    return device(made)


@pytest.mark.parametrize("trial", [MM, STEM, BACKWARD], ids=lambda trial: trial.key)
@pytest.mark.parametrize(("at", "count"), [(0, 1), (3, 2), (0, 3000), (-1, 1), (-2000, 1500)])
def test_a_write_beyond_any_output_is_seen_and_named(trial: Trial, at: int, count: int) -> None:
    suite = load_suite(OWN)
    wanted = suite.prepare(trial).request.wanted
    for which, name in enumerate(wanted):
        record = Examiner(suite, scribbler(which, at, count)).examine(trial)
        assert record.verdict == Verdict.MISMATCH
        assert record.oracle == "hygiene"
        assert record.detail == f"memory beside output {name} was overwritten"


def test_one_byte_past_an_input_is_seen() -> None:
    def made(cpu: TorchDevice) -> Compute:
        def compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
            x = tensors["x"]
            ctypes.memset(x.data_ptr() + x.numel() * x.element_size(), 0, 1)
            return cpu.compute(request, tensors)

        return compute

    for length in (1, 1000, 1024):
        given = {"x": Array((length,), "fp32", bytes(4 * length))}
        outcome = device(made).run(Request("copy:fp32:fwd:int:0", "copy", given))
        assert isinstance(outcome, Computed)
        assert outcome.hygiene == ("memory around input x was overwritten",)


def test_an_input_changed_in_place_is_seen() -> None:
    def made(cpu: TorchDevice) -> Compute:
        def compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
            results = cpu.compute(request, tensors)
            tensors["a" if "a" in tensors else "x0"].view(-1)[-1] += 1
            return results

        return compute

    for trial in (MM, STEM):
        record = Examiner(load_suite(OWN), device(made)).examine(trial)
        assert record.verdict == Verdict.MISMATCH
        assert "is not what it was before the computation" in record.detail


def idle(*, after: int) -> TorchDevice:
    """Computes right `after` times; then its kernels no longer start."""
    calls = []

    def made(cpu: TorchDevice) -> Compute:
        def compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
            calls.append(request)
            results = cpu.compute(request, tensors)
            if len(calls) <= after:
                return results
            like = {name: (y.shape, y.dtype) for name, y in results.items()}
            del results
            return {
                name: cpu.torch.empty(shape, dtype=dtype)
                for name, (shape, dtype) in like.items()
            }

        return compute

    return device(made)


@pytest.mark.parametrize("trial", [MM, STEM, BACKWARD], ids=lambda trial: trial.key)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_output_never_written_shows_also_where_the_right_answer_lay(
    trial: Trial, after: int
) -> None:
    record = Examiner(load_suite(OWN), idle(after=after), runs=3).examine(trial)
    assert record.verdict in {Verdict.MISMATCH, Verdict.NOT_FINITE}
    assert after or record.verdict == Verdict.NOT_FINITE


def test_a_result_that_was_brought_back_is_worn_out() -> None:
    kept: list[Any] = []

    def made(cpu: TorchDevice) -> Compute:
        def compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
            kept.append(cpu.compute(request, tensors))
            return kept[-1]  # type: ignore[no-any-return]

        return compute

    given = {"x": Array((2,), "fp32", struct.pack("<2f", 1.0, 2.0))}
    outcome = device(made).run(Request("copy:fp32:fwd:int:0", "copy", given))
    assert isinstance(outcome, Computed)
    assert outcome.outputs["y"] == given["x"]
    assert kept[0]["y"].isnan().all()


class Pool:
    """A pool that keeps blocks as torch does for a card: the smallest that fits is split."""

    def __init__(self, *free: tuple[int, int]) -> None:
        self.free = sorted(free)
        self.bytes: dict[int, int] = {}

    def take(self, size: int, value: int) -> Block:
        rounded = max(-(-size // neighbours.UNIT), 1) * neighbours.UNIT
        small = rounded <= neighbours.SMALL
        fits = [
            (length, begin)
            for begin, length in self.free
            if length >= rounded and (begin < SMALL_END) == small
        ]
        length, begin = min(fits)
        self.free.remove((begin, length))
        least = neighbours.UNIT if small else neighbours.SMALL + 1
        if length - rounded >= least:
            self.free.append((begin + rounded, length - rounded))
            length = rounded
        self.bytes |= dict.fromkeys(range(begin, begin + rounded, neighbours.UNIT), value)
        return Block(self, begin, length, size)

    def give_back(self, begin: int, length: int) -> None:
        self.free.append((begin, length))
        self.free.sort()
        joined: list[tuple[int, int]] = []
        for at, size in self.free:
            if joined and sum(joined[-1]) == at:
                joined[-1] = (joined[-1][0], joined[-1][1] + size)
            else:
                joined.append((at, size))
        self.free = joined


class Block:
    def __init__(self, pool: Pool, begin: int, length: int, size: int) -> None:
        self.pool, self.begin, self.length, self.size = pool, begin, length, size

    def __del__(self) -> None:
        self.pool.give_back(self.begin, self.length)

    def data_ptr(self) -> int:
        return self.begin

    def nbytes(self) -> int:
        return self.size

    def untyped_storage(self) -> Block:
        return self


SMALL_END = 1 << 30
SIZES = (12, 512, 4000, 1 << 20, (1 << 20) + 4, 5 << 20, 37 << 20)


@pytest.mark.parametrize("litter", [[], [(700 * 512, 2 * 512), (900 * 512, 8192)]])
@pytest.mark.parametrize("size", SIZES)
def test_a_pools_next_output_lies_between_guards(
    size: int, litter: list[tuple[int, int]]
) -> None:
    pool = Pool(*litter, (1 << 20, 64 << 20), (2 << 30, 512 << 20), (4 << 30, 3 << 20))
    other = 4096
    fence = neighbours.lay(
        [size, other],
        guard=lambda count: pool.take(count, 0xA5),
        hole=lambda count: pool.take(count, 0),
    )
    outputs = {"y": pool.take(size, 1), "z": pool.take(other, 1)}

    def intact(block: Block) -> bool:
        at = range(block.begin, block.begin + block.size, neighbours.UNIT)
        return all(pool.bytes[place] == 0xA5 for place in at)

    assert neighbours.overrun(fence, outputs, intact) == ()
    for name, block in outputs.items():
        end = block.begin + block.length
        assert fence.between(block.begin, end)
        for place in (end, block.begin - neighbours.UNIT):
            pool.bytes[place] = 7
            said = neighbours.overrun(fence, outputs, intact)
            assert said == (f"memory beside output {name} was overwritten",)
            pool.bytes[place] = 0xA5


def test_a_guard_that_is_beside_no_output_is_told_as_well() -> None:
    pool = Pool((1 << 20, 64 << 20))
    fence = neighbours.lay(
        [4096],
        guard=lambda count: pool.take(count, 0xA5),
        hole=lambda count: pool.take(count, 0),
    )
    between = pool.take(1 << 14, 1)
    far = {"y": pool.take(1 << 16, 1)}
    assert between is not None
    assert neighbours.overrun(fence, far, lambda _: False) == (
        "memory beside the outputs was overwritten",
    )
