"""Plant the faults that real kernels have had into right results.

A fault is computed, not drawn: the operation is done again on operands that are wrong in the
fault's own way, and rounded once to the output's format. Where a fault leaves the output as it
was, to the bit, it has no power there: `plant` returns the same bytes and the matrix says N/A.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vega_image.selftest.seam import Array
from vega_image.selftest.suites import rng
from vega_image.selftest.suites.arrays import FLOATS, decode, numbers
from vega_image.selftest.suites.conv.faults import CONV_FAULTS, plant_conv
from vega_image.selftest.suites.conv.oracle import ConvOracle
from vega_image.selftest.suites.ops.faults import plant_op
from vega_image.selftest.suites.ops.oracle import OpOracle
from vega_image.selftest.suites.prepared import Prepared

FAULTS = (
    "wrong-c3-wgrad",
    "swapped-channels",
    "zeroed-channel",
    "filter-transposed",
    "filter-flipped",
    "pad-off-by-one",
    "last-tile-dropped",
    "k-tail-dropped",
    "fp16-accumulation",
    "fp16-internal",
    "bf16-internal",
    "stale-workspace",
    "bit-flip",
    "lost-update",
    "nan-in-padding",
    "garbage-in-padding",
    "dilation-ignored",
    "groups-mixed",
)
PRECISION = ("fp16-accumulation", "fp16-internal", "bf16-internal")
"""The others are structural: some elements are simply not what was asked for."""
ANYWHERE = ("zeroed-channel", "last-tile-dropped", "stale-workspace", "bit-flip")
"""Faults of any array, whatever computed it."""
TILE = 64


class UnknownFaultError(Exception):
    """No fault has this id."""


def plant(
    fault: str, prepared: Prepared, outputs: Mapping[str, Array], *, seed: int = 0
) -> Mapping[str, Array]:
    """Return outputs as a device with this fault would have given them.

    Convolutions know every fault, other operations those that arrays can have. `seed`
    chooses the place where a fault may sit anywhere. Raises UnknownFaultError.
    """
    if fault not in FAULTS:
        msg = f"no fault {fault!r}; there are {', '.join(FAULTS)}"
        raise UnknownFaultError(msg)
    name = f"{fault}/{prepared.request.key}/{seed}"
    oracle = prepared.oracle
    if isinstance(oracle, ConvOracle) and fault in CONV_FAULTS:
        return plant_conv(fault, oracle, outputs, name=name)
    if isinstance(oracle, OpOracle) and fault not in ANYWHERE:
        return plant_op(fault, oracle, outputs, name=name)
    if fault not in ANYWHERE:
        return outputs
    return {key: _anywhere(fault, array, f"{name}/{key}") for key, array in outputs.items()}


def _anywhere(fault: str, array: Array, name: str) -> Array:
    held = numbers(array).copy()
    if held.size == 0:
        return array
    if fault == "bit-flip":
        return _flipped(array, name)
    flat = held.reshape(-1)
    if fault == "zeroed-channel":
        axis = 1 if held.ndim > 2 else 0  # noqa: PLR2004 - images have channels second
        rows = np.moveaxis(held, axis, 0) if held.ndim else flat
        # A list has no channels: an eighth of it.
        width = max(1, flat.size // 8) if held.ndim <= 1 else 1
        first = rng.seed_of(name) % max(1, rows.shape[0] - width + 1)
        rows[first : first + width] = 0
    else:
        tile = min(TILE, max(1, flat.size // 2))
        stale = np.roll(flat, tile)[-tile:] if fault == "stale-workspace" else 0
        flat[-tile:] = stale
    return Array(array.shape, array.dtype, held.tobytes())


def _flipped(array: Array, name: str) -> Array:
    raw = bytearray(array.data)
    place = rng.seed_of(name)
    if array.dtype == "bool":
        raw[place % len(raw)] ^= 1
        return Array(array.shape, array.dtype, bytes(raw))
    width = len(raw) // max(1, int(np.prod(array.shape, dtype=np.int64)))
    element = place % (len(raw) // width)
    bit = (place >> 40) % (8 * width)
    # The sign of a zero is no number: flip the lowest bit there.
    if array.dtype in FLOATS and decode(array).reshape(-1)[element] == 0.0:
        bit %= 8 * width - 1
    raw[element * width + bit // 8] ^= 1 << (bit % 8)
    return Array(array.shape, array.dtype, bytes(raw))
