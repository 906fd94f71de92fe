"""The table of docs/windows.md is what the checks and the trees of today say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vega_image.checks.planted import ANSIBLE
from vega_image.checks.windows import CHECK_RULES
from vega_image.commands.windows import claimsdoc
from vega_image.commands.windows.claimsdoc import BEGIN, END, main, replaced, see, written
from vega_image.errors import UsageError
from vega_image.factory import Factory
from vega_image.windows.claims import Claims, Seen, claims, rows

pytestmark = [
    pytest.mark.needs("packer"),
    pytest.mark.needs("ansible"),
    pytest.mark.needs("ansible-lint"),
]


@pytest.fixture(scope="module")
def seen() -> Seen:
    project = Path(__file__).resolve().parents[2]
    return see(Factory.find(project, cwd=project))


def table_of(page: str) -> str:
    return BEGIN + page.partition(BEGIN)[2].partition(END)[0] + END


def mutant(field: str, value: object) -> Claims:
    changed = claims().model_dump()
    changed["parts"][0][field] = value
    return Claims.model_validate(changed)


def test_the_page_is_what_the_command_writes(seen: Seen, project: Path) -> None:
    page = (project / "docs/windows.md").read_text()
    assert table_of(page) == written(seen, claims())
    for changed in (mutant("never", "it ran"), mutant("name", "another part")):
        assert table_of(page) != written(seen, changed)
    stale = page.replace("| stage `seal`", "| stage `unseal`")
    assert stale != page
    assert replaced(stale, written(seen, claims())) == page


@pytest.mark.slow
def test_the_command_mends_a_page(project: Path, tmp_path: Path) -> None:
    page = (project / "docs/windows.md").read_text()
    stale = tmp_path / "a page.md"
    stale.write_text(page.replace("| stage `seal`", "| stage `unseal`"))
    argv = [sys.executable, "-m", claimsdoc.__name__, str(stale)]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert stale.read_text() == page


def test_each_check_refuses_something_and_every_text_is_read_for_secrets(seen: Seen) -> None:
    held = {name for names in seen.refusing.values() for name in names}
    assert held == {*CHECK_RULES, ANSIBLE}
    unread = {path for path, names in seen.refusing.items() if "secrets" not in names}
    assert unread == {"media/vega/vega-selftest.pyz"}
    for path, names in seen.refusing.items():
        assert ("powershell" in names) == path.endswith(".ps1"), path
        assert ("packer" in names) == path.endswith(".hcl"), path
        assert ("answer-files" in names) == path.endswith(".xml"), path
        assert ("cmd-files" in names) == path.endswith(".cmd"), path
        assert ("ansible" in names) == path.endswith((".yaml", ".yml")), path


def test_a_check_that_looks_away_leaves_the_table(seen: Seen) -> None:
    blind = {path: names - {"powershell"} for path, names in seen.refusing.items()}
    found = rows(Seen(seen.trees, blind, seen.wsl), claims())
    assert not [row for row in found if "powershell" in row.cells[2]]
    assert [row for row in rows(seen, claims()) if "powershell" in row.cells[2]]


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}{BEGIN}"])
def test_a_page_without_marks_is_left_alone(page: str) -> None:
    with pytest.raises(UsageError) as caught:
        replaced(page, "made")
    assert caught.value.code == "NO_MARKS"


def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("no marks\n")
    assert main(page) == 2
    out, err = capsys.readouterr()
    assert "NO_MARKS" in out + err
    assert page.read_text() == "no marks\n"
