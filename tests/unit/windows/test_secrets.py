"""No secret in a tree: each rule refuses its bad fixture at the marked lines, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import CASES, rule_of, tree, wanted
from vega_image.checks.secrets import RULES, check_secrets
from vega_image.checks.secretwords import stands_for

ROOT = Path(__file__).resolve().parents[3]
BAD = sorted((CASES / "secrets/bad").iterdir())


def said(path: Path) -> bytes:
    data = path.read_bytes()
    return data.decode("utf-16").encode() if data.startswith(b"\xff\xfe") else data


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_a_bad_fixture_is_refused_where_it_says(path: Path) -> None:
    findings = check_secrets({path.name: path.read_bytes()})
    assert {(item.line, item.rule) for item in findings} == set(wanted(said(path)))
    assert {item.rule for item in findings} == {rule_of(path)}
    assert all(item.path == path.name and item.message for item in findings)


def test_every_rule_has_a_bad_fixture() -> None:
    assert {rule_of(path) for path in BAD} == set(RULES)


def test_forms_that_are_no_secret() -> None:
    assert check_secrets(tree(CASES / "secrets/good")) == []


@pytest.mark.parametrize("folder", ["playbooks", "inventory", "templates", "docs"])
def test_our_texts_have_none(folder: str) -> None:
    assert check_secrets(tree(ROOT / folder)) == []


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_judged(data: bytes) -> None:
    for name in ("a.yaml", "a.ps1"):
        for item in check_secrets({name: data}):
            assert item.line >= 1


@settings(deadline=None)
@given(st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True))
def test_a_word_is_a_secret_however_it_is_given(word: str) -> None:
    for text in (f'password = "{word}"', f"token: '{word}'", f"x --password={word}"):
        assert bool(check_secrets({"a.txt": text.encode()})) == (not stands_for(word))
    yaml = f"a:\n  password: {word}\n".encode()
    assert [i.line for i in check_secrets({"a.yaml": yaml})] == [2] * (not stands_for(word))
