"""The table of docs/windows.md: a row for everything that is rendered, and none for nothing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from vega_image.checks import ansible
from vega_image.checks.ansible_tasks import yaml_files
from vega_image.checks.planted import ANSIBLE, checks_planted, refusing
from vega_image.checks.windows import CHECK_RULES, tree_checks
from vega_image.errors import UsageError
from vega_image.factory import Factory
from vega_image.windows.claims import Claims, Row, Seen, claims, markdown, rows
from vega_image.windows.clrpatches import Clr
from vega_image.windows.prepared import PreparedWindows, prepare_windows, windows_lock
from vega_image.windows.references import MAKING, STAGES
from vega_image.windows.spec import Platform, WindowsTarget

ROOT = Path(__file__).resolve().parents[3]
ROLES = ROOT / "playbooks/roles"


@cache
def trees() -> dict[Platform, PreparedWindows]:
    factory = Factory.find(ROOT, cwd=ROOT)
    target = factory.spec("windows-ltsc")
    assert isinstance(target, WindowsTarget)
    lock = windows_lock(factory, target)
    return {p: prepare_windows(factory, target, lock, platform=p) for p in Platform}


def seen(refused: dict[str, set[str]] | None = None) -> Seen:
    paths = {path for tree in trees().values() for path in tree.files}
    return Seen(
        trees(), {path: (refused or {}).get(path, set()) for path in paths}, ("wsl-debian",)
    )


def parts() -> dict[str, Row]:
    return {row.cells[0]: row for row in rows(seen(), claims())}


def named() -> list[str]:
    table = claims()
    ran = [item for part in table.parts for item in part.ran]
    ran += [item for part in table.parts for own in part.own.values() for item in own.ran or ()]
    ran += [item for beside in table.beside for item in beside.ran]
    held = [test for beside in table.beside for test in beside.held]
    return sorted({item.test for item in ran} | set(held))


def is_test(name: str) -> bool:
    """Whether a test of that name is there, and does not skip itself away."""
    file, _, function = name.partition("::")
    path = ROOT / "tests" / file
    if not path.is_file() or not function.startswith("test_"):
        return False
    found = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return len(found) == 1 and "pytest.mark.skip(" not in map(
        ast.unparse, found[0].decorator_list
    )


def without(name: str) -> Claims:
    """Return the table without the parts of a name."""
    value = claims().model_dump()
    value["parts"] = [item for item in value["parts"] if item["name"] != name]
    return Claims.model_validate(value)


def changed(name: str, key: str, new: object) -> Claims:
    """Return the table with another value in everything of a name."""
    value = claims().model_dump()
    items = [item for item in (*value["parts"], *value["beside"]) if item["name"] == name]
    assert items
    for item in items:
        item[key] = new
    return Claims.model_validate(value)


def test_every_file_of_every_platform_has_a_row() -> None:
    told = [path for row in rows(seen(), claims()) for path in row.paths]
    assert set(told) == {path for tree in trees().values() for path in tree.files}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_a_row_with_the_status_of_its_recipe(stage: str) -> None:
    recipe = yaml.safe_load((ROOT / f"templates/stages/win-{stage}/recipe.yaml").read_text())
    assert f"stage `{stage}` (recipe: {recipe['status']})" in parts()


def test_every_role_pass_overlay_way_and_patch_has_a_row() -> None:
    names = "\n".join(parts())
    for role in ROLES.iterdir():
        assert len(re.findall(rf"role for [A-Za-z ]+ `{role.name}`", names)) == 1
    files = trees()[Platform.QEMU].files
    for path, title in (
        ("media/autounattend.xml", "answer file of Setup, pass"),
        ("answer/unattend-oobe.xml", "answer file of the first boot, pass"),
    ):
        for name in re.findall(r'settings pass="(\w+)"', files[path].decode()):
            assert f"{title} `{name}`" in parts()
    for path in files:
        name = path.rpartition("/")[2].partition(".")[0]
        if path.startswith("packer/overlays/"):
            assert f"overlay of Packer, `{name}`" in parts()
        if path.endswith(".edits.json"):
            assert f"patch of the HIP runtime `{name}` (unproven)" in parts()
    ways = {way.value for way in Clr} - {Clr.PAL_PATCH.value}
    assert {f"other way to the card `{way}` (unproven)" for way in ways} <= parts().keys()


def test_a_row_says_where_it_is_rendered() -> None:
    found = parts()
    assert found["core of Packer"].cells[1] == "qemu, hyperv, proxmox"
    assert found["script that captures a WIM"].cells[1] == "metal"
    assert found["`SetupComplete.cmd`"].cells[1] == "all"
    assert (
        found["what the office brings, `drivers`"].cells[1]
        == "not rendered; qemu, hyperv, proxmox"
    )


def test_a_row_says_how_many_of_its_files_a_check_looks_at() -> None:
    files = [path for path in seen().refusing if path.startswith("media/vega/stages/60-")]
    assert len(files) == 3
    one = rows(seen({files[0]: {"b"}, files[1]: {"a"}}), claims())
    all_ = rows(seen({path: {"a"} for path in files}), claims())
    stage = "stage `pytorch` (recipe: rendered)"
    assert {row.cells[0]: row.cells[2] for row in one}[
        stage
    ] == "a (1 of 3 files), b (1 of 3 files)"
    assert {row.cells[0]: row.cells[2] for row in all_}[stage] == "a"
    assert {row.cells[0]: row.cells[2] for row in all_}["self-test"] == "nothing"


def test_every_row_says_why_it_never_ran_and_is_a_row() -> None:
    found = rows(seen(), claims())
    assert all(row.cells[4] for row in found)
    for line in markdown(found).splitlines():
        assert line.count("|") == 6, line


@pytest.mark.parametrize("name", named())
def test_what_is_said_to_have_run_is_a_test(name: str) -> None:
    assert is_test(name)


@pytest.mark.parametrize("name", [
    "unit/windows/test_claims.py::test_nobody_wrote",
    "unit/test_none.py::test_none",
    "unit/windows/test_claims.py::changed",
])  # fmt: skip
def test_what_is_no_test_is_seen(name: str) -> None:
    assert not is_test(name)


def played(playbook: str) -> set[str]:
    [play] = yaml.safe_load((ROOT / f"playbooks/{playbook}.yaml").read_text())
    return {role["role"] for role in play["roles"]}


def test_only_roles_that_a_test_plays_over_ssh_are_said_to_have_run_there() -> None:
    over_ssh = {
        name.partition("`")[2].rstrip("`")
        for name, row in parts().items()
        if name.startswith("role for") and "test_roles_over_ssh.py" in row.cells[3]
    }
    assert over_ssh == played("wsl") | played("linux")
    assert not over_ssh & played("windows")
    # The page of the playbooks says the same.
    page = (ROOT / "playbooks/README.md").read_text()
    rows_of_page = dict(re.findall(r"^\| (\w+) \|.*\| ([a-zA-Z ,]+) \|$", page, re.MULTILINE))
    told = {name for name, said in rows_of_page.items() if said == "over ssh, in the tests"}
    assert told == over_ssh
    windows = {name for name, said in rows_of_page.items() if said == "never on Windows"}
    assert windows == played("windows")


def test_roles_that_were_rehearsed_are_those_that_the_test_plays() -> None:
    text = (ROOT / "tests/engine/test_windows_roles_rehearsed.py").read_text()
    rehearsed = {
        name.partition("`")[2].rstrip("`")
        for name, row in parts().items()
        if "test_windows_roles_rehearsed.py" in row.cells[3]
    }
    assert rehearsed == set(re.findall(r"windows\.play\(\s*\"(\w+)\"", text))


@pytest.mark.parametrize(("table", "said"), [
    (without("self-test"), "media/vega/vega-selftest.pyz belongs to 0 parts"),
    (changed("operator's page", "files", r"README\.md|plan\.json"), "belongs to 2 parts"),
    (changed("self-test", "files", "gone"), "no file is of self-test: gone"),
    (changed("stage", "own", {"link": {"never": "x"}}), "stage: there is no link"),
    (changed(".wsl archive", "each", ["wsl-arch"]), r"beside, wsl: it names \['wsl-arch'\]"),
    (changed("stage from an archive instead of from source", "each", ["seal"]), "prebuilt"),
    (changed("what the office brings,", "each", ["drivers"]), "beside, placed"),
    (changed("other way to the card", "each", ["rocr"]), "beside, clr"),
])  # fmt: skip
def test_a_table_that_does_not_fit_the_tree_is_refused(table: Claims, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        rows(seen(), table)
    assert caught.value.code == "CLAIMS_UNFIT"
    assert "claims.yaml" in str(caught.value.hint)


def test_what_can_be_prebuilt_is_what_makes_something() -> None:
    [item] = [item for item in claims().beside if item.of == "prebuilt"]
    assert set(item.each) == MAKING


def test_there_is_a_fault_for_every_check() -> None:
    checks = tree_checks(trees()[Platform.QEMU].files, platform=Platform.QEMU)
    assert checks.keys() == CHECK_RULES.keys()
    assert checks_planted() == {*CHECK_RULES, ANSIBLE}
    assert ansible.RULES


def test_a_fault_is_seen_in_the_file_where_it_is() -> None:
    files = {
        "answer/a.xml": b"<unattend/>\r\n",
        "media/vega/a.ps1": b"exit 0\r\n",
        "media/vega/b.cmd": b"@echo off\r\nexit /b 0\r\n",
        "README.md": b"nothing\n",
        "playbooks/a.yaml": b"---\n",
    }

    def play(spoilt: Any) -> list[Any]:
        assert {path for path in files if files[path] != spoilt[path]} == {"playbooks/a.yaml"}
        return []

    found = refusing(files, platform=Platform.METAL, play=play, look_for=[])
    assert found == {
        "answer/a.xml": {"answer-files", "secrets"},
        "media/vega/a.ps1": {"powershell", "secrets"},
        "media/vega/b.cmd": {"cmd-files", "secrets"},
        "README.md": {"secrets"},
        "playbooks/a.yaml": {"secrets"},
    }


def test_the_yaml_that_ansibles_fault_spoils_is_all_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/a.yaml").write_text("---\n\n]\n")
    [path] = yaml_files(tmp_path)
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(path.read_text())
