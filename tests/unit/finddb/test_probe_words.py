"""The probe's words, the card's name, the sample and the sums of an audit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.finddbfiles import SLICE
from vega_image.errors import UsageError
from vega_image.finddb.audit import applicable, judge, kernel_cases, missing_kernels
from vega_image.finddb.opening import open_db
from vega_image.finddb.probe.card import Card, card_of
from vega_image.finddb.probe.question import (
    AnswerError,
    expressible,
    problem_words,
    read_name,
    read_solved,
    read_status,
)
from vega_image.finddb.probe.session import Outcome
from vega_image.finddb.problem import Problem, parse_key
from vega_image.finddb.record import Record
from vega_image.finddb.sample import kinds, sample
from vega_image.finddb.survey import Answer, Compiled
from vega_image.finddb.text import FindDb, parse_line

FORWARD = "3-8-9-5x4-64-4-6-2-1x2-2x3-1x1-0-NCHW-FP32-F"
WEIGHTS = "64-4-6-5x4-3-8-9-2-1x2-2x3-1x1-0-NCHW-FP32-W"
WORDS = "2 1 1 1 0 0 0 1 2 3 8 9 64 3 5 4 2 64 4 6 1 2 2 3 1 1"


@pytest.mark.parametrize(("key", "direction"), [(FORWARD, "F"), (WEIGHTS, "W")])
def test_every_direction_is_asked_by_roles(key: str, direction: str) -> None:
    assert problem_words(parse_key(key)) == f"{direction} {WORDS}"


def test_groups_types_layouts_and_depth_are_told() -> None:
    grouped = "64-5-5-3x3-64-5-5-2-1x1-1x1-1x1-0-NHWC-NHWC-NHWC-FP16-F_g4"
    assert problem_words(parse_key(grouped)).startswith("F 2 0 0 0 1 1 1 4 2 64 5 5 64 16 3 3")
    deep = "4-6-7-8-1x2x3-5-6-6-6-2-0x0x0-1x1x1-1x1x1-0-NCDHW-BF16-B"
    assert problem_words(parse_key(deep)).startswith(
        "B 3 5 5 5 0 0 0 1 2 5 6 6 6 4 5 1 2 3 2 4"
    )
    mixed = "64-5-5-1x1-64-5-5-2-0x0-1x1-1x1-0-NCHW-INT8INT8INT32-F"
    assert problem_words(parse_key(mixed)).startswith("F 2 3 3 2 ")


def test_what_the_probe_cannot_ask_is_known() -> None:
    assert expressible(parse_key(FORWARD))
    assert not expressible(parse_key(f"{FORWARD}_ciFP8"))
    vectors = FORWARD.replace("NCHW", "NCHWc4-NCHWc4-NCHWc4")
    assert not expressible(parse_key(vectors))


def test_answers_are_read_and_nothing_else_is() -> None:
    solved = read_solved("solve 7 0 91:38.5:7375872 85:1000:0")
    assert (solved.index, solved.status) == (7, 0)
    assert [(s.id, s.time, s.workspace) for s in solved.solutions] == [
        (91, 38.5, 7375872),
        (85, 1000.0, 0),
    ]
    assert read_solved("solve 0 5").solutions == ()
    assert read_status("compile 3 7") == (3, 7)
    assert read_status("find 3 0 1:0.5:0") == (3, 0)
    assert read_name("name 1 ConvX<2-3> a b c").algorithms == {"F": "a", "B": "b", "W": "c"}


@given(st.text(max_size=60))
def test_any_other_text_is_an_answer_error(text: str) -> None:
    for read in (read_solved, read_status, read_name):
        for line in (text, f"solve {text}", f"solve 1 0 {text}", f"name 1 {text}"):
            try:
                read(line)
            except AnswerError:
                continue


def test_a_card_has_the_name_miopen_gives_it() -> None:
    assert card_of(None, None) == Card(arch="gfx906:sramecc+:xnack-", cu=60)
    assert card_of("gfx906", 64).base_name == "gfx906_64"
    assert card_of("gfx90a", 104).base_name == "gfx90a68"
    assert card_of("gfx942", 304).base_name == "gfx942130"
    for wrong in ("gfx", "906", "gfx906:xnack", "gfx906 "):
        with pytest.raises(UsageError):
            card_of(wrong, None)


def db(*solvers: str) -> FindDb:
    lines = [f"{n + 1}-{FORWARD[2:]}={name}:1,0,x" for n, name in enumerate(solvers)]
    return FindDb("\n".join([*lines, ""]).encode(), "x")


@given(st.integers(1, 40), st.integers(0, 1000))
def test_a_sample_does_not_depend_on_the_order_of_lines(size: int, turn: int) -> None:
    lines = db(*["A"] * 30).data.splitlines()
    turned = FindDb(b"\n".join(lines[turn % 30 :] + lines[: turn % 30]), "y")
    chosen = sample(turned, size)
    assert {r.key for r in chosen.counted} == {
        r.key for r in sample(db(*["A"] * 30), size).counted
    }
    assert len(chosen.counted) == min(size, 30)


def test_every_kind_of_problem_is_among_the_kinds() -> None:
    whole = open_db(SLICE)
    few = {kind(record.problem) for record in kinds(whole)}
    assert few == {kind(record.problem) for record in whole.records()}
    assert len(kinds(whole)) < len(whole)
    assert kinds(FindDb(b"no record\nx=y\n", "x")) == ()


def kind(problem: Problem) -> tuple[object, ...]:
    return (problem.direction, problem.x_dtype, problem.filter, problem.pads, problem.strides)


def test_a_sample_covers_every_solver_apart() -> None:
    many = db(*["A"] * 30, "B<1>", *["A"] * 30, "C")
    chosen = sample(many, 1)
    named = {item.solver for r in (*chosen.counted, *chosen.cover) for item in r.items}
    assert named == {"A", "B<1>", "C"}
    assert len(chosen.cover) <= 3
    assert not {r.key for r in chosen.cover} & {r.key for r in chosen.counted}
    assert sample(many, None).cover == ()
    assert sample(FindDb(b"no record\nx=y\n", "x"), None).flawed == 1


def record(channels: int) -> Record:
    return parse_line(f"{channels}-{FORWARD[2:]}=A:1,0,x;B:2,0,x".encode())


def test_the_sums_tell_usable_served_dead_and_failed_apart() -> None:
    answers = [
        Answer(record=record(3), offered=("A", "Z"), pick="A"),
        Answer(record=record(4), offered=("B",), pick="B"),
        Answer(record=record(5), offered=("Z",)),
        Answer(record=record(6), status=5),
        Answer(record=record(3), outcome=Outcome.CRASHED, detail="why"),
    ]
    found = judge(answers, ["A"])
    total = found.total
    assert (total.problems, total.usable, total.served) == (5, 2, 1)
    assert [len(x) for x in (found.dead, found.refused, found.failed)] == [2, 1, 1]
    assert dict(found.broken_picks) == {"A": 1}
    assert (found.c3["F"].problems, found.c3_usable) == (2, 1)
    assert applicable(answers) == {"A": 1, "B": 1, "Z": 2}
    assert {solver for solver, _ in kernel_cases(answers)} == {"A", "B", "Z"}


def test_only_an_absent_source_is_a_missing_kernel() -> None:
    rows = [
        Compiled(solver="A", record=record(3), status=7, missing="b.s"),
        Compiled(solver="A", record=record(4), status=7, missing="a.s"),
        Compiled(solver="B", record=record(3), status=7),
    ]
    assert missing_kernels(rows) == {"A": ("a.s", "b.s")}
