"""Rules for batch files: each refuses its bad fixture at the marked lines and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.marks import CASES, tree, wanted
from vega_image.checks.cmdfile import RULES, check_cmd_files
from vega_image.checks.cmdlines import Batch

ROOT = Path(__file__).resolve().parents[3]
BAD = CASES / "cmd/bad"
CASES_OF_RULES = sorted(BAD.rglob("*.cmd"))
GOOD = tree(CASES / "cmd/good")


def rule_of(path: Path) -> str:
    return path.relative_to(BAD).parts[0].split("-")[0]


@pytest.mark.parametrize("path", CASES_OF_RULES, ids=lambda p: p.relative_to(BAD).parts[0])
def test_a_bad_fixture_is_refused_where_it_says(path: Path) -> None:
    data, place = path.read_bytes(), f"media/{path.name}"
    findings = check_cmd_files({place: data}, newline="lf")
    assert {(item.line, item.rule) for item in findings} == set(wanted(data))
    assert rule_of(path) in {item.rule for item in findings}
    assert all(item.path == place and item.message for item in findings)


def test_every_rule_has_a_bad_fixture() -> None:
    assert {rule_of(path) for path in CASES_OF_RULES} == set(RULES)


def test_the_good_file_has_no_finding() -> None:
    assert check_cmd_files(GOOD, newline="lf") == []


def test_our_files_have_no_finding() -> None:
    paths = list((ROOT / "templates").rglob("*.cmd"))
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    assert any(path.endswith("SetupComplete.cmd") for path in files)
    assert check_cmd_files(files, newline="lf") == []
    rendered = {path: data.replace(b"\n", b"\r\n") for path, data in files.items()}
    assert check_cmd_files(rendered) == []
    assert {item.rule for item in check_cmd_files(files)} == {"CMD002"}


def commands(text: str) -> list[tuple[int, str, int]]:
    batch = Batch()
    batch.read(text)
    assert batch.faults == []
    return [(item.line, item.run, item.depth) for item in batch.commands]


def test_commands_are_found_behind_conditions() -> None:
    text = 'if /i "%A%" == "b c" (x 1) else y & z | "a b" 2>&1\nfor %%i in (1 2) do @w (v)\n'
    assert commands(text) == [
        (1, "", 0),
        (1, "x 1", 1),
        (1, "y", 0),
        (1, "z", 0),
        (1, '"a b" 2>&1', 0),
        (2, "w (v)", 0),
    ]
    assert commands("a ^\n  b ^& c\n") == [(1, "a   b ^& c", 0)]


PIECES = st.sampled_from(
    [
        "(",
        ")",
        '"',
        "^",
        "&",
        "|",
        "\n",
        "if ",
        "for ",
        "in ",
        "do ",
        "else ",
        "%",
        ":",
        "x",
        "rem ",
    ]
)


@settings(deadline=None)
@given(st.one_of(st.binary(), st.lists(PIECES).map(lambda parts: "".join(parts).encode())))
@example(b"if if if if")
@example(b"else else")
def test_any_bytes_are_judged(data: bytes) -> None:
    for name in ("a.cmd", "SetupComplete.cmd"):
        for item in check_cmd_files({name: data}):
            assert 1 <= item.line <= data.count(b"\n") + 1


@settings(deadline=None)
@given(st.integers(0, 1200), st.integers(0, 30), PIECES)
def test_a_damaged_file_is_judged(start: int, cut: int, put: str) -> None:
    good = GOOD["tools.cmd"]
    damaged = good[:start] + put.encode() + good[start + cut :]
    for item in check_cmd_files({"a.cmd": damaged}):
        assert 1 <= item.line <= damaged.count(b"\n") + 1
