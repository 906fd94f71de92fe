"""The native build as it is rendered: our rules for PowerShell, cmd files and references."""

from __future__ import annotations

import json
import re

import pytest

from tests.windowsstages import PREBUILT, TEMPLATES, target, tree
from tests.windowstree import shared
from vega_image.checks.cmdfile import check_cmd_files
from vega_image.checks.crossrefs import check_references
from vega_image.checks.powershell import check_powershell
from vega_image.windows.clrpatches import Clr, Edit, Edits

TREES = {
    **{choice.value: tree(target(clr=choice.value)) for choice in Clr},
    "prebuilt": tree(target(prebuilt=frozenset(PREBUILT))),
    "prebuilt runtime": tree(target(prebuilt=frozenset(PREBUILT[:3]))),
    "prebuilt pytorch": tree(target(prebuilt=frozenset(PREBUILT[3:]))),
}
STAGES = "media/vega/stages"
RUNTIME = TEMPLATES / "stages/win-compiler-runtime"
EDITS = (RUNTIME / "edits.ps1").read_text()
STEPS = (TEMPLATES / "windows/steps.ps1").read_text()
RUNNER = (TEMPLATES / "windows/run-stage.ps1").read_text()


def body(text: str, name: str) -> str:
    """Return the lines of one function of a script."""
    [found] = re.findall(rf"(?ms)^function {name} \{{\n(.*?)^\}}$", text)
    return str(found)


def in_order(text: str, *words: str) -> bool:
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


