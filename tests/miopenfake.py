"""A card with MIOpen that is none: for sweeps without a card, at the device seam.

It forces, refuses, substitutes and writes as tests/data/miopen-logs shows the real library to,
in the forms recorded there. Numbers come from numpy, or are wrong on purpose. Its source is
`replay`: nothing it says is about a card.
"""

from __future__ import annotations

import atexit
import mmap
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vega_image.selftest.miopen.problem import directed_key
from vega_image.selftest.miopen.solvers import solvers
from vega_image.selftest.seam import Array, Computed, Failed, Outcome, Request
from vega_image.selftest.suites.arrays import decode, encode
from vega_image.selftest.suites.conv.exact import convolve
from vega_image.selftest.suites.conv.geometry import Geometry

ONLY = "MIOPEN_DEBUG_FIND_ONLY_SOLVER"
APPLICABLE = {
    "F": ("GemmFwdRest", "ConvDirectNaiveConvFwd", "ConvBinWinogradRxSf2x3g1"),
    "B": ("GemmBwdRest", "ConvDirectNaiveConvBwd", "ConvBinWinogradRxSf2x3g1"),
    "W": ("GemmWrwUniversal", "ConvDirectNaiveConvWrw", "ConvOclBwdWrW2<1>"),
}
ALGO = {"F": "Fwd", "B": "BwdData", "W": "BwdWeights"}
FIRST = {"F": "FW", "B": "BWD", "W": "BWrW"}
CARD = {
    "pci": "1002:66af", "subsystem": "1002:081e", "vbios": "113-D3600200-106",
    "unique_id": "0x0000000000000001", "arch": "gfx906:sramecc+:xnack-", "cu": 60,
    "driver": "6.19.0 (fake)",
}  # fmt: skip
LIBRARY = b"not a library; stands for libMIOpen 7.2.4 in tests\n"


@dataclass(frozen=True)
class Fake:
    """`wrong`: solvers whose weight gradients are wrong where C is 3; `acts` by solver."""

    card: Mapping[str, object] = field(default_factory=lambda: CARD)
    library: bytes = LIBRARY
    wrong: tuple[str, ...] = ()
    stands_in: Mapping[str, str] = field(default_factory=dict)
    acts: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    unclean: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()
    held: list[mmap.mmap] = field(default_factory=list)

    name = "fake-miopen"
    source = "replay"

    def __post_init__(self) -> None:
        folder = Path(tempfile.gettempdir()) / f"vega-fake-{os.getpid()}"
        if "MIOPEN_USER_DB_PATH" in os.environ:
            # A child of its own: its parent looks at the library when it has ended.
            folder = Path(os.environ["MIOPEN_USER_DB_PATH"]).parent / "library"
        else:
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        path = folder / "libMIOpen.so.1.0"
        path.write_bytes(self.library)
        with path.open("rb") as file:
            self.held.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def identity(self) -> Mapping[str, object]:
        return self.card

    def run(self, request: Request) -> Outcome:
        direction = str(request.attributes["direction"])
        geometry = geometry_of(request.attributes)
        key = key_of(geometry, str(request.attributes["layout"]), request.dtype, direction)
        forced = os.environ[ONLY]
        say(f"Info [] MIOPEN_FIND_MODE = NORMAL({os.environ['MIOPEN_FIND_MODE']})")
        known = {solver.name: solver.id for solver in solvers()}
        say(f"Info [GetEnvFindOnlySolverImpl] {known[forced]}")
        say(f"Info [FindConvolution] Find Start: {key}, findMode: NORMAL(1)")
        ran = self.stands_in.get(forced, forced)
        if ran not in APPLICABLE[direction]:
            return refuse(key)
        self.acts.get(forced, lambda: None)()
        remember(key, ran, direction)
        outputs = {"y": self.compute(request, geometry, ran, request.scratch)}
        if "guard" in request.wanted:
            outputs["guard"] = answer(geometry, direction, request, ("a_guard", "b_guard"))
        unclean = ("memory beside the outputs was overwritten",) * (ran in self.unclean)
        return Computed(outputs, 0.002, hygiene=unclean)

    def compute(self, request: Request, geometry: Geometry, ran: str, scratch: str) -> Array:
        direction = str(request.attributes["direction"])
        right = answer(geometry, direction, request, ("a", "b"))
        odd = ran in self.changing and scratch == "dirt"
        if odd or (ran in self.wrong and direction == "W" and geometry.c == 3):
            # One input channel's gradient lands in another: fast, plausible, wrong.
            value = decode(right).copy()
            value[:, 0] = value[:, 1]
            return encode(value, request.dtype)
        return right


