"""The statistics of the whole gfx906_60 find-db, fetched by its package's digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.finddbfiles import WHOLE_SHA256, fetch_whole
from vega_image.finddb.lint import lint
from vega_image.finddb.opening import open_db
from vega_image.finddb.stats import count
from vega_image.finddb.text import FindDb, as_read

pytestmark = [pytest.mark.slow, pytest.mark.needs("network")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> FindDb:
    path: Path = fetch_whole(tmp_path_factory.mktemp("whole"))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == WHOLE_SHA256
    return open_db(path)


def test_the_whole_file_comes_back_byte_for_byte(whole: FindDb) -> None:
    assert as_read(whole.records()) == whole.data
    assert all(record.problem.key == record.key for record in whole.records())
    assert not list(whole.flaws())


def test_the_whole_files_statistics(whole: FindDb) -> None:
    stats = count(whole.records())
    assert (stats.records, stats.items) == (120_454, 244_451)
    assert stats.by_direction == {"F": 39_378, "B": 40_538, "W": 40_538}
    assert stats.only_unavailable == {"F": 17_362, "B": 18_447, "W": 18_474}
    assert stats.c3 == {"F": 2_379, "B": 2_627, "W": 2_670}
    assert stats.c3_only_unavailable == {"F": 1_610, "B": 1_859, "W": 1_904}
    kinds = {
        ("F", "FP32", "NCHW"): 23_969, ("B", "FP16", "NCHW"): 10_917,
        ("W", "BF16", "NCHW"): 5_562,
        ("F", "FP16", "NHWC-NHWC-NHWC"): 26, ("F", "INT8", "NCHW"): 48,
        ("W", "FP32", "NCDHW"): 23,
    }  # fmt: skip
    assert {kind: stats.by_kind[kind] for kind in kinds} == kinds
    assert (stats.grouped, stats.volumes) == (6_936, 69)
    assert stats.items_per_record == {1: 62_417, 2: 13_368, 3: 23_617, 4: 20_813, 5: 239}
    kernels = stats.kernels
    assert (kernels["mlir"], kernels["rocblas"], kernels["opencl"]) == (87_807, 64_931, 15_251)
    assert kernels["asm"] + kernels["asm+rocblas"] == 65_655
    assert (kernels["hip"], kernels["naive"], kernels["ck-legacy"]) == (8_029, 2_757, 21)
    assert len(stats.solvers) == 63
    assert stats.unknown_solvers == 0


def test_the_whole_files_fastest_for_colour_weight_gradients(whole: FindDb) -> None:
    winners = count(whole.records()).c3_winners
    assert {name: winners["W", name] for name in (
        "ConvMlirIgemmWrW", "GemmWrwUniversal", "ConvOclBwdWrW53", "ConvOclBwdWrW2NonTunable",
        "ConvBinWinogradRxSf2x3", "ConvWinograd3x3MultipassWrW<3-3>", "ConvOclBwdWrW2<1>",
    )} == {
        "ConvMlirIgemmWrW": 2_018, "GemmWrwUniversal": 263, "ConvOclBwdWrW53": 116,
        "ConvOclBwdWrW2NonTunable": 106, "ConvBinWinogradRxSf2x3": 51,
        "ConvWinograd3x3MultipassWrW<3-3>": 32, "ConvOclBwdWrW2<1>": 15,
    }  # fmt: skip


def test_the_whole_files_findings(whole: FindDb) -> None:
    assert lint(whole).counts == {
        "COMPILED_OUT_SOLVER": 87_807, "NO_USABLE_SOLVER": 54_283, "INELIGIBLE_SOLVER": 21,
    }  # fmt: skip
