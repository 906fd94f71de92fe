"""Every rule for playbooks refuses its bad case, with file and line; ours pass."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from vega_image.checks.ansible import (
    CONFIG,
    LINT,
    RULES,
    SYNTAX,
    Known,
    check_playbooks,
    own_findings,
    read_known,
)
from vega_image.checks.module_options import modules_of
from vega_image.errors import EngineError, UsageError

CASES = Path(__file__).resolve().parents[1] / "cases/windows/ansible"
MARK = "refused"
pytestmark = [pytest.mark.needs("ansible"), pytest.mark.needs("ansible-lint")]


def tree_of(rule: str, folder: Path) -> Path:
    """The good base with the bad case over it."""
    shutil.copytree(CASES / "base", folder, dirs_exist_ok=True)
    return Path(shutil.copytree(CASES / rule, folder, dirs_exist_ok=True))


def marked(rule: str) -> tuple[str, int]:
    """Where the bad case says that it is bad."""
    found = [
        (path.relative_to(CASES / rule).as_posix(), number)
        for path in (CASES / rule).rglob("*")
        if path.is_file()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if MARK in line
    ]
    assert len(found) == 1, f"{rule}: one line is marked"
    return found[0]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    scratch = tmp_path_factory.mktemp("ansible")
    config = scratch / "ansible.cfg"
    config.write_text(CONFIG)
    modules = {name for case in CASES.iterdir() for name in modules_of(case)}
    return read_known(modules, scratch=scratch, config=config)


def test_every_rule_has_a_bad_case_and_every_case_a_rule() -> None:
    assert {path.name for path in CASES.iterdir()} == {*RULES, "base"}


def test_the_base_of_the_bad_cases_is_good(known: Known) -> None:
    assert list(own_findings(CASES / "base", known)) == []


@pytest.mark.parametrize("rule", sorted(set(RULES) - {LINT, SYNTAX}))
def test_a_rule_refuses_its_bad_case(rule: str, known: Known, tmp_path: Path) -> None:
    found = set(own_findings(tree_of(rule, tmp_path), known))
    assert [(row.rule, row.path, row.line) for row in found] == [(rule, *marked(rule))]


def test_lint_refuses_its_bad_case(tmp_path: Path) -> None:
    found = check_playbooks(tree_of(LINT, tmp_path))
    assert [(row.rule, row.path, row.line) for row in found] == [(LINT, *marked(LINT))]


def test_settings_of_the_user_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_of(SYNTAX, tmp_path / "a folder")
    (tmp_path / "roles/nowhere/tasks").mkdir(parents=True)
    (tmp_path / ".ansible.cfg").write_text("[defaults]\nroles_path = /nowhere\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(tmp_path))
    monkeypatch.setenv("ANSIBLE_ROLES_PATH", str(tmp_path / "roles"))
    found = check_playbooks(tree)
    assert [(row.rule, row.path, row.line) for row in found] == [(SYNTAX, *marked(SYNTAX))]


def test_our_own_playbooks_pass_every_check(project: Path) -> None:
    found = check_playbooks(project)
    assert [row.text() for row in found] == []


def test_a_missing_collection_is_no_pass(tmp_path: Path) -> None:
    tree = tree_of("ansible-unknown-module", tmp_path)
    playbook = tree / "playbooks/windows.yaml"
    playbook.write_text(playbook.read_text().replace("ansible.windows.", "nobody.nothing."))
    with pytest.raises(EngineError) as caught:
        check_playbooks(tree)
    assert (caught.value.code, caught.value.at) == ("COLLECTION_ABSENT", "nobody.nothing")
    assert "pip install" in (caught.value.hint or "")


def test_a_listed_collection_that_is_missing_is_no_pass(known: Known, tmp_path: Path) -> None:
    tree = tree_of("ansible-collection-version", tmp_path)
    listed = tree / "playbooks/requirements.yml"
    listed.write_text(listed.read_text().replace("ansible.windows", "nobody.nothing"))
    with pytest.raises(EngineError) as caught:
        list(own_findings(tree, known))
    assert caught.value.code == "COLLECTION_ABSENT"


def test_a_missing_program_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(EngineError) as caught:
        check_playbooks(CASES / "base")
    assert caught.value.code == "TOOL_ABSENT"


def test_a_tree_without_playbooks_is_no_pass(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_playbooks(tmp_path)
    assert caught.value.code == "PLAYBOOKS_ABSENT"
