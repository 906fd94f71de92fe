"""A tiny suite and devices that do everything wrong a device can, for the harness's tests."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array, Computed, Failed, Outcome, Request
from vega_image.selftest.verdict import Verdict

NAME = "tests.selftestfakes"
FAULTS = ("off-by-one",)
RIGHT = b"\x2a\x00\x00\x00"


@dataclass(frozen=True)
class Asked:
    request: Request
    flops: float = 0.0


def case(name: str, family: str = "fake", *, allowed: bool = False) -> Case:
    return Case(
        id=name, kind="op", name=name, family=family, tier="r1", dtypes=("i32",),
        directions=("fwd",), source="a test", oracle="integer", bound="0", why="a test",
        unsupported_allowed=allowed,
    )  # fmt: skip


def item(name: str, family: str = "fake", rep: int = 0) -> tuple[Case, Trial]:
    return case(name, family), Trial(name, "fwd", "i32", "int", rep)


def trials(cases: Sequence[Case], level: str, /) -> Iterator[Trial]:
    del level
    yield from (Trial(one.id, "fwd", "i32", "int") for one in cases)


def prepare(trial: Trial, /) -> Asked:
    if trial.case == "unpreparable":
        msg = "no such shape"
        raise ValueError(msg)
    given = {"x": Array((1,), "i32", RIGHT)}
    flops = 1e15 if trial.case == "fast" else 0.0
    return Asked(Request(trial.key, trial.case, given, dtype="fp32"), flops)


def judge(prepared: Asked, outcome: Outcome, /) -> Judgement:
    assert isinstance(outcome, Computed)
    if prepared.request.program == "unjudgeable":
        msg = "oracle bug"
        raise ValueError(msg)
    right = outcome.outputs["y"].data == RIGHT
    verdict = Verdict.MATCH if right else Verdict.MISMATCH
    oracle = "real" if prepared.request.program.startswith("real") else "integer"
    return Judgement(verdict, 0.0 if right else 1.0, 0.0, oracle, "" if right else "y[0]")


def plant(fault: str, prepared: Asked, outputs: Mapping[str, Array], /) -> Mapping[str, Array]:
    if fault == "nothing":
        return outputs
    del prepared
    return {name: Array(one.shape, one.dtype, b"\x2b\0\0\0") for name, one in outputs.items()}


def self_check(group: str, /) -> bool:
    if group == "op/deadly":
        os.kill(os.getpid(), signal.SIGSEGV)
    return group != "op/blind"


def computed(data: bytes = RIGHT, **rest: object) -> Computed:
    outcome = Computed({"y": Array((1,), "i32", data)}, 0.001)
    return Computed(**{**vars(outcome), **rest})


class Device:
    """What it does is the program's name; a name it does not know is computed right."""

    name = "fake"
    source = "cpu"

    def __init__(self, identity: Mapping[str, object] | None = None) -> None:
        self._identity = identity or {}
        self._runs: dict[str, int] = {}

    def identity(self) -> Mapping[str, object]:
        return self._identity

    def run(self, request: Request) -> Outcome:
        runs = self._runs[request.key] = self._runs.get(request.key, 0) + 1
        act = getattr(self, f"_{request.program.replace('-', '_')}", None)
        if act is not None:
            return act()  # type: ignore[no-any-return]
        if request.program == "dirty" and request.scratch == "dirt":
            return computed(b"\x2b\0\0\0")
        if request.program == "real-spill" and runs == 3:
            return computed(hygiene=("memory beside the outputs was overwritten",))
        if request.program in {"rare", "real-rare"} and runs == 3:
            return computed(b"\x2b\0\0\0")
        if request.program.endswith("per-process"):
            return computed() if os.environ.get("FIRST_PROCESS") else computed(os.urandom(4))
        return computed()

    def _segv(self) -> Outcome:
        os.kill(os.getpid(), signal.SIGSEGV)
        return computed()

    def _abort(self) -> Outcome:
        os.abort()

    def _kill(self) -> Outcome:
        os.kill(os.getpid(), signal.SIGKILL)
        return computed()

    def _quit(self) -> Outcome:
        os._exit(0)

    def _exit3(self) -> Outcome:
        os.write(2, b"the driver gave up\n")
        os._exit(3)

    def _hang(self) -> Outcome:
        threading.Event().wait(60)
        return computed()

    def _deaf(self) -> Outcome:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Event().wait(60)
        return computed()

    def _frozen(self) -> Outcome:
        os.kill(os.getpid(), signal.SIGSTOP)
        return computed()

    def _memory(self) -> Outcome:
        return computed(bytes(1 << 40)[:4])

    def _greedy(self) -> Outcome:
        # A gigabyte and a half that nobody touches costs an unlimited process nothing.
        return computed() if bytes(3 << 29) else computed(b"")

    def _raises(self) -> Outcome:
        msg = "HIP error: an illegal memory access was encountered"
        raise RuntimeError(msg)

    def _liar(self) -> Outcome:
        return Failed("MATCH", "trust me")

    def _nothing(self) -> Outcome:
        return None  # type: ignore[return-value]

    def _absent(self) -> Outcome:
        return Failed("UNSUPPORTED", "no such operation")

    def _wrong(self) -> Outcome:
        return computed(b"\x2b\0\0\0")

    def _short(self) -> Outcome:
        return Computed({"y": Array((1,), "i32", RIGHT[:3])}, 0.001)

    def _unnamed(self) -> Outcome:
        return Computed({"z": Array((1,), "i32", RIGHT)}, 0.001)

    def _guard(self) -> Outcome:
        return computed(hygiene=("memory around input x was overwritten",))

    def _moved(self) -> Outcome:
        return computed(inputs_sha256={"x": "0" * 64})

    def _back(self) -> Outcome:
        return computed(seconds=-1.0)

    def _orphan(self) -> Outcome:
        if os.fork() == 0:
            # Holds our pipe open after its parent has died.
            time.sleep(60)
            os._exit(0)
        os._exit(0)

    def _garbage(self) -> Outcome:
        for number in range(3, 30):
            try:
                os.write(number, b"hello\n")
            except OSError:
                continue
        return computed()

    def _cut(self) -> Outcome:
        for number in range(3, 30):
            try:
                os.write(number, b'{"kind": "do')
            except OSError:
                continue
        os._exit(0)


