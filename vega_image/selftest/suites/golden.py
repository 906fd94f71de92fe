"""Write the golden hashes: only where two independent implementations agree bit for bit.

One is numpy: unfolded windows and matrix products in fp32 where a certificate says that every
partial sum is a whole number below 2^24, else in fp64. The other is torch's fp32 convolution
on the processor. The operands come from our own generator, so no library can move a hash.
"""

from __future__ import annotations

import json
import os
import signal
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.devices import programs
from vega_image.selftest.devices.tensors import to_array, to_tensor
from vega_image.selftest.seam import Array, Request
from vega_image.selftest.suites.arrays import HALVES, MANTISSA, decode, digest, encode
from vega_image.selftest.suites.backend import load_torch
from vega_image.selftest.suites.conv.exact import convolve
from vega_image.selftest.suites.conv.geometry import from_params
from vega_image.selftest.suites.conv.inputs import ACCUMULATOR, guard_range, integer_range
from vega_image.selftest.suites.conv.oracle import ConvOracle
from vega_image.selftest.suites.conv.prepare import golden_name, prepare_conv, stem
from vega_image.selftest.suites.golden_table import SCHEMA, tables_sha256
from vega_image.selftest.suites.ops.op import Bilinear
from vega_image.selftest.suites.ops.oracle import OpOracle
from vega_image.selftest.suites.ops.prepare import prepare_op
from vega_image.selftest.suites.ops.products import product
from vega_image.selftest.suites.ops.table import operations
from vega_image.selftest.suites.prepared import Prepared
from vega_image.selftest.tables import cases, find_case

NDArray = npt.NDArray[Any]
PROFILE, WIDE = "int", "wide-a"
CHUNK = 10
CHANNEL = 64


class DisagreementError(Exception):
    """Two implementations differ, or a certificate does not hold: no hash is written."""


@dataclass(frozen=True)
class Entry:
    """A name in the golden file, and how to make its trial ready."""

    name: str
    prepare: Callable[[], Prepared]


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """Return what the golden file holds, in its order."""
    return tuple(_entries())


def _entries() -> Iterator[Entry]:
    """Return what the golden file holds: each geometry once a format, and the products."""
    for op in operations().values():
        if isinstance(op.bound, Bilinear) and op.bound.contraction is not None:
            yield from _products(op.id)
    seen: set[str] = set()
    for case in cases():
        if case.kind != "conv":
            continue
        for trial in _trials(case):
            profile = trial.profile
            geometry = from_params(case.params)
            name = golden_name(stem(geometry, trial.dtype, trial.direction, profile=profile))
            if name not in seen:
                seen.add(name)
                yield Entry(name, _later(case, trial))


def _trials(case: Case) -> Iterator[Trial]:
    first_boot = case.tier == "r2" and case.dtypes == ("fp32",)
    for profile in (PROFILE, *((WIDE,) if first_boot else ())):
        for direction in case.directions:
            yield Trial(case.id, direction, case.dtypes[0], profile)


def _later(case: Case, trial: Trial) -> Callable[[], Prepared]:
    return lambda: (prepare_conv if case.kind == "conv" else prepare_op)(case, trial)


def _products(op_id: str) -> Iterator[Entry]:
    op, case = operations()[op_id], find_case(op_id)
    for dtype in op.dtypes:
        for direction in op.directions:
            for number in range(len(op.variants) + 1):
                profile = PROFILE + (f".{number}" if number else "")
                trial = Trial(op_id, direction, dtype, profile)
                yield Entry(f"{op_id}:{dtype}:{direction}:{profile}", _later(case, trial))


def hashed(prepared: Prepared) -> str:
    """Return the SHA-256 both implementations agree on. Raises DisagreementError."""
    oracle = prepared.oracle
    if isinstance(oracle, ConvOracle):
        first: Mapping[str, Array] = oracle.reference()
        if not certificate(oracle):
            msg = f"{prepared.where}: sums may leave the format"
            raise DisagreementError(msg)
    else:
        assert isinstance(oracle, OpOracle)
        first = product(oracle)
    second = _torch(prepared.request, oracle.expects)
    names = tuple(oracle.expects)
    one, other = digest(first, names), digest(second, names)
    if one != other:
        msg = f"{prepared.where}: two implementations differ"
        raise DisagreementError(msg)
    if any(dull(array, images=isinstance(oracle, ConvOracle)) for array in first.values()):
        msg = f"{prepared.where}: a kernel that writes nothing would be right"
        raise DisagreementError(msg)
    return one


def dull(array: Array, *, images: bool) -> bool:
    """Whether right outputs, or a large channel of images, hold nothing or one number only."""
    values = decode(array)
    if values.size > 1 and bool((values == values.flat[0]).all()):
        return True
    channels = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1) if images else values
    if not images or channels.shape[1] < CHANNEL:
        return not values.any()
    return not bool(channels.any(axis=1).all())


def certificate(oracle: ConvOracle) -> bool:
    """Whether every partial sum, in any order, is a number the format holds.

    True by the range alone where it is hard; where an operand was thinned the sums of
    magnitudes are computed.
    """
    terms = oracle.geometry.terms(oracle.direction)
    if oracle.dtype in HALVES:
        share, limit = guard_range(terms, oracle.dtype).share, 1 << MANTISSA[oracle.dtype]
    else:
        share, limit = (
            integer_range(terms, oracle.dtype, oracle.profile).share,
            1 << ACCUMULATOR,
        )
    if share >= 1.0:
        return True
    left, right = (np.abs(decode(oracle.inputs[n])).astype(np.float32) for n in ("a", "b"))
    sums = convolve(oracle.geometry, oracle.direction, left, right)
    return float(sums.max()) <= limit


def _torch(
    request: Request, expects: Mapping[str, tuple[tuple[int, ...], str]]
) -> Mapping[str, Array]:
    torch = load_torch()
    tensors = {name: to_tensor(torch, array) for name, array in request.inputs.items()}
    # Products in fp64: 16-bit kernels of a processor may round between.
    wide = torch.float32 if request.program == "conv" else torch.float64
    given = {name: x.to(wide) if x.is_floating_point() else x for name, x in tensors.items()}
    found = programs.run(torch, request.program, given, request.attributes)
    return {
        name: encode(decode(to_array(torch, found[name])), dtype)
        for name, (_, dtype) in expects.items()
    }


def document(progress: Callable[[int, int], None] = lambda _done, _all: None) -> str:
    """Return the golden file's text, made by as many processes as there are processors.

    Raises DisagreementError.
    """
    count = len(entries())
    # The children's matrix libraries read this once, when they are loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found: dict[str, str] = {}
    pool = ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=_begin)
    try:
        for name, value in pool.map(one, range(count), chunksize=CHUNK):
            found[name] = value
            progress(len(found), count)
    finally:
        # After Ctrl-C or a disagreement nobody waits for the rest.
        pool.shutdown(cancel_futures=True)
    return text(found)


def _begin() -> None:
    # The parent hears of Ctrl-C and ends the others, each after its chunk.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def one(number: int) -> tuple[str, str]:
    """Return the name and the base64 of the hash of one entry."""
    entry = entries()[number]
    return entry.name, b64encode(bytes.fromhex(hashed(entry.prepare()))).decode()


def text(hashes: Mapping[str, str]) -> str:
    """Return a golden file for these hashes (base64, by name)."""
    body = {"schema": SCHEMA, "tables": tables_sha256(), "sha256": hashes}
    return json.dumps(body, indent=0, sort_keys=True) + "\n"
