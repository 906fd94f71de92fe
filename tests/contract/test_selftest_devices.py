"""One contract for every device of selftest: cpu, a replay of it, and a recording of both."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vega_image.selftest import hygiene
from vega_image.selftest.devices.opening import open_device
from vega_image.selftest.devices.replay import Recorder, begin_recording
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.seam import Array, Computed, Device, Failed, Request
from vega_image.selftest.verdict import Verdict

pytest.importorskip("torch")
VALUES = (1.0, -2.0, 3.5, math.inf)
COPY = Request(
    "copy:fp32:fwd:int:0", "copy", {"x": Array((2, 2), "fp32", struct.pack("<4f", *VALUES))}
)
EMPTY = Request("empty:fp32:fwd:int:0", "copy", {"x": Array((0, 3), "fp32", b"")})
HALF = Request(
    "half:fp16:fwd:int:0", "copy", {"x": Array((3,), "fp16", b"\0\x3c\0\x40\xff\x7b")}
)
ABSENT = Request("absent:fp32:fwd:int:0", "no such program", {})
BROKEN = Request("broken:fp32:fwd:int:0", "copy", {})
REQUESTS = (COPY, EMPTY, HALF, ABSENT, BROKEN)


def cpu(_: Path) -> Device:
    return open_device("cpu")


def recorder(folder: Path) -> Device:
    path = folder / "recording"
    begin_recording(path, {"arch": "x"})
    return Recorder(open_device("cpu"), path)


def replay(folder: Path) -> Device:
    device = recorder(folder)
    for request in REQUESTS:
        device.run(request)
    return open_device(f"replay:{folder / 'recording'}")


@pytest.fixture(params=[cpu, recorder, replay], ids=["cpu", "recorder", "replay"])
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Device:
    make: Callable[[Path], Device] = request.param
    return make(tmp_path)


def test_it_says_who_it_is_and_where_its_numbers_come_from(device: Device) -> None:
    assert device.source in {"cpu", "replay"}
    assert device.name
    assert device.identity()


@pytest.mark.parametrize("request_", [COPY, EMPTY, HALF], ids=["copy", "empty", "half"])
def test_it_answers_with_whole_arrays_and_clean_hygiene(
    device: Device, request_: Request
) -> None:
    outcome = device.run(request_)
    assert isinstance(outcome, Computed)
    assert outcome.outputs["y"] == request_.inputs["x"]
    assert outcome.inputs_sha256["x"] == hygiene.input_hash(request_.inputs["x"])
    assert outcome.seconds >= 0
    assert hygiene.flaws(request_, outcome, flops=0, identity={}) == ()


@pytest.mark.parametrize("request_", [ABSENT, BROKEN], ids=["absent", "broken"])
def test_what_it_cannot_do_is_an_answer_and_no_exception(
    device: Device, request_: Request
) -> None:
    outcome = device.run(request_)
    assert isinstance(outcome, Failed)
    assert outcome.verdict in {Verdict.UNSUPPORTED, Verdict.CRASHED}
    assert outcome.message


def test_guards_and_poison_are_real() -> None:
    """A program that writes beside its input, and one that returns what was in memory."""
    from vega_image.selftest.devices.cpu import open_cpu
    from vega_image.selftest.devices.torchdevice import TorchDevice

    made = open_cpu()

    def overrun(_: Request, tensors: object) -> object:
        x = tensors["x"]  # type: ignore[index]
        made.torch.as_strided(x, (1,), (1,), x.storage_offset() - 1).fill_(7.0)
        return {"y": x.clone()}

    bad = TorchDevice(**{**vars(made), "compute": overrun})
    outcome = bad.run(COPY)
    assert isinstance(outcome, Computed)
    assert outcome.hygiene == ("memory around input x was overwritten",)


def test_the_recording_of_a_run_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    replay(tmp_path)
    path = tmp_path / "recording"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[40:], b"", b"{}\n", whole.replace(b"eAE", b"eBE", 1)):
        path.write_bytes(damaged)
        with pytest.raises(SelftestError) as caught:
            open_device(f"replay:{path}")
        assert caught.value.exit_code == 4
    with pytest.raises(SelftestError):
        open_device(f"replay:{tmp_path / 'absent'}")


def test_only_first_answers_are_recorded(tmp_path: Path) -> None:
    """Repeats are compared with the first; keeping all of r4's would fill a disk."""
    begin_recording(tmp_path / "recording", {})
    made = Recorder(open_device("cpu"), tmp_path / "recording")
    for scratch in ("nan", "dirt", "nan"):
        made.run(replace(COPY, scratch=scratch))
    assert len((tmp_path / "recording").read_bytes().splitlines()) == 2


@pytest.mark.parametrize("spec", ["gpu", "hip:x", "cpu:1", "", "replay:", "python:os"])
def test_unknown_devices_are_refused(spec: str) -> None:
    with pytest.raises(SelftestError) as caught:
        open_device(spec)
    assert caught.value.code == "UNKNOWN_DEVICE"


def test_a_torch_without_hip_is_a_host_without_a_card() -> None:
    if os.path.exists("/dev/kfd"):  # noqa: PTH110
        pytest.skip("there is a card here")
    with pytest.raises(SelftestError) as caught:
        open_device("hip")
    assert (caught.value.code, caught.value.exit_code) == ("NO_HIP", 7)
