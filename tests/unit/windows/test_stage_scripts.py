"""The PowerShell of the native build: parsed, held against what it calls and who calls it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell
import yaml

from tests.windowsmachine import NOW, lay
from tests.windowsstages import PREBUILT, TEMPLATES, parts, target, tree
from vega_image.errors import BytesError, EngineError, HostError, StageError, UsageError
from vega_image.finddb.profile import PLACES, System
from vega_image.selftest import gate
from vega_image.selftest.arguments import parser
from vega_image.selftest.identity import suite_version
from vega_image.selftest.windows.cause import CODES
from vega_image.selftest.windows.folder import read_folder
from vega_image.selftest.windows.gatewords import parse_gate
from vega_image.selftest.windows.verdict import SCHEMA, Question, decide
from vega_image.windows.clrpatches import Clr
from vega_image.windows.recipes import windows_recipe
from vega_image.windows.references import STAGES

ROOT = TEMPLATES.parent
SOURCE = tree(target())
TREES = {
    "source": SOURCE,
    "prebuilt": tree(target(prebuilt=frozenset(PREBUILT))),
    "rocr": tree(target(clr="rocr")),
    "old-clr": tree(target(clr="old-clr")),
}
SCRIPTS = {
    f"{kind}:{path.removeprefix('media/vega/stages/')}": data.replace(b"\r\n", b"\n").decode()
    for kind, files in TREES.items()
    for path, data in files.items()
    if path.endswith(".ps1") and "/finddb/" not in path
}
HEAD = re.compile(
    r"(?:#[^\n]*\n)+(?:\[CmdletBinding\(\)\]\nparam\(\n(?:    [^\n]*\n)+\)\n)?"
    r"\nSet-StrictMode -Version 2\.0\n\$ErrorActionPreference = 'Stop'\n"
)
# Of Windows PowerShell 5.1 and its modules.
CMDLETS = frozenset(
    {
        "Add-Content", "Add-Type", "ConvertFrom-Json", "ConvertTo-Json", "Copy-Item",
        "ForEach-Object", "Get-ChildItem", "Get-CimInstance", "Get-Content", "Get-FileHash",
        "Get-Item", "Get-MpPreference", "Join-Path", "Move-Item", "New-Item", "New-Object",
        "Out-Host", "Out-Null", "Pop-Location", "Push-Location", "Remove-Item",
        "Set-ItemProperty", "Set-StrictMode", "Sort-Object", "Split-Path", "Start-Process",
        "Test-Path", "Where-Object",
    }
)  # fmt: skip
BESIDE = re.compile(r"(?m)^\. \(Join-Path \$PSScriptRoot '([a-z-]+\.ps1)'\)$")
SECTION = re.compile(r"(?m)^function ([A-Za-z]+-[A-Za-z]+) \{\n(.*?)^\}$", re.DOTALL)


def parsed(text: str) -> tree_sitter.Node:
    language = tree_sitter.Language(tree_sitter_powershell.language())
    return tree_sitter.Parser(language).parse(text.encode()).root_node


def nodes(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    yield node
    for child in node.children:
        yield from nodes(child)


def words(node: tree_sitter.Node) -> str:
    assert node.text is not None
    return node.text.decode()


def functions(text: str) -> dict[str, set[str]]:
    """Return each function's parameters."""
    found = {}
    for name, body in SECTION.findall(text):
        head = re.match(r"(?:    #[^\n]*\n)*    param\((.*)\)\n", body)
        found[name] = set(re.findall(r"\$(\w+)", head[1])) if head else set()
    return found


def in_scope(key: str) -> dict[str, set[str]]:
    """Return the functions that a script can call: its own, and those it reads in."""
    kind, _, path = key.partition(":")
    folder = path.rpartition("/")[0]
    found, left = functions(SCRIPTS[f"{kind}:steps.ps1"]), [key]
    while left:
        text = SCRIPTS[left.pop()]
        found |= functions(text)
        if folder:
            left += [f"{kind}:{folder}/{name}" for name in BESIDE.findall(text)]
    return found


