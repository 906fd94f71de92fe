"""Make a trial of a convolution ready."""

from __future__ import annotations

from functools import lru_cache

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.seam import Request
from vega_image.selftest.suites.arrays import encode
from vega_image.selftest.suites.conv.geometry import Geometry, from_params
from vega_image.selftest.suites.conv.inputs import operands
from vega_image.selftest.suites.conv.oracle import ConvOracle
from vega_image.selftest.suites.prepared import Prepared

WORDS = {"F": "forward", "B": "backward-data", "W": "backward-weights"}
NAMES = ("a", "b", "a_guard", "b_guard")


def prepare_conv(case: Case, trial: Trial) -> Prepared:
    """Draw the operands of one direction, and the oracle that knows the answer."""
    return prepare_geometry(case, trial, from_params(case.params), layout=case.layout)


def prepare_geometry(case: Case, trial: Trial, geometry: Geometry, *, layout: str) -> Prepared:
    """Draw the operands of a geometry that a case names."""
    profile = trial.profile.partition(".")[0]
    name = stem(geometry, trial.dtype, trial.direction, profile=profile)
    drawn = operands(geometry, trial.direction, trial.dtype, profile=profile, name=name)
    arrays = {key: encode(value, trial.dtype) for key, value in zip(NAMES, drawn, strict=False)}
    oracle = ConvOracle(
        geometry, trial.direction, trial.dtype, profile, arrays, golden_name(name)
    )
    return prepare_oracle(case, trial, oracle, layout=layout)


def prepare_oracle(case: Case, trial: Trial, oracle: ConvOracle, *, layout: str) -> Prepared:
    """Ask of a device what an oracle knows."""
    geometry = oracle.geometry
    attributes = {**described(geometry), "direction": trial.direction, "layout": layout}
    request = Request(trial.key, "conv", oracle.inputs, attributes, trial.dtype, oracle.wanted)
    where = (
        f"{case.id} {case.name} {WORDS[trial.direction]} ({trial.direction}) {trial.dtype} "
        f"{layout} {trial.profile} [{geometry}]"
    )
    return Prepared(trial, case, request, oracle, where, geometry.flops * len(oracle.wanted))


def stem(geometry: Geometry, dtype: str, direction: str, *, profile: str) -> str:
    """Return what seeds and goldens are named by: not by case, layout, repeat or solver."""
    return f"conv {geometry}:{dtype}:{direction}:{profile}"


@lru_cache(maxsize=4096)
def golden_name(name: str) -> str:
    """Return the short name of a stem in the golden file.

    >>> golden_name("conv 1x3x8x8 -> 4, 3x3 s1x1 p1x1 d1x1 g1:fp32:F:int")
    '1x3x8x8-4-3x3-1x1-1x1-1x1-1:fp32:F'
    """
    shape, dtype, direction, profile = name.rsplit(":", 3)
    short = shape.replace("conv ", "").replace(" -> ", "-").replace(", ", "-")
    for mark in " s", " p", " d", " g":
        short = short.replace(mark, "-")
    return ":".join([short, dtype, direction] + ([] if profile == "int" else [profile]))


def described(geometry: Geometry) -> dict[str, object]:
    """Return a geometry as a request's attributes."""
    return {
        "x": list(geometry.x),
        "w": list(geometry.weights),
        "stride": list(geometry.stride),
        "pad": list(geometry.pad),
        "dilation": list(geometry.dilation),
        "groups": geometry.groups,
    }
