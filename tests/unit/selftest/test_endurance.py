"""Soak and memory patterns: what the device counts, and what it cannot make up."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from vega_image.selftest import endurance
from vega_image.selftest.endurance import PATTERNS, Size, cases_of, judge, prepare, size_of
from vega_image.selftest.finding import Finding
from vega_image.selftest.levels import TABLE
from vega_image.selftest.reading import NotAvailable
from vega_image.selftest.seam import Array, Computed
from vega_image.selftest.sensors import Sample, judge_samples
from vega_image.selftest.verdict import Verdict

SMALL = Size(side=64, soak=0.01, memory=1 << 16, passes=1, fade=0.01)


@pytest.fixture(scope="module")
def answers() -> dict[str, Computed]:
    pytest.importorskip("torch")
    from vega_image.selftest.devices.opening import open_device

    device = open_device("cpu")
    found = {}
    for _, trial in cases_of(SMALL):
        outcome = device.run(prepare(trial).request)
        assert isinstance(outcome, Computed), outcome
        found[trial.key] = outcome
    return found


def test_every_pattern_and_the_soak_are_right_on_the_processor(
    answers: dict[str, Computed],
) -> None:
    trials = [trial for _, trial in cases_of(SMALL)]
    assert len(trials) == len(PATTERNS) + 2
    for trial in trials:
        assert judge(prepare(trial), answers[trial.key]).verdict == Verdict.MATCH


def test_one_wrong_word_or_sample_shows(answers: dict[str, Computed]) -> None:
    for _, trial in cases_of(SMALL):
        outcome = answers[trial.key]
        for name in ("wrong", "y" if trial.case == "soak" else "sample"):
            array = outcome.outputs[name]
            bent = Array(array.shape, array.dtype, bytes([array.data[0] ^ 1]) + array.data[1:])
            changed = replace(outcome, outputs={**outcome.outputs, name: bent})
            assert judge(prepare(trial), changed).verdict == Verdict.MISMATCH, (trial.key, name)


def test_a_device_that_checked_less_than_asked_shows(answers: dict[str, Computed]) -> None:
    trial = cases_of(SMALL)[0][1]
    less = Array((1,), "i64", struct.pack("<q", 1))
    outputs = {**answers[trial.key].outputs, "checked": less}
    said = judge(prepare(trial), replace(answers[trial.key], outputs=outputs))
    assert said.verdict == Verdict.MISMATCH


@pytest.mark.parametrize("group", ["endurance/soak", "endurance/memory"])
def test_its_checker_checks_itself(group: str) -> None:
    assert endurance.self_check(group)


def test_cards_get_the_whole_of_it_and_others_a_rehearsal() -> None:
    card = size_of(TABLE["r4"], source="device", memory=16 << 30, soak=None)
    assert (card.soak, card.passes, card.fade) == (3600.0, 1000, 60.0)
    assert card.memory > 15 << 30
    rehearsal = size_of(TABLE["r4"], source="cpu", memory=0, soak=None)
    assert rehearsal.soak <= 2
    assert not cases_of(size_of(TABLE["r2"], source="device", memory=16 << 30, soak=None))


def sample(junction: float, megahertz: int) -> Sample:
    return Sample(float(junction), 200.0, megahertz * 1_000_000)


@pytest.mark.parametrize(
    ("samples", "codes"),
    [
        ([], []),
        ([sample(90, 1700)] * 20, []),
        ([sample(106, 1700)] * 20, ["SOAK_TOO_HOT"]),
        ([sample(90, 1700)] * 10 + [sample(90, 1500)] * 10, ["SOAK_CLOCK_FELL"]),
        ([sample(90, 800)] * 5 + [sample(90, 1700)] * 10, []),
        ([Sample(*[NotAvailable("gone")] * 3)] * 9, []),
    ],
)
def test_heat_and_falling_clocks_are_told(samples: list[Sample], codes: list[str]) -> None:
    found: tuple[Finding, ...] = judge_samples(samples)
    assert [item.code for item in found] == codes
