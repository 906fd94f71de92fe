"""What is wrong with an answer before its numbers are looked at. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping

from vega_image.selftest.seam import DTYPE_BYTES, Array, Computed, Request

PEAK_FLOPS = {"fp32": 13.44e12, "fp16": 26.9e12, "bf16": 13.44e12, "fp64": 3.36e12}
"""Radeon VII: 60 compute units, 64 lanes, 2 operations, 1.75 GHz; others in proportion."""
PEAK_CLOCK_MARGIN = 1.05
REFERENCE_UNITS = 60
PEAK_BYTES = 1024e9
"""Bytes per second of a Radeon VII's four stacks of HBM2."""
PEAK_BYTES_MARGIN = 1.02
CACHE_BYTES = 4 << 20
COPY_PROGRAM = "op.op95"


def flaws(
    request: Request, outcome: Computed, *, flops: float, identity: Mapping[str, object]
) -> tuple[str, ...]:
    """Name everything that makes the answer unusable, whatever its numbers say."""
    return (
        *_malformed(request, outcome),
        *_changed_inputs(request, outcome),
        *_impossible(request, outcome, flops, identity),
        *outcome.hygiene,
    )


def digest(outputs: Mapping[str, Array], *, but: Collection[str] = ()) -> str:
    """Hash all outputs but some, names, shapes and types included."""
    sha = hashlib.sha256()
    for name in sorted(set(outputs) - set(but)):
        array = outputs[name]
        sha.update(f"{name}:{array.dtype}:{array.shape}:".encode())
        sha.update(array.data)
    return sha.hexdigest()


def input_hash(array: Array) -> str:
    """Hash one input's bytes, as a device reports it back in `inputs_sha256`."""
    return hashlib.sha256(array.data).hexdigest()


def _malformed(request: Request, outcome: Computed) -> Iterator[str]:
    for name in request.wanted:
        if name not in outcome.outputs:
            yield f"output {name} is missing"
    for name, array in outcome.outputs.items():
        if name not in request.wanted:
            yield f"output {name} was not asked for"
        width = DTYPE_BYTES.get(array.dtype)
        if width is None:
            yield f"output {name} has the unknown type {array.dtype}"
        elif min(array.shape, default=0) < 0 or (
            len(array.data) != math.prod(array.shape) * width
        ):
            yield f"output {name} has {len(array.data)} bytes, not those of its shape"


def _changed_inputs(request: Request, outcome: Computed) -> Iterator[str]:
    for name, seen in outcome.inputs_sha256.items():
        given = request.inputs.get(name)
        if given is not None and input_hash(given) != seen:
            yield f"input {name} is not on the device what it was on the host"
    if outcome.inputs_sha256:
        for name in request.inputs.keys() - outcome.inputs_sha256.keys():
            yield f"input {name} was not read back from the device"


def _impossible(
    request: Request, outcome: Computed, flops: float, identity: Mapping[str, object]
) -> Iterator[str]:
    if not math.isfinite(outcome.seconds) or outcome.seconds < 0:
        yield f"impossible time: {outcome.seconds} s"
        return
    peak = peak_flops(request.dtype, identity)
    if peak and flops > 0 and flops > outcome.seconds * peak * PEAK_CLOCK_MARGIN:
        rate = flops / outcome.seconds / 1e12 if outcome.seconds else math.inf
        yield f"impossible speed: {rate:.3g} Tflop/s of at most {peak / 1e12:.3g}"

    moved = moved_at_least(request) if peak_flops("fp32", identity) else 0.0
    if moved > outcome.seconds * PEAK_BYTES * PEAK_BYTES_MARGIN:
        rate = moved / outcome.seconds / 1e9 if outcome.seconds else math.inf
        yield f"impossible speed: {rate:.3g} GB/s of at most {PEAK_BYTES / 1e9:.4g}"


def moved_at_least(request: Request) -> float:
    """Return the bytes that must pass through the card's memory, 0 if nobody can say.

    Only for convolutions and copies: others may hand back a view, or read a part of a table.
    A convolution may skip inputs by its stride, but writes every output; what fits the cache
    need not have arrived in memory yet.
    """
    if request.program not in {"conv", "copy", COPY_PROGRAM}:
        return 0.0
    moved = sum(request.room.get(name, 0) for name in request.wanted)
    if request.program != "conv":
        moved += sum(len(array.data) for array in request.inputs.values())
    return float(max(moved - CACHE_BYTES, 0))


def peak_flops(dtype: str, identity: Mapping[str, object]) -> float:
    """Return the card's peak for a type in 1/s; 0 if nothing is known of the device."""
    if not str(identity.get("arch", "")).startswith("gfx906"):
        return 0.0
    units = identity.get("cu")
    share = units / REFERENCE_UNITS if isinstance(units, int) and units > 0 else 1.0
    return PEAK_FLOPS.get(dtype, 0.0) * max(share, 1.0)
