"""Every file that is named is there, and the reverse: each rule refuses its bad tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import CASES, differing, rule_of, tree
from vega_image.checks.crossrefs import RULES, check_references
from vega_image.checks.mediapaths import as_pattern, matches, paths_in
from vega_image.checks.mentions import said_in

BAD = sorted((CASES / "crossrefs/bad").iterdir())
GOOD = tree(CASES / "crossrefs/good")
NAMED = ("media/", "answer/")


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_a_bad_tree_is_refused_where_it_says(case: Path) -> None:
    files, refused = differing(case, GOOD)
    findings = check_references(files)
    assert {f"{item.path}:{item.line} {item.rule}" for item in findings} == refused
    assert rule_of(case) in {item.rule for item in findings}
    assert all(item.message for item in findings)


def test_every_rule_has_a_bad_tree() -> None:
    assert {rule_of(case) for case in BAD} == set(RULES)


def test_the_good_tree_has_no_finding() -> None:
    assert check_references(GOOD) == []
    crlf = {path: data.replace(b"\n", b"\r\n") for path, data in GOOD.items()}
    assert check_references(crlf) == []


@pytest.mark.parametrize(
    "path", sorted(path for path in GOOD if path.startswith(NAMED) and "/data/" not in path)
)
def test_a_file_that_is_taken_away_is_missed(path: str) -> None:
    left = {name: data for name, data in GOOD.items() if name != path}
    assert {item.rule for item in check_references(left)} & {"XRF001", "XRF004", "XRF005"}


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (r'"%ProgramFiles%\VegaImage\firstboot\a.ps1" > x', ["media/vega/firstboot/a.ps1"]),
        (r"'C:\Program Files\VegaImage\image.json'", ["media/vega/image.json"]),
        (r"C:\Program Files\VegaImage\python\python.exe", []),
        (r"'firstboot\self-test.ps1'", ["media/vega/firstboot/self-test.ps1"]),
        (r"Join-Path $Drive 'vega\scripts\a.ps1'", ["media/vega/scripts/a.ps1"]),
        (r"Join-Path $P 'VegaImage\scripts\a.ps1'", ["media/vega/scripts/a.ps1"]),
        (r"Join-Path $TheRock 'patches\amd-mainline'", []),
        (r"$Source\patches\a.patch and Join-Path $Out 'made.cmd'", []),
        (r"Join-Path $PSScriptRoot 'names.ps1'", ["*/names.ps1"]),
        (r"'{0}\stages\{1}\stage.ps1'", ["media/vega/stages/*/stage.ps1"]),
        (r"$Venv\Scripts\pip.exe and 'Scripts\pip.exe'", []),
        (r"B:\stamps\x.json, C:\ProgramData\VegaImage\logs", []),
        ("cp ./media/vega/image.json answer/", ["media/vega/image.json"]),
        ("'apply-verdict.ps1'", ["*/apply-verdict.ps1"]),
        (r"if exist %%D:\vega\image.json echo", ["media/vega/image.json"]),
    ],
)
def test_paths_are_found(text: str, paths: list[str]) -> None:
    assert list(paths_in(text)) == paths


def test_packer_paths_are_of_the_tree() -> None:
    listed = b'["${path.root}/../media/a", "${path.cwd}/media/b", "${var.c}/d"]'
    text = b"x {\n  cd_files = " + listed + b"\n}\n"
    said = [item.names for item in said_in({"packer/x.pkr.hcl": text}) if item.cd]
    assert said == [("media/a",), ("media/b",)]


@settings(deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.sampled_from("/\\"))
def test_a_path_is_its_own_pattern(path: str, slash: str) -> None:
    pattern = as_pattern(path.replace("/", slash))
    assert [other for other in GOOD if matches(pattern, other)] == [path]


NAMES = st.sampled_from(sorted(GOOD))


@settings(max_examples=150, deadline=None)
@given(NAMES, st.binary(max_size=80), st.integers(0, 400))
def test_any_bytes_are_judged(path: str, data: bytes, at: int) -> None:
    damaged = GOOD[path][:at] + data + GOOD[path][at:]
    for item in check_references({**GOOD, path: damaged}):
        content = {**GOOD, path: damaged}.get(item.path, b"")
        assert 0 <= item.line <= content.count(b"\n") + 1