class Dying(Device):
    """Says that it is a card, and takes every process with it."""

    source = "device"

    def run(self, request: Request) -> Outcome:
        del request
        return self._segv()


def make_dying() -> Device:
    return Dying()


def make_odd() -> object:
    """The processor, which says of itself what no journal can hold."""
    from dataclasses import replace

    from vega_image.selftest.devices.cpu import open_cpu

    return replace(open_cpu(), facts={"pci": object(), "cu": float("nan"), "arch": None})


def make_nameless() -> object:
    """A device that fails to say what it is."""

    class Nameless(Device):
        def identity(self) -> Mapping[str, object]:
            msg = "no such register"
            raise OSError(msg)

    return Nameless()


def make_leaving() -> Device:
    """Leave with a good exit code instead of opening anything."""
    raise SystemExit(0)


def make_none() -> None:
    """Open nothing."""


def make_sourceless() -> object:
    """What has a device's methods and does not say where its numbers come from."""

    class Sourceless:
        def identity(self) -> Mapping[str, object]:
            return {}

        def run(self, request: Request) -> Outcome:
            del request
            return computed()

    return Sourceless()


def make_ending() -> object:
    """A device that ends the process, with a good exit code, when asked what it is."""

    class Ending(Device):
        def identity(self) -> Mapping[str, object]:
            raise SystemExit(0)

    return Ending()


def make_boastful() -> object:
    """The processor, saying that it is a card of a fitting kind."""
    from dataclasses import replace

    from vega_image.selftest.devices.cpu import open_cpu

    facts = {"pci": "1002:66af", "subsystem": "1002:081e", "vbios": "113-D3600200-106",
             "unique_id": "0123456789abcdef", "driver": "6.7.0"}  # fmt: skip
    return replace(open_cpu(), source="device", facts=facts)


def make() -> Device:
    return Device()


def make_card() -> Device:
    return Device({"arch": "gfx906", "cu": 60})
