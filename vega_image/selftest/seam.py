"""The seam between the suite and what computes: everything a device gets and gives.

Arrays cross it as `Array`: raw little-endian C-order bytes with shape and dtype name, so that
a child process, a recording and a real device look the same, and so that a fault planted here
is seen by every oracle. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Union

DTYPE_BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "i64": 8, "i32": 4}
DTYPE_BYTES |= {"u8": 1, "bool": 1}


@dataclass(frozen=True)
class Array:
    """`data` holds the elements in C order, little endian; bf16 is the upper half of fp32."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes


@dataclass(frozen=True)
class Request:
    """Run `program` (a name that suites and devices share) on inputs with attributes.

    `key` is the trial's; `wanted` names the outputs to bring back. `scratch` says what fills
    the memory that outputs and workspaces are taken from: `nan`, or `dirt` (anything else).
    `measured` names outputs that are measurements, which differ from run to run.
    `room` is how many bytes each output takes, where that is known: what to fence.
    """

    key: str
    program: str
    inputs: Mapping[str, Array]
    attributes: Mapping[str, object] = field(default_factory=dict)
    dtype: str = "fp32"
    wanted: tuple[str, ...] = ("y",)
    scratch: str = "nan"
    room: Mapping[str, int] = field(default_factory=dict)
    measured: tuple[str, ...] = ()


@dataclass(frozen=True)
class Computed:
    """The device gave numbers. `hygiene` lists what the harness saw wrong around them.

    `seconds` is the time of the computation alone; `solver` what really ran, if known;
    `inputs_sha256` of the inputs as they were after the copy to the device.
    """

    outputs: Mapping[str, Array]
    seconds: float
    solver: str = ""
    inputs_sha256: Mapping[str, str] = field(default_factory=dict)
    hygiene: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """The device gave none: verdict CRASHED, TIMED_OUT, UNSUPPORTED or SUBSTITUTED, and why."""

    verdict: str
    message: str
    solver: str = ""


Outcome = Union[Computed, Failed]  # noqa: UP007 - evaluated when imported


class Device(Protocol):
    """Something that computes: `cpu`, `hip[:N]`, `replay:FILE`.

    `source` is `device`, `cpu` or `replay`: what every journal line and verdict says.
    """

    @property
    def name(self) -> str:
        """What --device calls it."""
        ...

    @property
    def source(self) -> str:
        """Where its numbers come from."""
        ...

    def identity(self) -> Mapping[str, object]:
        """Say what the journal keeps: pci, subsystem, vbios, unique_id, arch, cu, driver."""
        ...

    def run(self, request: Request) -> Outcome:
        """Compute one request; raises nothing for what the device does wrong."""
        ...
