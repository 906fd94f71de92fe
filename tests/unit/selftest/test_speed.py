"""Too fast is nothing computed, too slow is ill, and no processor passes for a card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import selftestfakes as fakes
from tests.workstation import assemble, facts_of, write
from vega_image.selftest import hygiene, speed
from vega_image.selftest.examine import Examiner
from vega_image.selftest.identity import Known, card_of
from vega_image.selftest.levels import TABLE
from vega_image.selftest.reading import Sysroot
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.result import Result
from vega_image.selftest.seam import Array, Computed, Request
from vega_image.selftest.seen import Seen
from vega_image.selftest.suite import load_suite
from vega_image.selftest.verdict import Verdict

CARD = {"arch": "gfx906", "cu": 60}
FULL = 1.75e9


def graded(name: str, rate: float, clock: float | None = FULL) -> tuple[str, str]:
    record = TrialRecord("k", Verdict.MATCH, oracle="integer", error=rate)
    found = speed.graded(record, name, identity=CARD, clock=clock)
    return found.verdict.value, found.detail.split()[0].strip(":")


@pytest.mark.parametrize(
    ("name", "rate", "clock", "said"),
    [
        ("speed-gemm-fp32", 10.2e12, FULL, ("MATCH", "1.02e+13")),
        ("speed-gemm-fp32", 9.0e12, FULL, ("MATCH", "warn")),
        ("speed-gemm-fp32", 7.0e12, FULL, ("MISMATCH", "too")),
        ("speed-gemm-fp32", 14.2e12, FULL, ("MISMATCH", "impossible")),
        ("speed-gemm-fp32", 13.9e12, FULL, ("MATCH", "1.39e+13")),
        ("speed-gemm-fp32", 7.0e12, 1.0e9, ("MATCH", "7e+12")),
        ("speed-gemm-fp32", 13.0e12, 1.0e9, ("MISMATCH", "impossible")),
        ("speed-gemm-fp32", 7.0e12, None, ("UNPROVEN", "slow,")),
        ("speed-gemm-fp32", 10.2e12, None, ("MATCH", "1.02e+13")),
        ("speed-gemm-fp32", 1e15, None, ("MISMATCH", "impossible")),
        ("speed-gemm-fp16", 16.5e12, FULL, ("MATCH", "1.65e+13")),
        ("speed-gemm-fp16", 10.0e12, FULL, ("MISMATCH", "too")),
        ("speed-gemm-fp64", 2.6e12, FULL, ("MATCH", "2.6e+12")),
        ("speed-gemm-fp64", 3.6e12, FULL, ("MISMATCH", "impossible")),
        ("speed-memory", 800e9, None, ("MATCH", "8e+11")),
        ("speed-memory", 700e9, None, ("MATCH", "warn")),
        ("speed-memory", 600e9, None, ("MISMATCH", "too")),
        ("speed-memory", 1050e9, None, ("MISMATCH", "impossible")),
        ("speed-to-card", 11e9, None, ("MATCH", "1.1e+10")),
        ("speed-to-card", 5e9, None, ("MATCH", "warn")),
        ("speed-from-card", 2e9, None, ("MISMATCH", "too")),
        ("speed-from-card", 40e9, None, ("MISMATCH", "impossible")),
    ],
)
def test_a_cards_rate_is_judged_by_the_clock_it_ran_at(
    name: str, rate: float, clock: float | None, said: tuple[str, str]
) -> None:
    assert graded(name, rate, clock) == said


def test_what_was_wrong_stays_wrong() -> None:
    record = TrialRecord("k", Verdict.MISMATCH, error=10.2e12)
    assert speed.graded(record, "speed-gemm-fp32", identity=CARD, clock=FULL) == record


@pytest.mark.parametrize("group", ["speed/gemm", "speed/copy"])
def test_its_checker_checks_itself(group: str) -> None:
    assert speed.self_check(group)


def result(rate: float) -> Result:
    [(case, trial), *_] = speed.cases_of(TABLE["r3"], source="device")
    record = TrialRecord(trial.key, Verdict.MATCH, detail="rehearsal", error=rate)
    return Result(case, trial, record)


def test_only_a_cards_speed_is_judged(tmp_path: Path) -> None:
    root = assemble(tmp_path)
    pytest.importorskip("torch")
    known = card_of(facts_of(root), "hip")
    assert known.memory
    for other in (Known("cpu", CARD, fakes.make), Known("replay", CARD, fakes.make)):
        assert Seen(other).graded(result(1e15)).record.detail == "rehearsal"
    seen = Seen(known, Sysroot(root))
    fast = seen.graded(result(10.2e12))
    assert (fast.verdict, seen.graded(fast)) == (Verdict.MATCH, fast)
    folder = f"{known.folder}/hwmon/hwmon3"
    for megahertz in (900, 1000, 1100):
        write(root, f"{folder}/freq1_input", f"{megahertz}000000")
        seen.look(result(0).trial.key)
    assert "at 1000 MHz" in seen.graded(result(6.5e12)).record.detail
    assert seen.graded(result(10.2e12)).verdict == Verdict.MISMATCH


def test_levels_below_r3_measure_no_speed() -> None:
    assert not speed.cases_of(TABLE["r2"], source="device")
    assert len(speed.cases_of(TABLE["r3"], source="cpu")) == len(speed.SCALES)


def test_the_processor_rehearses_and_a_wrong_number_shows() -> None:
    pytest.importorskip("torch")
    from vega_image.selftest.devices.opening import open_device

    device = open_device("cpu")
    for _, trial in speed.cases_of(TABLE["r3"], source="cpu"):
        # Rates differ from run to run, which is no wrong bit.
        record = Examiner(load_suite(speed.NAME), device, runs=2).examine(trial)
        assert record.verdict == Verdict.MATCH, record
        assert record.repeatable
        assert record.detail.startswith("rehearsal")
        prepared = speed.prepare(trial)
        outcome = device.run(prepared.request)
        assert isinstance(outcome, Computed)
        for name, data in (("wrong", b"\1" + bytes(7)), ("rate", bytes(8)), ("y", b"")):
            array = outcome.outputs[name]
            bent = data or bytes([array.data[0] ^ 1]) + array.data[1:]
            outputs = {**outcome.outputs, name: replace(array, data=bent)}
            said = speed.judge(prepared, replace(outcome, outputs=outputs))
            assert said.verdict == Verdict.MISMATCH, (trial.key, name)


def test_moving_more_bytes_than_the_memory_can_is_impossible() -> None:
    size = 256 << 20
    given = {"a": Array((1,), "fp32", bytes(4))}
    request = Request("k", "conv", given, room={"y": size})
    y = Array((1,), "fp32", bytes(4))

    def flaws(seconds: float, identity: dict[str, object], asked: Request) -> tuple[str, ...]:
        outcome = Computed({"y": y}, seconds)
        return hygiene.flaws(asked, outcome, flops=0.0, identity=identity)

    slow, fast = size / 1000e9, size / 1200e9
    assert flaws(slow, dict(CARD), request) == ()
    [said] = flaws(fast, dict(CARD), request)
    assert "GB/s of at most 1024" in said
    assert flaws(fast, {"arch": "x86_64"}, request) == ()
    # A view moves nothing, and a small output may still lie in the cache.
    assert flaws(1e-9, dict(CARD), replace(request, program="op.op80")) == ()
    assert flaws(1e-6, dict(CARD), replace(request, room={"y": 1 << 20})) == ()