@pytest.mark.parametrize("key", sorted(SCRIPTS))
def test_a_script_parses_and_begins_as_all_do(key: str) -> None:
    text = SCRIPTS[key]
    assert not parsed(text).has_error
    assert "\n#Requires -Version 5.1\n" in text
    assert HEAD.match(text), text[:300]
    assert "\t" not in text
    assert "{{" not in text
    assert "{%" not in text


def below(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Walk what belongs to a command itself, not to commands inside its arguments."""
    for child in node.children:
        if child.type != "command":
            yield child
            yield from below(child)


def calls(text: str) -> list[tuple[str, set[str]]]:
    """Return every call of something named Verb-Noun, with the parameters it is given."""
    found = []
    for node in nodes(parsed(text)):
        name = next((words(c) for c in node.children if c.type == "command_name"), "")
        if node.type == "command" and "-" in name:
            given = {
                words(item)[1:] for item in below(node) if item.type == "command_parameter"
            }
            found.append((name, given))
    return found


@pytest.mark.parametrize("key", sorted(SCRIPTS))
def test_what_a_script_calls_exists_and_takes_the_parameters(key: str) -> None:
    known = in_scope(key)
    for name, given in calls(SCRIPTS[key]):
        assert name in known or name in CMDLETS, name
        assert name in CMDLETS or given <= known[name], (name, given)


def test_the_calls_of_a_script_are_all_seen() -> None:
    text = (
        "function Get-X {\n    param([string]$Name)\n    Get-Y -Nome (Get-Z -At 1 -Whole)\n}\n"
    )
    assert functions(text) == {"Get-X": {"Name"}}
    assert calls(text) == [("Get-Y", {"Nome"}), ("Get-Z", {"At", "Whole"})]


@pytest.mark.parametrize("key", sorted(SCRIPTS))
def test_only_agreed_exit_codes(key: str) -> None:
    kinds = (UsageError, BytesError, EngineError, StageError, HostError)
    agreed = [kind.exit_code for kind in kinds]
    text = SCRIPTS[key]
    assert {int(code) for code in re.findall(r"(?:-Code|\$Code =) (\d+)", text)} <= set(agreed)
    if key.endswith(":run-stage.ps1"):
        assert f"$Codes = @({', '.join(map(str, [0, *agreed]))})\n" in text
    if key.endswith("stage.ps1"):
        assert text.endswith("exit $script:ExitCode\n")
        assert text.count("$script:ExitCode = 0") == 1


@pytest.mark.parametrize("key", sorted(SCRIPTS))
def test_nothing_is_fetched_but_commits(key: str) -> None:
    text = SCRIPTS[key]
    assert not re.search(
        r"(?i)https?://|WebRequest|WebClient|BitsTransfer|Invoke-Expression", text
    )
    assert "--index-url" not in text


@pytest.mark.parametrize("strategy", ["source", "prebuilt"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_sources_that_a_script_names_are_those_its_recipe_wants(
    stage: str, strategy: str
) -> None:
    recipe = windows_recipe(f"win-{stage}", parts().recipes[f"win-{stage}"])
    more = recipe.wants.source if strategy == "source" else recipe.wants.prebuilt
    wanted = {**recipe.wants.always, **more}
    texts = [
        text
        for key, text in SCRIPTS.items()
        if key.startswith(f"{strategy}:") and f"-{stage}/stage.ps1" in key
    ]
    assert len(texts) == 1
    text = texts[0]
    if stage == "compiler-runtime" and strategy == "source":
        text += SCRIPTS["source:20-compiler-runtime/clr.ps1"]
    named = set(re.findall(r"-Manifest \$Manifest -Name '([^']+)'", text)) - {"clr"}
    if "Set-PipSource" in text:
        named.add("python-wheels")
    if stage == "prerequisites":
        # Everything in stage.json is hashed; these are then installed by name.
        named |= set(re.findall(r"\$files\['([^']+)'\]", text))
    assert named == set(wanted)


def test_the_runner_and_the_role_agree() -> None:
    role = ROOT / "playbooks/roles/native_build"
    tasks = "".join(path.read_text() for path in sorted((role / "tasks").glob("*.yaml")))
    assert "run-stage.ps1" in tasks
    assert "-Stage {{ native_build_stage }}" in tasks
    defaults = yaml.safe_load((role / "defaults/main.yaml").read_text())
    assert tuple(defaults["native_build_stages"]) == STAGES
    runner = SCRIPTS["source:run-stage.ps1"]
    root = defaults["native_build_root"]
    assert f"$Root = '{root}\\'" in runner
    for place in ("'stamps\\' + $Name + '.json'", "'logs\\' + $Stage + '.log'"):
        assert place in runner
    steps = SCRIPTS["source:steps.ps1"]
    assert f"$Programs = '{defaults['native_build_programs']}'" in steps


def test_the_stamp_is_written_last() -> None:
    body = dict(SECTION.findall(SCRIPTS["source:run-stage.ps1"]))["Start-Stage"]
    order = ["Set-LongPath", "Assert-Need", "Test-Stamp", "Remove-Item -LiteralPath $old",
             "Assert-Disk", "Invoke-Stage", "Write-Stamp"]  # fmt: skip
    places = [body.index(word) for word in order]
    assert places == sorted(places)
    assert body.index("Get-Output") > body.index("Invoke-Stage")
    lines = SCRIPTS["source:run-stage.ps1"]
    assert lines.index("$held = Lock-Root") < lines.index("    Start-Stage\n")


def test_the_fields_that_scripts_read_are_in_the_manifest() -> None:
    for key, text in SCRIPTS.items():
        kind, _, path = key.partition(":")
        read = set(re.findall(r"\$Manifest\.(\w+)", text))
        if not path.endswith("/stage.ps1") or not read:
            continue
        name = f"media/vega/stages/{path.rpartition('/')[0]}/stage.json"
        assert read <= json.loads(TREES[kind][name]).keys(), key
    every = {"schema", "stage", "inputs", "needs", "disk_gib", "outputs", "target", "sources",
             "files_root"}  # fmt: skip
    for key in ("source:run-stage.ps1", "source:steps.ps1"):
        assert set(re.findall(r"(?i)\$Manifest\.(\w+)", SCRIPTS[key])) <= every


def test_the_flags_of_the_card() -> None:
    runtime = SCRIPTS["source:20-compiler-runtime/stage.ps1"]
    libraries = SCRIPTS["source:40-math-libs/stage.ps1"]
    for text in (runtime, libraries):
        for flag in ("'windows-release'", "'-DTHEROCK_AMDGPU_FAMILIES=gfx906'",
                     "'-DTHEROCK_ENABLE_ALL=OFF'"):  # fmt: skip
            assert flag in text
    assert "'stage-compiler-runtime'" in runtime
    assert "'stage-math-libs'" in libraries
    for name in ("BLAS", "SOLVER", "SPARSE", "PRIM", "RAND", "FFT", "MIOPEN"):
        assert f"'-DTHEROCK_ENABLE_{name}=ON'" in libraries
        assert f"'-DTHEROCK_ENABLE_{name}=ON'" not in runtime
    build = SOURCE["media/vega/stages/60-pytorch/build.cmd"].decode()
    for line in ("USE_FLASH_ATTENTION=OFF", "USE_MEM_EFF_ATTENTION=OFF", "USE_KINETO=OFF",
                 "BUILD_TEST=0", "DISTUTILS_USE_SDK=1"):  # fmt: skip
        assert f'set "{line}"\r\n' in build
    assert '"PYTORCH_ROCM_ARCH=gfx906"' in build


def test_the_exclusions_are_those_of_the_facts() -> None:
    table = json.loads(SOURCE["media/vega/stages/40-math-libs/exclusions.json"])
    assert {row["project"]: row["issue"].partition("#")[2] for row in table["on_gfx906"]} == {
        "hipSPARSELt": "2042",
        "composable_kernel": "1245",
        "rocWMMA": "1944",
        "hipTensor": "2074",
        "rocprofiler-compute": "2892",
    }
    assert [row["project"] for row in table["placeholder"]] == ["hipBLASLt"]
    assert table["miopen"] == {
        "MIOPEN_USE_MLIR": "OFF",
        "MIOPEN_USE_COMPOSABLEKERNEL": "OFF",
        "MIOPEN_INSTALL_GPU_DATABASES": "gfx906",
    }


def test_every_choice_of_clr_is_known_to_the_script() -> None:
    text = SCRIPTS["source:20-compiler-runtime/clr.ps1"]
    assert set(re.findall(r"(?m)^#   ([a-z-]+)  ", text)) == set(Clr)
    assert {choice for choice in Clr if f"'{choice.value}'" in text} == set(Clr)
    options = yaml.safe_load(
        (TEMPLATES / "stages/win-compiler-runtime/recipe.yaml").read_text()
    )
    assert all(choice.value in options["options"]["clr"] for choice in Clr)


ENUMERATION = SCRIPTS["source:30-enumeration/stage.ps1"]


def word_of_a_new_machine(case: str, folder: Path) -> str:
    """Return the gate's word for a machine on which nothing was ever run."""
    question = Question(suite_version(), NOW, gate.Asked("r2"), recorded=False)
    return decide(read_folder(lay(case, folder).facts), None, question).code


def test_a_card_that_is_well_gets_the_word_that_the_stage_waits_for(tmp_path: Path) -> None:
    [word] = re.findall(r"(?m)^\$Enumerates = '(\w+)'$", ENUMERATION)
    assert word in CODES
    assert word_of_a_new_machine("good", tmp_path) == word


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("hip-pal-gap", "HIP_PAL_GAP"),
        ("card-absent", "CARD_ABSENT"),
        ("wrong-arch", "WRONG_ARCH"),
        ("dll-shadowed-system32", "DLL_SHADOWED"),
        ("driver-rdna", "DRIVER_BRANCH"),
        ("unreadable-hipinfo", "FACTS_UNREADABLE"),
    ],
)
def test_every_other_machine_gets_another_word(case: str, code: str, tmp_path: Path) -> None:
    assert word_of_a_new_machine(case, tmp_path) == code
    assert f"'{code}'" in ENUMERATION or code not in {"HIP_PAL_GAP", "CARD_ABSENT"}


