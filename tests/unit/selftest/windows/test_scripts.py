"""The PowerShell of first boot against the programs it feeds: names, fields, ids, words."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell

from vega_image.selftest.arguments import parse_run, parser
from vega_image.selftest.windows.cause import CODES
from vega_image.selftest.windows.folder import FIELDS, HIPINFO_TEXT, ITEMS, SCHEMA
from vega_image.selftest.windows.gatewords import parse_gate
from vega_image.selftest.windows.verdict import SCHEMA as VERDICT_SCHEMA

ROOT = Path(__file__).resolve().parents[4]
SCRIPTS = ROOT / "templates" / "firstboot" / "windows"
NAMES = ["apply-verdict.ps1", "gather-facts.ps1", "register-task.ps1", "self-test.ps1"]
PAGE = (ROOT / "docs" / "windows-gate.md").read_text()
ROLE = (ROOT / "playbooks/roles/gate/tasks/main.yaml").read_text()
OURS = {"HELD", "UNKNOWN"}


def script(name: str) -> str:
    return (SCRIPTS / name).read_text(encoding="ascii")


def event_ids() -> dict[str, str]:
    pattern = re.compile(r"^    '([A-Z0-9_]+)' = (\d+)$", re.MULTILINE)
    return dict(pattern.findall(script("apply-verdict.ps1")))


def blocks() -> dict[str, str]:
    """Return what stands in each Save-Fact of gather-facts.ps1."""
    parts = re.split(r"(?m)^Save-Fact -Name '([^']+)' -Read \{$", script("gather-facts.ps1"))[
        1:
    ]
    return {
        name: text.split("\n}\n")[0] for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def names_in(text: str) -> list[str]:
    return re.findall(r"(?:^|[;{])\s*([a-z_0-9]+) = ", text, re.MULTILINE)


def test_the_folder_holds_what_it_should() -> None:
    assert sorted(path.name for path in SCRIPTS.iterdir()) == sorted(
        ["SetupComplete.cmd", *NAMES]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_plain_and_strict_and_parses(name: str) -> None:
    text = script(name)
    assert "\r" not in text
    assert "\t" not in text
    assert "{{" not in text
    assert "\nSet-StrictMode -Version 3.0\n$ErrorActionPreference = 'Stop'\n" in text
    language = tree_sitter.Language(tree_sitter_powershell.language())
    tree = tree_sitter.Parser(language).parse(text.encode())
    assert not tree.root_node.has_error


def test_every_file_that_is_read_is_gathered_and_no_other() -> None:
    assert set(blocks()) == set(FIELDS)
    text = script("gather-facts.ps1")
    assert f"schema = '{SCHEMA}'; set = $script:SetName" in text
    assert f"'{HIPINFO_TEXT}'" in text


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_a_gathered_file_has_the_fields_that_are_read(name: str) -> None:
    whole = blocks()[name]
    last = whole[whole.rindex("    @{") :]
    assert sorted(names_in(last)) == sorted(FIELDS[name])
    for field in FIELDS[name]:
        if field in ITEMS and field != "copies":
            start = whole.index(f"${'sdks' if field == 'hip_sdks' else field} = @(foreach")
            item = whole[whole.index("[ordered]@{", start) :]
            assert sorted(names_in(item[: item.index("}")])) == sorted(ITEMS[field])


def test_a_copy_of_a_library_has_the_fields_that_are_read() -> None:
    text = script("gather-facts.ps1")
    made = text[text.index("function Get-Copy") :]
    item = made[made.index("[ordered]@{") : made.index("version = ") + 20]
    assert sorted(names_in(item)) == sorted(ITEMS["copies"])
    assert re.findall(r"-Place '(\w+)'", text) == ["program", "system32", "path"]


def test_every_code_has_an_event_of_its_own_and_the_page_says_so() -> None:
    ids = event_ids()
    assert set(ids) == set(CODES) | OURS
    assert len(set(ids.values())) == len(ids)
    rows = re.findall(r"^\| `([A-Z0-9_]+)` \|.*\| (\d+) \|$", PAGE, re.MULTILINE)
    assert dict(rows) == ids
    for code, meaning in CODES.items():
        assert f"| `{code}` | {meaning} |" in PAGE


def test_the_page_names_every_file_and_field() -> None:
    for name, fields in FIELDS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
        assert all(field in row for field in fields)
        for field in fields:
            assert all(item in row for item in ITEMS.get(field, ()))


@pytest.mark.parametrize("act", ["Enable-NetFirewallRule", "Start-Service", "'Manual'"])
def test_only_one_script_opens_anything(act: str) -> None:
    assert [name for name in NAMES if act in script(name)] == ["apply-verdict.ps1"]
    assert script("apply-verdict.ps1").count(act) == 1


def test_a_pass_is_a_whole_one_and_every_other_way_closes() -> None:
    text = script("apply-verdict.ps1")
    for part in (f"'{VERDICT_SCHEMA}'", "-ceq 'pass'", "-ceq 'proven'", "-ceq 'PROVEN'",
                 "$Value.exit -eq 0", "$Value.recorded -eq $false"):  # fmt: skip
        assert part in text
    assert text.count("Open-Service") == 2
    assert re.search(r"if \(Test-Pass -Value \$value\) \{\s+Open-Service\b", text)
    assert re.search(r"catch \{\s+\$fault = [^\n]+\s+try \{\s+Close-Service\b", text)


def command(word: str) -> list[str]:
    """Return the arguments self-test.ps1 gives the pyz for a word."""
    line = re.search(rf"'-I \"\{{0\}}\" ({word} [^']+)' -f", script("self-test.ps1"))
    assert line is not None
    return shlex.split(re.sub(r"\{3\}", "r2", line[1]) if word == "gate" else line[1])


@pytest.mark.parametrize("more", [[], ["--begin"], ["--finish", "--report", "x"]])
def test_the_words_given_to_the_gate_are_its_own(more: list[str]) -> None:
    given = [word for word in command("gate") if word != "{4}"]
    wish = parse_gate(parser().parse_args([*given, *more]))
    assert (str(wish.facts), str(wish.state), wish.level, wish.json) == (
        "{1}",
        "{2}",
        "r2",
        True,
    )
    assert not wish.recorded
    text = script("self-test.ps1")
    assert "-Words '--begin'" in text
    assert "'--finish --report \"{0}\"'" in text


def test_the_words_given_to_the_run_are_its_own() -> None:
    given = [word.replace("{1}", "r2").replace("{2}", "hip") for word in command("run")]
    wish = parse_run(parser().parse_args(given))
    assert (wish.level, wish.device, str(wish.facts)) == ("r2", "hip", "{3}")


def test_parameters_given_between_scripts_exist() -> None:
    text = script("self-test.ps1")
    calls = re.findall(r"Invoke-Script -Name '([^']+)' -Arguments \('([^']+)'", text)
    assert {name for name, _ in calls} == {"apply-verdict.ps1", "gather-facts.ps1"}
    for name, words in calls:
        head = script(name).split("\n)\n", maxsplit=1)[0]
        for word in re.findall(r"-(\w+)", words):
            assert re.search(rf"\[(string|switch|int)\]\${word}\b", head), (name, word)


def test_setup_complete_only_registers() -> None:
    lines = script("SetupComplete.cmd").splitlines()
    programs = [line for line in lines if ".exe" in line]
    assert len(programs) == 1
    assert "register-task.ps1" in programs[0]
    assert not re.search(r"(?i)shutdown|restart|schtasks|reboot", script("SetupComplete.cmd"))


def test_the_task_the_folders_and_the_names_are_the_agreed_ones() -> None:
    text = script("register-task.ps1")
    for name in (r"'\VegaImage\'", "'SelfTest'", "-AtStartup", "'S-1-5-18'", "'VegaInference'",
                 "'VegaInference-In'", r"'C:\Program Files\VegaImage'",
                 r"'C:\ProgramData\VegaImage'", "IgnoreNew", "ExecutionTimeLimit"):  # fmt: skip
        assert name in text
    assert text.index("    Close-Everything\n") < text.index("    Set-FolderAccess -Path")


ACTS = (
    "Set-Service",
    "Stop-Service",
    "New-NetFirewallRule",
    "Disable-NetFirewallRule",
    "Set-Acl",
    "New-EventLog",
    "Set-ItemProperty",
    "New-Item ",
    "Register-SelfTest",
)


def unguarded(text: str) -> set[str]:
    """Return what changes the machine outside of Invoke-Change, which -Check holds back."""
    body = text.replace("function Register-SelfTest", "")
    body = re.sub(r"(?ms)^( *)Invoke-Change -What [^\n]* -Do \{\n.*?^\1\}$", "", body)
    return {act.strip() for act in ACTS if act in body}


def test_with_check_nothing_is_changed_and_every_change_is_said() -> None:
    text = script("register-task.ps1")
    assert all(text.count(act) >= 1 for act in ACTS)
    assert unguarded(text) == set()
    assert "if (-not $Check) {\n        & $Do\n" in text
    assert text.count("Register-ScheduledTask") == 1
    for act in ACTS:
        assert unguarded(f"{text}\n{act}") == {act.strip()}


def test_its_line_has_what_the_role_reads_and_the_page_says() -> None:
    text = script("register-task.ps1")
    said = text[text.index("$said = [ordered]@{") :]
    names = names_in(said[: said.index("}")])
    assert names == ["schema", "check", "changed", "what", "fault"]
    assert '{"schema":"vega-register/1","check","changed","what":[],"fault"}' in PAGE
    assert text.count("Write-Output") == 1
    assert "(gate_registered.stdout_lines | last | from_json).changed" in ROLE


def test_the_role_has_no_gate_of_its_own() -> None:
    head = script("register-task.ps1").split("\n)\n", maxsplit=1)[0]
    words = re.findall(r"^      - -(Programs|Settled)$|\['-(Check)'\]", ROLE, re.MULTILINE)
    assert [first or second for first, second in words] == ["Check", "Programs", "Settled"]
    for word in ("Programs", "Settled", "Check"):
        assert re.search(rf"\[(string|switch)\]\${word}\b", head)
    for module in ("win_acl", "win_eventlog", "win_scheduled_task", "win_file"):
        assert module not in ROLE
