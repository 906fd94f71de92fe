"""What is said where: results on stdout, the way there on stderr, colour only when wanted."""

from __future__ import annotations

import io
import json

import pytest

from vega_image.console import Console, Level, table
from vega_image.errors import LockError
from vega_image.units import duration, megabytes


def console(
    mode: str = "plain", *, as_json: bool = False, level: Level = Level.NORMAL
) -> Console:
    return Console(
        mode=mode,
        as_json=as_json,
        colour=False,
        level=level,
        out=io.StringIO(),
        err=io.StringIO(),
    )


def said(one: Console) -> tuple[str, str]:
    assert isinstance(one.out, io.StringIO)
    assert isinstance(one.err, io.StringIO)
    return one.out.getvalue(), one.err.getvalue()


def test_a_result_is_lines_for_people_and_one_object_for_scripts() -> None:
    people, scripts = console(), console(as_json=True)
    for one in (people, scripts):
        one.result(["built"], {"digest": "x"})
    assert said(people) == ("built\n", "")
    assert json.loads(said(scripts)[0]) == {"digest": "x"}


def test_an_error_names_its_hint_and_is_an_object_under_json() -> None:
    error = LockError("LOCK_STALE", "the lock is stale", hint="vega-image lock x", at="x")
    people, scripts = console(), console(as_json=True)
    people.error(error)
    scripts.error(error)
    assert said(people) == ("", "error: the lock is stale\nhint: vega-image lock x\n")
    assert json.loads(said(scripts)[0]) == {
        "error": {
            "exit": 3,
            "code": "LOCK_STALE",
            "message": "the lock is stale",
            "hint": "vega-image lock x",
            "at": "x",
        }
    }


def test_quiet_keeps_warnings_and_verbose_shows_stage_lines() -> None:
    quiet, loud = console(level=Level.QUIET), console(level=Level.VERBOSE)
    for one in (quiet, loud):
        one.say("note")
        one.warn("careful")
        one.line("gcc x.c")
    assert said(quiet)[1] == "warning: careful\n"
    assert said(loud)[1] == "note\nwarning: careful\n  | gcc x.c\n"


def test_progress_as_json_is_one_object_a_line() -> None:
    one = console("json")
    one.say("note")
    one.warn("careful")
    events = [json.loads(line) for line in said(one)[1].splitlines()]
    assert [event["event"] for event in events] == ["note", "warning"]


@pytest.mark.parametrize(
    ("environ", "colour"),
    [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), ({}, False)],
)
def test_colour_follows_the_environment(environ: dict[str, str], *, colour: bool) -> None:
    chosen = Console.choose(progress="auto", as_json=False, environ=environ, level=Level.NORMAL)
    assert chosen.colour is colour
    assert chosen.mode == "plain"


def test_a_table_lines_up_and_leaves_no_trailing_blanks() -> None:
    lines = table(("A", "LONGER"), [("xyz", "1"), ("x", "22")])
    assert lines == ["A    LONGER", "xyz  1", "x    22"]


def test_numbers_as_people_read_them() -> None:
    assert megabytes(0) == "0.0 MB"
    assert duration(3599.9) == "59 min 59 s"
