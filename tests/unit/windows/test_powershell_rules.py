"""Rules for PowerShell: each refuses its bad fixture at the marked lines and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import CASES, rule_of, tree, wanted
from vega_image.checks.powershell import RULES, check_powershell
from vega_image.errors import EngineError

ROOT = Path(__file__).resolve().parents[3]
BAD = sorted((CASES / "powershell/bad").glob("*.ps1"))
GOOD = tree(CASES / "powershell/good")


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_a_bad_fixture_is_refused_where_it_says(path: Path) -> None:
    data = path.read_bytes()
    findings = check_powershell({f"media/{path.name}": data}, newline="lf")
    assert {(item.line, item.rule) for item in findings} == set(wanted(data))
    assert rule_of(path) in {item.rule for item in findings}
    assert all(item.path == f"media/{path.name}" and item.message for item in findings)


def test_every_rule_has_a_bad_fixture() -> None:
    assert {rule_of(path) for path in BAD} == set(RULES)


def test_the_good_scripts_have_no_finding() -> None:
    assert check_powershell(GOOD, newline="lf") == []


def test_a_function_of_another_script_is_unknown_without_it() -> None:
    alone = {"use-names.ps1": GOOD["use-names.ps1"]}
    assert [(i.rule, i.line) for i in check_powershell(alone, newline="lf")] == [("PS004", 6)]


def test_our_scripts_have_no_finding() -> None:
    paths = [*(ROOT / "templates").rglob("*.ps1"), *(ROOT / "playbooks").rglob("*.ps1")]
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    assert len(files) > 4
    assert check_powershell(files, newline="lf") == []
    rendered = {path: data.replace(b"\n", b"\r\n") for path, data in files.items()}
    assert check_powershell(rendered) == []
    assert {i.rule for i in check_powershell(files)} == {"PS015"}


def test_other_files_are_not_read() -> None:
    assert check_powershell({"a.txt": b"gci", "b.ps1.j2": b"gci"}) == []


def test_without_the_parser_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_powershell", None)
    with pytest.raises(EngineError) as caught:
        check_powershell({})
    assert caught.value.code == "TOOL_ABSENT"


SAMPLE = max((path.read_bytes() for path in BAD), key=len) + GOOD["run-tools.ps1"]


@settings(deadline=None)
@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_any_bytes_are_judged(data: bytes) -> None:
    for item in check_powershell({"a.ps1": data}):
        assert 1 <= item.line <= data.count(b"\n") + 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_script_is_judged(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(SAMPLE)))
    end = data.draw(st.integers(start, min(len(SAMPLE), start + 40)))
    put = data.draw(
        st.sampled_from([b"", b"{", b"}", b"'", b'"', b"@'", b"(", b"$", b"`", b"\r"])
    )
    damaged = SAMPLE[:start] + put + SAMPLE[end:]
    for item in check_powershell({"a.ps1": damaged}):
        assert 1 <= item.line <= damaged.count(b"\n") + 1
