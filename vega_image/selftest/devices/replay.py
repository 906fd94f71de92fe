"""Recorded outcomes as a device, and how they are recorded."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.seam import Array, Computed, Device, Failed, Outcome, Request
from vega_image.selftest.verdict import Verdict

SCHEMA = "vega-selftest-recording/1"
QUICK = 1
"""zlib's fastest: rounded random numbers hardly get smaller, however long one tries."""
Place = tuple[int, int]


@dataclass(frozen=True)
class ReplayDevice:
    """Answers from a file; what the file does not hold is UNPROVEN by being UNSUPPORTED.

    `places` are where each trial's line begins and how long it is: a recording of a long
    level is larger than memory.
    """

    name: str
    facts: Mapping[str, object]
    path: Path
    places: Mapping[str, Place]

    @property
    def source(self) -> str:
        """Say that nothing is computed here."""
        return "replay"

    @classmethod
    def load(cls, path: Path) -> ReplayDevice:
        """Read a recording. Raises SelftestError if it is missing, cut short or foreign."""
        try:
            file = path.open("rb")
        except OSError as error:
            text = f"cannot read {path}: {error.strerror}"
            raise SelftestError(
                "REPLAY",
                text,
                hint="--device replay:FILE, made with --record FILE",
                at=str(path),
            ) from error
        head: Mapping[str, object] = {}
        places: dict[str, Place] = {}
        with file:
            for number, (at, line) in enumerate(_lines(path, file), 1):
                value = _value(path, number, line)
                if number == 1:
                    head = value
                else:
                    _checked(path, number, value)
                    places[str(value["key"])] = (at, len(line))
        if head.get("schema") != SCHEMA:
            raise _damaged(path, 1, f"not of {SCHEMA}")
        identity = head.get("identity")
        return cls(
            f"replay:{path}", identity if isinstance(identity, dict) else {}, path, places
        )

    def identity(self) -> Mapping[str, object]:
        """Return the identity of the device that was recorded."""
        return self.facts

    def run(self, request: Request) -> Outcome:
        """Return what was recorded for this trial."""
        place = self.places.get(request.key)
        if place is None:
            return Failed(Verdict.UNSUPPORTED.value, "the recording holds no such trial")
        with self.path.open("rb") as file:
            file.seek(place[0])
            line = file.read(place[1])
        return _outcome(_value(self.path, 0, line))


@dataclass(frozen=True)
class Recorder:
    """A device whose first answer to every trial is also written to a recording."""

    device: Device
    path: Path
    kept: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """Return the device's name."""
        return self.device.name

    @property
    def source(self) -> str:
        """Return the device's source."""
        return self.device.source

    def identity(self) -> Mapping[str, object]:
        """Return the device's identity."""
        return self.device.identity()

    def run(self, request: Request) -> Outcome:
        """Ask the device and keep the answer; those of repeats are compared, not kept."""
        outcome = self.device.run(request)
        if request.key not in self.kept:
            self.kept.add(request.key)
            self._keep(recorded(request.key, outcome))
        return outcome

    def _keep(self, line: bytes) -> None:
        try:
            # Not made again where an earlier failure removed it.
            with self.path.open("r+b") as file:
                file.seek(0, os.SEEK_END)
                file.write(line)
        except OSError:
            # A full disk is not the device's fault: the parent will miss the file and say so.
            with contextlib.suppress(OSError):
                self.path.unlink()


def begin_recording(path: Path, identity: Mapping[str, object]) -> None:
    """Start a recording. Raises SelftestError (5) if the file cannot be written."""
    head = {"schema": SCHEMA, "identity": dict(identity)}
    try:
        path.write_bytes(json.dumps(head, sort_keys=True).encode() + b"\n")
    except OSError as error:
        text = f"cannot write {path}: {error.strerror}"
        raise _unwritable(path, text) from error


def check_recording(path: Path) -> None:
    """Raise SelftestError (5) where a recording was given up for want of room."""
    if not path.exists():
        text = f"{path}: no room left for the recording; it was removed"
        raise _unwritable(path, text)


def _unwritable(path: Path, text: str) -> SelftestError:
    return SelftestError(
        "RECORDING",
        text,
        exit_code=5,
        hint="choose another place with --record FILE",
        at=str(path),
    )


def recorded(key: str, outcome: Outcome) -> bytes:
    """Write one outcome as a line."""
    if isinstance(outcome, Failed):
        failed = {"verdict": outcome.verdict, "message": outcome.message}
        return (
            json.dumps({"key": key, "failed": failed, "solver": outcome.solver}).encode()
            + b"\n"
        )
    value = {
        "key": key,
        "outputs": {name: _packed(array) for name, array in outcome.outputs.items()},
        "seconds": outcome.seconds,
        "solver": outcome.solver,
        "inputs_sha256": dict(outcome.inputs_sha256),
        "hygiene": list(outcome.hygiene),
    }
    return json.dumps(value, sort_keys=True).encode() + b"\n"


def _packed(array: Array) -> dict[str, object]:
    data = base64.b64encode(zlib.compress(array.data, QUICK)).decode()
    return {"shape": list(array.shape), "dtype": array.dtype, "data": data}


def _lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    at = 0
    for line in file:
        if not line.endswith(b"\n"):
            raise _damaged(path, 0, "cut short")
        yield at, line
        at += len(line)


def _checked(path: Path, number: int, value: Mapping[str, object]) -> None:
    try:
        str(value["key"])
        _outcome(value)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise _damaged(path, number, f"an outcome is damaged: {error}") from error


def _value(path: Path, number: int, line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, number, "not JSON") from error
    if not isinstance(value, dict):
        raise _damaged(path, number, "not an object")
    return value


def _outcome(value: Mapping[str, object]) -> Outcome:
    failed = value.get("failed")
    if isinstance(failed, dict):
        return Failed(str(failed["verdict"]), str(failed["message"]), str(value["solver"]))
    outputs, hashes, hygiene = value["outputs"], value["inputs_sha256"], value["hygiene"]
    if not (
        isinstance(outputs, dict) and isinstance(hashes, dict) and isinstance(hygiene, list)
    ):
        raise TypeError(value["key"])
    seconds = value["seconds"]
    if not isinstance(seconds, (int, float)):
        raise TypeError(seconds)
    return Computed(
        outputs={str(name): _unpacked(packed) for name, packed in outputs.items()},
        seconds=float(seconds),
        solver=str(value["solver"]),
        inputs_sha256={str(name): str(text) for name, text in hashes.items()},
        hygiene=tuple(str(text) for text in hygiene),
    )


def _unpacked(packed: Mapping[str, object]) -> Array:
    shape = packed["shape"]
    if not isinstance(shape, list):
        raise TypeError(shape)
    data = zlib.decompress(base64.b64decode(str(packed["data"]), validate=True))
    return Array(tuple(int(length) for length in shape), str(packed["dtype"]), data)


def _damaged(path: Path, number: int, what: str) -> SelftestError:
    where = f"{path}:{number}" if number else str(path)
    return SelftestError(
        "REPLAY",
        f"{where}: {what}",
        exit_code=4,
        hint="record it again: --record FILE, or copy it again",
        at=where,
    )
