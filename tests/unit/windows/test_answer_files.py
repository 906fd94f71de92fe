"""Rules for answer files: each refuses its bad fixture at the marked lines and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import CASES, rule_of, tree, wanted
from vega_image.checks.answerfile import RULES, check_answer_files
from vega_image.checks.answertable import shape_of, unattend_table
from vega_image.checks.answerxml import AnswerXmlError, parse
from vega_image.windows.spec import Platform

BAD = sorted((CASES / "answerfile/bad").glob("*.xml"))
GOOD = tree(CASES / "answerfile/good")
SETUP = "media/autounattend.xml"
BYPASS = "ANS017"


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_a_bad_fixture_is_refused_where_it_says(path: Path) -> None:
    data, place = path.read_bytes(), f"answer/{path.name}"
    platform = Platform.METAL if rule_of(path) == BYPASS else Platform.QEMU
    findings = check_answer_files({place: data}, platform=platform, newline="lf")
    assert {(item.line, item.rule) for item in findings} == set(wanted(data))
    assert rule_of(path) in {item.rule for item in findings}
    assert all(item.path == place and item.message for item in findings)


def test_every_rule_has_a_bad_fixture() -> None:
    assert {rule_of(path) for path in BAD} == set(RULES)


@pytest.mark.parametrize("platform", [Platform.QEMU, Platform.HYPERV, Platform.PROXMOX])
def test_the_good_files_have_no_finding(platform: Platform) -> None:
    assert check_answer_files(GOOD, platform=platform, newline="lf") == []


def test_a_bypass_is_for_machines_that_are_none() -> None:
    found = check_answer_files(GOOD, platform=Platform.METAL, newline="lf")
    assert [item.rule for item in found] == [BYPASS, BYPASS]


def test_a_rendered_file_has_windows_line_ends() -> None:
    crlf = {path: data.replace(b"\n", b"\r\n") for path, data in GOOD.items()}
    assert check_answer_files(crlf, platform=Platform.QEMU) == []
    found = check_answer_files(GOOD, platform=Platform.QEMU)
    assert [(item.rule, item.line) for item in found] == [("ANS021", 1)] * 2


def test_what_counts_as_an_answer_file() -> None:
    other = b'<?xml version="1.0" encoding="utf-8"?>\n<note/>\n'
    for path, refused in (("answer/a.xml", True), (SETUP, True), ("media/a.xml", False)):
        found = check_answer_files({path: other}, platform=Platform.QEMU, newline="lf")
        assert [item.rule for item in found] == ["ANS002"] * refused


def test_the_table_is_whole() -> None:
    table = unattend_table()
    for name, component in table.components.items():
        shape = shape_of(name)
        assert set(component.passes) <= set(table.passes)
        assert set(component.only) <= set(shape.elements)
        assert all(set(passes) <= set(component.passes) for passes in component.only.values())
    assert {component.evidence for component in table.components.values()} == {
        "read",
        "recalled",
    }


@settings(deadline=None)
@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_any_bytes_are_judged(data: bytes) -> None:
    for item in check_answer_files({"answer/a.xml": data}, platform=Platform.METAL):
        assert 1 <= item.line <= data.count(b"\n") + 1


PIECES = st.sampled_from(
    [b"", b"<", b">", b"</", b"&amp;", b"&a;", b'"', b"0", b"-", b"<!--", b"\xff", b"\r", b" "]
)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(GOOD[SETUP])), st.integers(0, 30), PIECES)
def test_a_damaged_file_is_judged(start: int, cut: int, put: bytes) -> None:
    damaged = GOOD[SETUP][:start] + put + GOOD[SETUP][start + cut :]
    for item in check_answer_files({SETUP: damaged}, platform=Platform.METAL):
        assert 1 <= item.line <= damaged.count(b"\n") + 1


@pytest.mark.parametrize("name", ["utf-7", "utf-16", "idna", "nothing", "rot13", "hex"])
def test_an_encoding_that_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(AnswerXmlError):
        parse(f'<?xml version="1.0" encoding="{name}"?>\n<unattend/>'.encode())


def test_elements_without_an_end_of_depth_are_refused() -> None:
    with pytest.raises(AnswerXmlError):
        parse(b"<a>" * 5000 + b"</a>" * 5000)
