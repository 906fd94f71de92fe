"""The registry of solvers, and workspaces that follow from a problem."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.finddbfiles import CONV1_W, SLICE, db
from vega_image.finddb.networks import layers, named, network_geometries
from vega_image.finddb.perfdb import config_of, parse_config
from vega_image.finddb.plan import fallback
from vega_image.finddb.problem import parse_key
from vega_image.finddb.registry import COMPILED_OUT, FUSION, WHY_NOT, registry
from vega_image.finddb.workspace import knowable, least
from vega_image.selftest.miopen.solvers import solvers


def test_every_solver_of_the_library_has_its_kind_of_kernels() -> None:
    known = registry()
    fusion = {name for name, one in known.items() if one.kernels == FUSION}
    assert set(known) - fusion == {one.name for one in solvers()}
    assert len(known) == 115
    kinds = Counter(one.kernels for one in known.values())
    assert (kinds["mlir"], kinds["rocblas"], kinds["naive"], kinds["opencl"]) == (6, 9, 3, 13)


def test_59_solvers_apply_on_gfx906_and_11_of_them_are_fallbacks() -> None:
    known = registry().values()
    assert sum(one.applicable == "yes" and not one.opt_in for one in known) == 59
    ids = {one.id for one in known if one.fallback}
    assert ids == {85, 86, 87, 88, 90, 91, 95, 96, 97, 101, 102}
    assert all(one.usable for one in known if one.fallback)
    assert not any(one.usable for one in known if one.kernels in COMPILED_OUT)
    assert all(bool(one.why_not) != one.usable for one in known)
    assert {one.kernels for one in known if one.applicable == "no"} <= set(WHY_NOT)


def test_recorded_workspaces_are_those_of_the_formulas() -> None:
    seen: Counter[str] = Counter()
    for record in db(SLICE.read_bytes()).records():
        for item in record.items:
            need = least(item.solver, record.problem)
            assert need <= item.workspace
            if need > 1:
                assert item.workspace == need
                seen[item.solver] += 1
            assert need == 0 or knowable(item.solver)
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("key", "solver"),
    [
        (CONV1_W, "GemmWrwUniversal"),
        ("3-9-9-1x1-4-9-9-1-0x0-1x1-1x1-0-NCHW-FP32-F", "GemmFwd1x1_0_1"),
        ("3-9-9-1x1-4-5-5-1-0x0-2x2-1x1-0-NCHW-FP32-F", "GemmFwd1x1_0_2"),
        ("3-9-9-1x1-4-5-5-1-0x0-2x2-1x1-0-NCHW-INT8-F", "ConvDirectNaiveConvFwd"),
        ("3-9-9-1x1-4-9-9-1-0x0-1x1-1x1-0-NHWC-NHWC-NHWC-FP16-B", "ConvDirectNaiveConvBwd"),
    ],
)
def test_every_problem_has_a_fallback(key: str, solver: str) -> None:
    assert fallback(parse_key(key)) == solver
    assert registry()[solver].fallback


def test_recorded_gemm_solvers_are_the_ones_the_fallback_names() -> None:
    for record in db(SLICE.read_bytes()).records():
        for item in record.items:
            if item.solver.startswith("Gemm"):
                assert fallback(record.problem) == item.solver, record.key


def test_networks_have_names() -> None:
    assert {one.problem.x_channels for one in named("resnet50")} == {3}
    assert {one.problem.batch for one in named("resnet50_n1")} == {1}
    assert not list(named("no-such-network"))
    assert 50 < len(network_geometries()) < len(layers())
    assert not any(one.of_network for one in layers() if one.name.startswith(("edge_", "dil")))


def test_a_problem_has_its_perf_db_key() -> None:
    forward = "992-7-7-1x1-128-7-7-8-0x0-1x1-1x1-0-NCHW-FP32-F"
    known = "2x992x7x7x1x1x1x1x128x8x0x0x0x1x1x0x1x1x0x0x1xNCHWxFP32xF"
    assert config_of(parse_key(forward)).key == known
    assert parse_config(known).number("out_channels") == 128
    assert config_of(parse_key(CONV1_W)).number("in_channels") == 64
