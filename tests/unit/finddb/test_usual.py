"""The short way from a line to its fallback gives what the careful one gives, or nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.miopenroot import RECORDS
from vega_image.finddb.fallback import fallback_items
from vega_image.finddb.lint import lint
from vega_image.finddb.problem import FormError
from vega_image.finddb.record import CURRENT
from vega_image.finddb.text import FindDb, parse_line
from vega_image.finddb.usual import usual

LINES = RECORDS.read_bytes().splitlines()
NOTHING: frozenset[str] = frozenset()


def careful(line: bytes) -> str:
    record = parse_line(line)
    items = fallback_items(record.problem, record.items)
    return ";".join(item.written(CURRENT) for item in items)


def test_both_ways_agree_over_the_real_slice() -> None:
    short = [(line, usual(line, NOTHING)) for line in LINES]
    assert sum(found is not None for _, found in short) > 400
    for line, found in short:
        if found is not None:
            assert found[2] == careful(line)
            assert found[3] == found[2].count(";") + 1
            assert found[1] == tuple(item.solver for item in parse_line(line).items)


@settings(max_examples=400)
@given(st.sampled_from(LINES), st.integers(0, 400), st.binary(max_size=3), st.integers(0, 2))
def test_a_damaged_line_is_never_read_in_another_way(
    line: bytes, at: int, noise: bytes, cut: int
) -> None:
    at %= len(line)
    damaged = (line[:at] + noise + line[at + cut :]).replace(b"\n", b"")
    found = usual(damaged, NOTHING)
    if found is None:
        return
    try:
        assert found[2] == careful(damaged)
    except FormError:
        # Only what MIOpen does not look at: the fourth field of an item.
        assert damaged.count(b",") == line.count(b",")
    new = f"{found[0]}={found[2]}\n".encode()
    assert lint(FindDb(new, "new")).errors == 0


def test_a_solver_with_rules_goes_the_careful_way() -> None:
    line = next(one for one in LINES if b":ConvOclBwdWrW53," in one)
    assert usual(line, NOTHING) is not None
    assert usual(line, frozenset({"ConvOclBwdWrW53"})) is None


def test_a_recorded_time_of_nothing_or_a_wrong_algorithm_is_not_handed_on() -> None:
    line = next(one for one in LINES if b"-F=" in one and b":GemmFwd1x1_0_1," in one)
    record = parse_line(line)
    for damaged in (
        line.replace(b"AlgoGEMM:", b"AlgoDirect:").replace(b"FwdAlgoGEMM", b"BwdDataAlgoFFT"),
        *(line.replace(f",{i.written(CURRENT).split(':')[1].split(',')[0]},".encode(), b",0,")
          for i in record.items),
    ):  # fmt: skip
        found = usual(damaged, NOTHING)
        text = found[2] if found else careful(damaged)
        assert lint(FindDb(f"{record.key}={text}\n".encode(), "x")).errors == 0