def say(text: str) -> None:
    os.write(2, f"MIOpen(HIP): {text}\n".encode())


def refuse(key: str) -> Failed:
    say(f"Info [FindConvolution] Find Ended: {key}")
    text = "No suitable algorithm was found to execute the required convolution"
    os.write(2, f"MIOpen Error: HOST:src/ocl/convolutionocl.cpp:1358: {text}\n".encode())
    return Failed("CRASHED", "RuntimeError: miopenStatusUnknownError")


def remember(key: str, ran: str, direction: str) -> None:
    family = "GEMM" if "Gemm" in ran else "Winograd" if "Winograd" in ran else "Direct"
    ms, size = f"{0.25 + len(ran) / 100:.4f}", 7375872 if family == "GEMM" else 0
    algo = f"miopenConvolution{ALGO[direction]}Algo{family}"
    say(f"Info [FindConvolution] Find Ended: {key}")
    first = FIRST[direction]
    say(f"Info [FillFindReturnParameters] {first} Chosen Algorithm: {ran} , {size}, {ms}")
    folder = Path(os.environ["MIOPEN_USER_DB_PATH"])
    record = f"{key}={ran}:{ms},{size},{algo}\n"
    (folder / "gfx906_60.HIP.3_5_1_.ufdb.txt").write_text(record)


def answer(g: Geometry, direction: str, request: Request, names: tuple[str, str]) -> Array:
    a, b = (decode(request.inputs[name]).astype(np.float64) for name in names)
    return encode(convolve(g, direction, a, b), request.dtype)


def geometry_of(attributes: Mapping[str, Any]) -> Geometry:
    n, c, h, w = attributes["x"]
    k, _, r, s = attributes["w"]
    return Geometry(
        n, c, h, w, k, r, s, tuple(attributes["stride"]), tuple(attributes["pad"]),
        tuple(attributes["dilation"]), attributes["groups"],
    )  # fmt: skip


def key_of(g: Geometry, layout: str, dtype: str, direction: str) -> str:
    (p, q), (u, v), (i, j) = g.pad, g.stride, g.dilation
    groups = f"_g{g.groups}" if g.groups > 1 else ""
    forward = (
        f"{g.c}-{g.h}-{g.w}-{g.r}x{g.s}-{g.k}-{g.out[0]}-{g.out[1]}-{g.n}-{p}x{q}-{u}x{v}"
        f"-{i}x{j}-0-{layout}-{dtype.upper()}-F{groups}"
    )
    return directed_key(forward, direction)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hang() -> None:
    threading.Event().wait(300)


def healthy() -> Fake:
    return Fake()


def wrong() -> Fake:
    return Fake(wrong=("ConvOclBwdWrW2<1>",))


def second_card() -> Fake:
    other = {**CARD, "unique_id": "0x0000000000000002", "driver": "6.20.0 (fake)"}
    return Fake(card=other)


def other_library() -> Fake:
    return Fake(library=LIBRARY + b"another build\n")


def substituting() -> Fake:
    return Fake(stands_in={"ConvOclBwdWrW2<1>": "GemmWrwUniversal"})


def deadly() -> Fake:
    return Fake(acts={"ConvDirectNaiveConvWrw": crash, "GemmWrwUniversal": hang})


def unclean() -> Fake:
    return Fake(unclean=("GemmWrwUniversal",), changing=("ConvDirectNaiveConvWrw",))
