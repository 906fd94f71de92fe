"""From an outcome to a verdict: hygiene, misfits, bounds, DEGRADED, the checker's check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vega_image.selftest.case import Trial
from vega_image.selftest.devices.replay import ReplayDevice
from vega_image.selftest.seam import Computed, Failed
from vega_image.selftest.suites.arrays import decode, encode
from vega_image.selftest.suites.judge import RADEON_VII
from vega_image.selftest.suites.plant import UnknownFaultError
from vega_image.selftest.suites.registry import (
    FAULTS,
    judge,
    plant,
    prepare,
    self_check,
    trials,
)
from vega_image.selftest.tables import cases, find_case
from vega_image.selftest.verdict import Verdict, exit_code

pytest.importorskip("torch")
RECORDING = Path(__file__).parents[3] / "data/selftest/wrong-c3-wgrad.jsonl"
WGRAD = Trial("conv0562", "W", "fp32", "int")
GROUPS = sorted({f"{case.kind}/{case.family}" for case in cases()})


def test_the_historic_bug_is_wrong_for_ever() -> None:
    device = ReplayDevice.load(RECORDING)
    found = []
    for trial in trials([find_case("seed-c3-wrw")], "r2"):
        prepared = prepare(trial)
        judgement = judge(prepared, device.run(prepared.request))
        assert judgement.verdict is Verdict.MISMATCH
        assert judgement.oracle in {"integer", "real"}
        for word in ("seed-c3-wrw", "backward-weights", "first wrong element [", "expected"):
            assert word in judgement.detail
        found.append(judgement.verdict)
    assert len(found) == 4
    assert exit_code(found, degraded_allowed=True) == 8


@pytest.mark.parametrize("verdict", ["CRASHED", "TIMED_OUT", "UNSUPPORTED", "SUBSTITUTED"])
def test_no_numbers_keep_their_word(verdict: str) -> None:
    judgement = judge(prepare(WGRAD), Failed(verdict, "why"))
    assert judgement.verdict == verdict
    assert "why" in judgement.detail


def test_hygiene_comes_before_right_numbers() -> None:
    prepared = prepare(WGRAD)
    right = prepared.oracle.reference()
    clean = Computed(right, 1.0)
    spoiled = [
        replace(clean, hygiene=("guard band of y was written",)),
        replace(clean, inputs_sha256={"a": "0" * 64}),
    ]
    for outcome in spoiled:
        judgement = judge(prepared, outcome)
        assert (judgement.verdict, judgement.oracle) == (Verdict.MISMATCH, "hygiene")
    fast = judge(prepared, replace(clean, seconds=1e-9), peaks=RADEON_VII)
    assert (fast.verdict, fast.oracle) == (Verdict.MISMATCH, "hygiene")
    assert judge(prepared, clean, peaks=RADEON_VII).verdict is Verdict.MATCH


def test_outputs_of_another_shape_format_or_none_at_all_are_wrong() -> None:
    prepared = prepare(WGRAD)
    y = prepared.oracle.reference()["y"]
    for outputs in (
        {},
        {"y": replace(y, shape=y.shape[::-1])},
        {"y": replace(y, dtype="fp64")},
        {"y": replace(y, data=y.data[:-4])},
    ):
        assert judge(prepared, Computed(outputs, 1.0)).verdict is Verdict.MISMATCH


def test_not_finite_is_a_word_of_its_own() -> None:
    prepared = prepare(WGRAD)
    y = prepared.oracle.reference()["y"]
    values = decode(y).copy()
    values.reshape(-1)[5] = np.nan
    outcome = Computed({"y": encode(values, "fp32")}, 1.0)
    assert judge(prepared, outcome).verdict is Verdict.NOT_FINITE


def test_short_sums_of_a_16_bit_format_are_degraded_only_with_a_right_guard() -> None:
    prepared = prepare(Trial("conv0563", "F", "fp16", "acc"))
    right = prepared.oracle.reference()
    coarse = plant("fp16-accumulation", prepared, right)
    assert judge(prepared, Computed(coarse, 1.0)).verdict is Verdict.DEGRADED
    flipped = plant("bit-flip", prepared, right)
    unguarded = {**coarse, "guard": flipped["guard"]}
    assert judge(prepared, Computed(unguarded, 1.0)).verdict is Verdict.MISMATCH


@pytest.mark.parametrize("fault", ["bit-flip", "zeroed-channel", "last-tile-dropped"])
def test_a_wrong_result_beside_a_right_guard_is_not_excused(fault: str) -> None:
    prepared = prepare(Trial("conv0563", "F", "fp16", "acc"))
    right = prepared.oracle.reference()
    outputs = {"y": plant(fault, prepared, right)["y"], "guard": right["guard"]}
    assert judge(prepared, Computed(outputs, 1.0)).verdict is Verdict.MISMATCH


def test_fp32_is_never_degraded() -> None:
    prepared = prepare(Trial("conv0562", "F", "fp32", "real"))
    coarse = plant("fp16-accumulation", prepared, prepared.oracle.reference())
    assert judge(prepared, Computed(coarse, 1.0)).verdict is Verdict.MISMATCH


def test_fractions_on_integers_are_a_transforms_alone() -> None:
    prepared = prepare(Trial("conv0562", "F", "fp32", "wino"))
    y = prepared.oracle.reference()["y"]
    near = {"y": encode(decode(y) + 0.25, "fp32")}
    assert judge(prepared, Computed(near, 1.0)).verdict is Verdict.MISMATCH
    winograd = Computed(near, 1.0, solver="ConvWinograd3x3MultipassWrW<3-6>")
    assert judge(prepared, winograd).verdict is Verdict.MATCH
    far = {"y": encode(decode(y) + 1.0, "fp32")}
    assert judge(prepared, replace(winograd, outputs=far)).verdict is Verdict.MISMATCH


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_checks_its_checker(group: str) -> None:
    assert self_check(group)


def test_a_checker_that_accepts_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from vega_image.selftest.judgement import Judgement
    from vega_image.selftest.suites import selfcheck

    blind = Judgement(Verdict.MATCH, 0.0, 0.0, "integer")
    monkeypatch.setattr(selfcheck, "judge", lambda *_: blind)
    assert not self_check("op/gemm")


def test_a_checker_that_refuses_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from vega_image.selftest.judgement import Judgement
    from vega_image.selftest.suites import selfcheck

    grim = Judgement(Verdict.MISMATCH, 1.0, 0.0, "integer")
    monkeypatch.setattr(selfcheck, "judge", lambda *_: grim)
    assert not self_check("op/gemm")


def test_planting_needs_a_fault_that_there_is() -> None:
    prepared = prepare(WGRAD)
    with pytest.raises(UnknownFaultError, match="zeroed-channel"):
        plant("no-such", prepared, prepared.oracle.reference())
    assert len(FAULTS) == len(set(FAULTS)) == 18