def test_the_stage_asks_the_gate_in_its_own_words() -> None:
    [line] = re.findall(r"& \$python ([^\n]+)", ENUMERATION)
    given = [word.strip("'") for word in line.split()]
    assert given[:3] == ["-I", "$Program", "gate"]
    wish = parse_gate(parser().parse_args(given[2:]))
    assert (str(wish.facts), str(wish.state), wish.json) == ("$Facts", "$Record", True)
    assert not wish.recorded
    assert f"'{SCHEMA}'" in ENUMERATION
    gather = (TEMPLATES / "firstboot/windows/gather-facts.ps1").read_text()
    taken = set(re.findall(r"(?m)^    \[\w+\]\$(\w+) = ", gather.split("\n)\n")[0]))
    asked = re.findall(r"'-(Facts|ImageFile|HipTimeoutSeconds)'", ENUMERATION)
    assert set(asked) <= taken
    assert len(asked) == 3
    for way in ("GPU_ENABLE_PAL=0", "old-clr", "pal-patch"):
        assert way in ENUMERATION


def test_the_find_db_goes_where_the_profile_says() -> None:
    seal = SCRIPTS["source:70-seal/stage.ps1"]
    assert f"$FindDb = '{PLACES[System.WINDOWS].db}'" in seal
    assert "'set-environment.ps1'" in seal
    fields = set(
        re.findall(r"(?m)^        (\w+) = ", dict(SECTION.findall(seal))["Write-Image"])
    )
    assert fields == {"image", "profile", "cards", "hip_dlls"}


def test_outputs_are_absolute_and_the_wildcard_is_in_the_name() -> None:
    for stage in STAGES:
        recipe = windows_recipe(f"win-{stage}", parts().recipes[f"win-{stage}"])
        for path in recipe.outputs:
            folder, _, name = path.rpartition("\\")
            assert re.match(r"[BC]:\\", path)
            assert "*" not in folder
            assert name
