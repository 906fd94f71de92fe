"""hip[:N] behind the seam with a torch that only says it is HIP: no card was at hand."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.workstation import assemble, edit, facts_of
from vega_image.selftest import hygiene
from vega_image.selftest.devices import hip, opening
from vega_image.selftest.devices.programs import UnknownProgramError
from vega_image.selftest.devices.torchdevice import TorchDevice
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.facts import Facts
from vega_image.selftest.journal import DEVICE_FIELDS
from vega_image.selftest.seam import Array, Computed, Failed, Request

torch = pytest.importorskip("torch")


class Cuda:
    """What torch says of cards; `calls` keeps what was waited for."""

    def __init__(self, count: int, bus: int) -> None:
        self.count, self.bus = count, bus
        self.calls: list[str] = []

    def device_count(self) -> int:
        return self.count

    def get_device_properties(self, _: int) -> object:
        return SimpleNamespace(
            gcnArchName="gfx906:sramecc+:xnack-", multi_processor_count=60, pci_bus_id=self.bus
        )

    def memory_reserved(self, _: int) -> int:
        return 0

    def memory_allocated(self, _: int) -> int:
        return 0

    def synchronize(self, place: str) -> None:
        self.calls.append(place)


class Torch:
    """torch, with a card whose memory is the processor's."""

    def __init__(
        self, *, hip_version: str | None = "6.4", count: int = 1, bus: int = 3
    ) -> None:
        self.version = SimpleNamespace(hip=hip_version)
        self.cuda = Cuda(count, bus)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def full(self, *args: Any, device: object, **rest: Any) -> Any:
        assert str(device).startswith(("cuda", "cpu"))
        return torch.full(*args, **rest)

    def empty(self, *args: Any, device: object, **rest: Any) -> Any:
        assert device
        return torch.empty(*args, **rest)


def compute(request: Request, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    if request.program != "copy":
        raise UnknownProgramError(request.program)
    return {"y": tensors["x"].clone()}


def opened(monkeypatch: pytest.MonkeyPatch, facts: Facts, made: Torch, spec: str) -> Any:
    monkeypatch.setattr(hip, "load_torch", lambda: made)
    monkeypatch.setattr(hip, "read_facts", lambda *_, **__: facts)
    monkeypatch.setattr(hip, "compute", compute)
    monkeypatch.setattr(hip, "LEAST_SCRATCH", 1 << 20)
    return opening.open_device(spec)


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    return facts_of(assemble(tmp_path))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> TorchDevice:
    [card] = facts.cards
    bus = int(str(card.pci_slot).split(":")[1], 16)
    found = opened(monkeypatch, facts, Torch(bus=bus), "hip")
    assert isinstance(found, TorchDevice)
    return found


def test_it_says_what_the_kernel_knows_of_the_card(device: TorchDevice, facts: Facts) -> None:
    assert (device.name, device.source, device.place) == ("hip:0", "device", "cuda:0")
    said, [card] = device.identity(), facts.cards
    assert said["arch"] == "gfx906:sramecc+:xnack-"
    assert (said["cu"], said["driver"]) == (60, "hip 6.4")
    assert (said["pci"], said["subsystem"]) == (card.pci_id, card.subsystem)
    assert (said["vbios"], said["unique_id"]) == (card.vbios, card.unique_id)
    assert hygiene.peak_flops("fp32", said)


def test_it_answers_like_any_device(device: TorchDevice) -> None:
    for count in (0, 3, 1 << 16):
        x = Array((count,), "fp32", struct.pack(f"<{count}f", *range(count)))
        asked = Request("k", "copy", {"x": x}, room={"y": len(x.data)})
        outcome = device.run(asked)
        assert isinstance(outcome, Computed), outcome
        assert outcome.outputs["y"] == x
        assert outcome.inputs_sha256["x"] == hygiene.input_hash(x)
        assert hygiene.flaws(asked, outcome, flops=0, identity={}) == ()
    assert device.torch.cuda.calls[-2:] == ["cuda:0", "cuda:0"]
    assert isinstance(device.run(Request("k", "absent", {})), Failed)


@pytest.mark.parametrize(
    ("made", "spec", "code"),
    [
        (Torch(hip_version=None), "hip", "NO_HIP"),
        (Torch(count=0), "hip:0", "NO_SUCH_CARD"),
        (Torch(count=1), "hip:1", "NO_SUCH_CARD"),
    ],
)
def test_a_torch_without_the_card_is_exit_7(
    monkeypatch: pytest.MonkeyPatch, facts: Facts, made: Torch, spec: str, code: str
) -> None:
    with pytest.raises(SelftestError) as caught:
        opened(monkeypatch, facts, made, spec)
    assert (caught.value.code, caught.value.exit_code) == (code, 7)
    assert caught.value.hint


def test_a_card_is_found_by_its_bus(facts: Facts) -> None:
    [card] = facts.cards
    bus = int(str(card.pci_slot).split(":")[1], 16)
    assert hip.card_on_bus(facts, bus) == card
    # A lone card needs no bus number; of several, an unknown bus is none of them.
    assert hip.card_on_bus(facts, bus + 1) == card


def test_a_narrow_kernel_without_a_serial_number_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = assemble(tmp_path / "x")
    edit(root, "sys/class/kfd/kfd/topology/nodes/1/properties", "unique_id", "other_id")
    for path in root.rglob("unique_id"):
        path.unlink()
    found = opened(monkeypatch, facts_of(root), Torch(), "hip").identity()
    assert found["unique_id"] == "not available"
    assert set(DEVICE_FIELDS) <= set(found)