def ours(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files that lie as we wrote them: the profile's script is the find-db's."""
    return {path: data for path, data in files.items() if "/finddb/" not in path}


@pytest.mark.parametrize("kind", TREES)
def test_every_rendered_script_follows_our_rules(kind: str) -> None:
    assert check_powershell(ours(dict(TREES[kind]))) == []
    assert check_cmd_files(ours(dict(TREES[kind]))) == []


@pytest.mark.parametrize("kind", TREES)
def test_the_folders_are_whole_and_every_patch_is_named(kind: str) -> None:
    # A role starts the runner. What lies outside of stages/ and patches/ is not rendered here.
    found = check_references({**TREES[kind], **shared()})
    assert [item for item in found if item.rule != "XRF001"] == []
    assert not any("stages" in item.message or "patches" in item.message for item in found)


@pytest.mark.parametrize(
    ("path", "old", "new", "rule"),
    [
        ("20-compiler-runtime/edits.ps1", b"Set-StrictMode", b"# Set-StrictMode", "PS002"),
        ("steps.ps1", b"$ended = $LASTEXITCODE", b"$ended = 0", "PS004"),
        ("run-stage.ps1", b"'Stop'", b"'Continue'", "PS003"),
        ("20-compiler-runtime/clr.ps1", b"'edits.ps1'", b"'other.ps1'", "XRF002"),
        ("20-compiler-runtime/stage.ps1", b"}", b"", "PS001"),
    ],
)
def test_a_spoilt_script_is_found(path: str, old: bytes, new: bytes, rule: str) -> None:
    files = ours(dict(TREES["pal-patch"]))
    place = f"{STAGES}/{path}"
    assert old in files[place]
    files[place] = files[place].replace(old, new, 1)
    found = [*check_powershell(files), *check_references(files)]
    assert rule in {item.rule for item in found}


def test_the_script_reads_every_field_of_a_patch_and_no_other() -> None:
    def fields(model: type[Edit | Edits]) -> set[str]:
        return {item.alias or name for name, item in model.model_fields.items()}

    assert set(re.findall(r"\$Patch\.(\w+)", EDITS, re.IGNORECASE)) == fields(Edits)
    assert set(re.findall(r"\$Edit\.(\w+)", EDITS, re.IGNORECASE)) == fields(Edit)
    assert set(re.findall(r"\$Edit\.where -ceq '(\w+)'", EDITS)) == {"before"}


def test_an_anchor_that_is_not_there_once_ends_the_stage_with_4() -> None:
    add = body(EDITS, "Add-Line")
    assert in_order(add, "@(Find-Word", "$found.Count -ne 1", "Stop-Stage -Code 4", "Insert(")
    said = body(EDITS, "Assert-Word")
    present, absent = said.split("in @($Patch.absent)")
    assert in_order(present, "in @($Patch.present)", "-eq 0", "Stop-Stage -Code 4")
    assert in_order(absent, "Find-Word", "-gt 0", "Stop-Stage -Code 4")
    codes = re.findall(r"Stop-Stage -Code (\d)", add + said)
    assert codes == ["4"] * 4
    # A patch of another commit must not leave half of itself behind.
    assert in_order(body(EDITS, "Edit-Checkout"), "Assert-Word", "Add-Line", "WriteAllBytes")


def test_what_a_word_is_is_the_same_here_and_there() -> None:
    source = (TEMPLATES.parent / "vega_image/windows/clrpatches.py").read_text()
    for part in ("(?<![A-Za-z0-9_])", "(?![A-Za-z0-9_])"):
        assert part in source
        assert part in EDITS
    assert "IgnoreCase" not in EDITS


def test_the_patches_begin_from_the_bytes_of_the_commit() -> None:
    stage = TREES["pal-patch"][f"{STAGES}/20-compiler-runtime/stage.ps1"].decode()
    order = (
        "Assert-Submodule",
        "Restore-Checkout",
        "Add-Interop",
        "Add-TheRockPatch",
        "Set-Clr",
    )
    assert in_order(stage, *order)
    clr = body((RUNTIME / "clr.ps1").read_text(), "Set-Clr")
    assert in_order(
        clr, "Get-Digest", "-cne $patch.sha256", "Stop-Stage -Code 4", "Edit-Checkout"
    )


def test_the_patches_lie_on_the_media_with_the_digests_of_the_manifest() -> None:
    for kind, files in TREES.items():
        manifest = json.loads(files[f"{STAGES}/20-compiler-runtime/stage.json"])
        names = {row["file"] for row in manifest["patches"]}
        wanted = kind in {"pal-patch", "prebuilt pytorch"}
        assert len(names) == (2 if wanted else 0), kind
        assert {f"media/vega/patches/clr/{name}" for name in names} <= files.keys()


def test_the_code_is_known_before_anything_is_thrown() -> None:
    assert in_order(body(STEPS, "Stop-Stage"), "$script:ExitCode = $Code", "throw $Text")
    assert STEPS.count("throw ") == 1
    assert "throw " not in RUNNER
    # Whatever nobody foresaw is a bug of ours, not a success.
    assert "$script:ExitCode = 1\n" in STEPS
    end = RUNNER[RUNNER.index("$held = $null") :]
    assert in_order(end, "Start-Stage\n", "$script:ExitCode = 0", "catch {", "finally {")
    assert RUNNER.endswith("\nexit $script:ExitCode\n")


def test_a_stamp_is_whole_or_absent() -> None:
    assert in_order(
        body(STEPS, "Write-Whole"), "'.tmp'", "Flush($true)", "::Replace(", "::Move("
    )
    assert "Write-Whole" in body(STEPS, "Write-Json")
    write = body(RUNNER, "Write-Stamp")
    assert re.findall(r"(?m)^        (\w+) = ", write) == [
        "schema",
        "stage",
        "inputs",
        "finished",
        "outputs",
    ]
    assert "Write-Json -Path (Get-StampPath" in write
    assert "path = " in body(RUNNER, "Get-Output")
    # The stamp of an earlier run falls before the stage begins.
    start = body(RUNNER, "Start-Stage")
    assert in_order(start, "Remove-Item -LiteralPath $old", "Invoke-Stage", "Write-Stamp")
    after = start[start.index("Write-Stamp") :].splitlines()[1:]
    assert [line.split()[0] for line in after] == ["Write-StageLog"]


def test_only_done_ends_with_0() -> None:
    codes = re.search(r"\$Codes = @\(([\d, ]+)\)", RUNNER)
    assert codes is not None
    assert codes[1] == "0, 2, 4, 5, 6, 7"
    invoke = body(RUNNER, "Invoke-Stage")
    assert in_order(
        invoke, "$Codes -notcontains $code", "-Code 6", "$code -ne 0", "-Code $code"
    )
