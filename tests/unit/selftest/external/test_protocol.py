"""What external suites say, read with suspicion."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from vega_image.selftest.external.ggml.upstream import read_upstream
from vega_image.selftest.external.protocol import (
    Command,
    Ended,
    Line,
    parse_device,
    parse_line,
    parse_lines,
    parse_problem,
    stopped_at,
)
from vega_image.selftest.external.running import run_cases
from vega_image.selftest.verdict import Verdict

# As Debian's libggml0 0.27.0-1 printed it, shortened; colours kept.
OK = "\x1b[1;32mOK\x1b[0m"
RECORDED = f"""Testing 2 devices

Backend 1/2: Vulkan0
  Device description: llvmpipe (LLVM 21.1.8, 256 bits)
  Device memory: 24152 MB (23520 MB free)

  SILU(type=f16,ne_a=[128,2,2,2],v=0): {OK}
  SILU(type=f32,ne_a=[5,7,11,13],v=1): {OK}
  SILU(type=bf16,ne_a=[128,2,2,2],v=0): not supported [Vulkan0]\x20
  2/2 tests passed
  Backend Vulkan0: {OK}
Backend 2/2: CPU
  Skipping
2/2 backends passed
{OK}
"""
NOTHING = f"Testing 1 devices\n\nBackend 1/1: CPU\n  Skipping\n1/1 backends passed\n{OK}\n"
# Not recorded: written after the same format, as no real failure was seen.
SYNTHETIC_FAIL = RECORDED.replace(
    f"v=1): {OK}", "v=1): [SILU] NMSE = 0.5 > 0.0000001 \x1b[1;31mFAIL\x1b[0m"
).replace("2/2 tests", "1/2 tests")
SYNTHETIC_FAIL = SYNTHETIC_FAIL.replace(f"Vulkan0: {OK}", "Vulkan0: \x1b[1;31mFAIL\x1b[0m")


def line(case: str, verdict: str, error: float | None = 0, bound: float | None = 0) -> str:
    return json.dumps({"case": case, "verdict": verdict, "error": error, "bound": bound})


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    parse_line(text)
    parse_lines(text, ["a"])
    read_upstream(Ended(0, text), "CPU")


@given(
    st.sampled_from(list(Verdict)),
    st.none() | st.floats(min_value=0, allow_infinity=False),
    st.none() | st.floats(min_value=0, allow_infinity=False),
)
def test_a_line_comes_back_as_written(
    verdict: Verdict, error: float | None, bound: float | None
) -> None:
    found = parse_line(Line("a", verdict, error, bound).to_json())
    assert found is not None
    assert (found.error, found.bound) == (error, bound)
    good = verdict in {Verdict.MATCH, Verdict.DEGRADED}
    broken = error is None or bound is None or error > bound
    if verdict is Verdict.UPSTREAM_OK or (good and broken):
        assert found.verdict is Verdict.INVALID
    else:
        assert found.verdict is verdict


def test_a_match_above_its_bound_is_no_match() -> None:
    found = parse_line(line("a", "MATCH", 2, 1))
    assert found is not None
    assert found.verdict is Verdict.INVALID


def test_unknown_words_and_numbers_are_no_line() -> None:
    assert parse_line(line("a", "FINE")) is None
    assert parse_line('{"case":"a","verdict":"MATCH","error":NaN,"bound":0}') is None
    assert parse_line('{"case":"a","verdict":"MATCH","error":true,"bound":0}') is None
    assert parse_line(line("a", "MATCH", -math.pi)) is None


def test_two_answers_for_one_case_are_none() -> None:
    text = f"{line('a', 'MISMATCH', 1)}\n{line('a', 'MATCH')}\n"
    assert parse_lines(text, ["a"])["a"].verdict is Verdict.INVALID


@given(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1), st.data())
def test_every_expected_case_has_one_line(cases: list[str], data: st.DataObject) -> None:
    """Whatever the program does, and wherever it dies."""

    def run(command: Command) -> Ended:
        after = command.argv[1]
        rest = cases[cases.index(after) + 1 :] if after else cases
        told = rest[: data.draw(st.integers(0, len(rest)))]
        return Ended(
            data.draw(st.sampled_from((0, 8, -11))),
            "\n".join(line(case, "MATCH") for case in told),
            timed_out=data.draw(st.booleans()),
        )

    lines = run_cases(lambda after: Command(("suite", after), {}), cases, run=run)
    assert [item.case for item in lines] == cases
    allowed = {Verdict.MATCH, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.UNPROVEN}
    assert {item.verdict for item in lines} <= allowed


def test_a_crash_costs_one_case_and_a_hang_says_so() -> None:
    told = iter(
        (
            Ended(-11, line("a", "MATCH")),
            Ended(0, "", timed_out=True),
            Ended(0, line("d", "MATCH")),
        )
    )
    lines = run_cases(lambda _: Command(("x",), {}), "abcd", run=lambda _: next(told))
    assert [item.verdict.value for item in lines] == ["MATCH", "CRASHED", "TIMED_OUT", "MATCH"]


def test_nothing_expected_is_nowhere_to_stop() -> None:
    assert stopped_at([], ()) is None


@given(st.text())
def test_who_a_device_is_is_read_from_a_line_of_its_own(text: str) -> None:
    told = json.dumps({"device": "Vulkan0", "description": text, "kind": "gpu"})
    found = parse_device(f"{line('a', 'MATCH')}\nnoise\n{told}\n")
    assert found is not None
    assert found.description == text
    assert parse_device(line("a", "MATCH")) is None
    parse_device(text)
    assert parse_problem(json.dumps({"problem": text})) == text
    assert parse_problem(told) == ""


def test_upstream_ok_is_never_a_match() -> None:
    found = read_upstream(Ended(0, RECORDED), "Vulkan0")
    assert found.confirmed
    assert (found.passed, found.total) == (2, 2)
    assert [item.verdict.value for item in found.lines] == [
        "UPSTREAM_OK",
        "UPSTREAM_OK",
        "UNSUPPORTED",
    ]


def test_ok_without_the_back_end_asked_for_is_unproven() -> None:
    for text, name in ((NOTHING, "ROCm0"), (NOTHING, "CPU"), (RECORDED, "ROCm0"), ("", "CPU")):
        found = read_upstream(Ended(0, text), name)
        assert not found.confirmed
        assert [item.verdict for item in found.lines] == [Verdict.UNPROVEN]


def test_ok_with_a_lower_count_or_a_bad_exit_is_not_confirmed() -> None:
    fewer = RECORDED.replace("2/2 tests", "0/0 tests")
    assert not read_upstream(Ended(0, fewer), "Vulkan0").confirmed
    assert not read_upstream(Ended(-6, RECORDED), "Vulkan0").confirmed
    assert read_upstream(Ended(-6, RECORDED), "Vulkan0").lines[-1].verdict is Verdict.CRASHED


def test_upstream_failures_are_wrong_numbers() -> None:
    found = read_upstream(Ended(1, SYNTHETIC_FAIL), "Vulkan0")
    assert [item.verdict.value for item in found.lines] == [
        "UPSTREAM_OK",
        "MISMATCH",
        "UNSUPPORTED",
    ]
