"""The rendered tree of a Windows target: what holds of every one, whatever the spec says."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windowstree import lock, parts, shared, spec, target, texts, tree
from vega_image.checks.hclrules import check_hcl
from vega_image.digest import digest_bytes
from vega_image.errors import UsageError
from vega_image.windows.parts import Parts
from vega_image.windows.render import as_windows_reads, render_windows
from vega_image.windows.spec import Platform

EVERY = pytest.mark.parametrize("platform", Platform)
WITH_VM = pytest.mark.parametrize(
    "platform", [Platform.QEMU, Platform.HYPERV, Platform.PROXMOX]
)
NS = {"u": "urn:schemas-microsoft-com:unattend"}
SECURE = ("memory_gib: 8", "memory_gib: 8, secure_boot: true")
BUILD = ("size_gib: 128", "size_gib: 256, build_gib: 150")
AUTO, OOBE = "media/autounattend.xml", "answer/unattend-oobe.xml"


def answer(files: dict[str, bytes], path: str = AUTO) -> ET.Element:
    return ET.fromstring(files[path])


def words(root: ET.Element, path: str) -> list[str]:
    return [item.text or "" for item in root.iterfind(path, NS)]


@EVERY
def test_context_names_every_other_file_by_digest(platform: Platform) -> None:
    files = tree(platform)
    said = json.loads(files.pop("context.json"))
    assert said["rendered"] == {path: digest_bytes(data) for path, data in files.items()}
    assert list(files) == sorted(files)
    assert said["placed_by_commands"] == ["media/vega/vega-selftest.pyz"]


@EVERY
def test_the_order_of_what_is_handed_over_changes_nothing(platform: Platform) -> None:
    asked = target(spec())
    given_parts = parts(asked)
    turned = Parts(
        texts=dict(reversed(list(given_parts.texts.items()))),
        stage_files=dict(reversed(list(given_parts.stage_files.items()))),
        stages=given_parts.stages,
        shared=given_parts.shared,
    )
    assert render_windows(asked, lock(asked), platform=platform, parts=turned) == tree(platform)


@EVERY
def test_windows_reads_every_text(platform: Platform) -> None:
    for path, data in tree(platform).items():
        if path.endswith((".ps1", ".cmd", ".xml")):
            assert data.isascii(), path
            assert data.count(b"\n") == data.count(b"\r\n"), path
        elif not path.endswith(".pyz"):
            assert b"\r" not in data, path


@EVERY
def test_no_password_no_key_and_no_address_is_anywhere(platform: Platform) -> None:
    files = tree(platform, more="administrator: provision\n", resolved=True)
    everything = "\n".join(data.decode() for data in files.values())
    assert not re.search(r"\b[A-Z0-9]{5}(-[A-Z0-9]{5}){4}\b", everything)
    for path, data in files.items():
        if path.endswith(".xml"):
            root = ET.fromstring(data)
            names = {item.tag.rpartition("}")[2] for item in root.iter()}
            assert not names & {"Password", "AdministratorPassword", "AutoLogon", "Key"} - (
                {"Key"} if root.findall(".//u:MetaData", NS) else set()
            ), path
            assert not root.findall(".//u:ProductKey/u:Key", NS)
        if path.startswith(("media/", "packer/", "answer/")):
            urls = set(re.findall(r"https?://[^\s\"'<]*", data.decode()))
            assert urls <= {"http://schemas.microsoft.com/WMIConfig/2002/State"}, path


def test_bare_machines_get_no_setup_and_no_packer() -> None:
    files = tree(Platform.METAL)
    assert AUTO not in files
    assert not [path for path in files if path.startswith("packer/")]
    for path in (OOBE, "media/vega/scripts/capture.ps1", "media/vega/stages/10-prerequisites"):
        assert [name for name in files if name.startswith(path)]
    assert b"LabConfig" not in b"".join(files.values())


@WITH_VM
def test_bypasses_are_for_machines_without_secure_boot_alone(platform: Platform) -> None:
    assert b"LabConfig" in tree(platform)[AUTO]
    assert b"LabConfig" not in tree(platform)[OOBE]
    if platform is not Platform.PROXMOX:
        assert b"LabConfig" not in tree(platform, change=SECURE)[AUTO]


@WITH_VM
def test_only_virtio_machines_get_drivers(platform: Platform) -> None:
    found = words(answer(tree(platform)), ".//u:DriverPaths//u:Path")
    wanted = [rf"{letter}:\vega\drivers" for letter in "DEFGH"]
    assert found == ([] if platform is Platform.HYPERV else wanted)


def test_partitions_fill_the_disk_and_windows_goes_on_the_third() -> None:
    plain = answer(tree())
    assert words(plain, ".//u:CreatePartition/u:Type") == ["EFI", "MSR", "Primary"]
    assert words(plain, ".//u:CreatePartition/u:Extend") == ["true"]
    built = answer(tree(change=BUILD))
    sizes = [int(size) for size in words(built, ".//u:CreatePartition/u:Size")]
    assert sizes == [300, 16, 106 * 1024 - 316]
    assert sum(sizes) == 106 * 1024
    assert words(built, ".//u:ModifyPartition/u:PartitionID") == ["1", "3", "4"]
    assert words(built, ".//u:ModifyPartition/u:Label") == ["System", "Windows", "VEGABUILD"]
    for root in (plain, built):
        assert words(root, ".//u:InstallTo/u:PartitionID") == ["3"]
    assert "VEGABUILD" in tree()["media/vega/scripts/build-root.ps1"].decode()


def test_a_bare_disk_is_divided_as_that_of_a_virtual_machine() -> None:
    for change in (("", ""), BUILD):
        page = tree(Platform.METAL, change=change)["README.md"].decode()
        made = re.findall(r"^    'create partition (\w+)(?: size=(\d+))?'$", page, re.MULTILINE)
        root = answer(tree(change=change))
        kinds = [kind.lower() for kind in words(root, ".//u:CreatePartition/u:Type")]
        assert [kind for kind, _ in made] == kinds
        sizes = words(root, ".//u:CreatePartition/u:Size")
        assert [size for _, size in made if size] == sizes
        labels = re.findall(r"^    'format quick fs=\w+ label=(\w+)'$", page, re.MULTILINE)
        assert labels == words(root, ".//u:ModifyPartition/u:Label")


@pytest.mark.parametrize(("edition", "keys"), [
    ("{source: windows, index: 1}", ["/IMAGE/INDEX"]),
    ("{source: windows, name: windows 11 iot enterprise ltsc evaluation}", ["/IMAGE/NAME"]),
])  # fmt: skip
def test_the_edition_is_chosen_as_the_spec_does(edition: str, keys: list[str]) -> None:
    old = "{source: windows, index: 1, name: Windows 11 IoT Enterprise LTSC Evaluation}"
    root = answer(tree(change=(old, edition)))
    assert words(root, ".//u:MetaData/u:Key") == keys
    # The medium's own spelling: Setup compares letter by letter.
    name = "Windows 11 IoT Enterprise LTSC Evaluation"
    assert words(root, ".//u:MetaData/u:Value") in (["1"], [name])


def test_a_name_with_marks_of_xml_stays_a_name() -> None:
    own = "{kind: iso, size: 9, sha256: " + "ab" * 32 + ", editions: {1: 'A & B <C> \"D\"'}}"
    medium = "{kind: iso, iso: windows-11-iot-enterprise-ltsc-eval}"
    old = "{source: windows, index: 1, name: Windows 11 IoT Enterprise LTSC Evaluation}"
    text = (
        spec().replace(medium, own).replace(old, "{source: windows, name: 'a & b <c> \"d\"'}")
    )
    asked = target(text)
    files = render_windows(asked, lock(asked), platform=Platform.QEMU, parts=parts(asked))
    assert words(answer(files), ".//u:MetaData/u:Value") == ['A & B <C> "D"']


@WITH_VM
def test_the_gate_comes_before_anybody_can_log_on(platform: Platform) -> None:
    files = tree(platform)
    first = words(answer(files), "u:settings[@pass='specialize']//u:Path")
    assert r"vega\scripts\prepare.ps1" in first[-1]
    prepare = files["media/vega/scripts/prepare.ps1"].decode()
    body = prepare[prepare.index("try {") :]
    assert body.index("Register-Gate") < body.index("Copy-Medium") < body.index("account.ps1")
    again = words(answer(files, OOBE), "u:settings[@pass='specialize']//u:Path")
    assert again[0].endswith(r'-File "C:\Program Files\VegaImage\firstboot\register-task.ps1"')
    # Microsoft: Path is a string with a maximum length of 259 characters.
    assert max(map(len, first + again)) <= 259


def test_a_command_that_setup_would_cut_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vega_image.windows.answer._PATH_LONGEST", 100)
    with pytest.raises(UsageError, match="Setup takes 100") as caught:
        tree()
    assert caught.value.code == "TEMPLATE_INVALID"


@EVERY
def test_every_script_that_is_called_is_there(platform: Platform) -> None:
    files = tree(platform)
    there = {path.rpartition("/")[2] for path in files if path.startswith("media/vega/")}
    for path, data in files.items():
        if path.startswith(("packer/", "answer/", "media/")) and not path.endswith(".md"):
            called = set(re.findall(r"(?<![\w*-])[a-zA-Z][\w-]+\.(?:ps1|cmd)\b", data.decode()))
            assert called <= there, path


def test_the_scripts_for_the_first_start_hold_the_words_of_the_spec() -> None:
    more = "first_boot: {level: r3, time_limit_minutes: 300, port: 9000}\n"
    files = tree(more=more)
    task = files["media/vega/firstboot/register-task.ps1"].decode()
    assert "[int]$Port = 9000," in task
    assert "[int]$LimitMinutes = 300\r\n" in task
    run = files["media/vega/firstboot/self-test.ps1"].decode()
    assert "[string]$Level = 'r3'," in run
    assert "[int]$LimitMinutes = 200\r\n" in run
    image = json.loads(files["media/vega/image.json"])
    assert image["cards"] == ["1002:66af"]
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", image["image"])
    plain = tree()
    for name in ("gather-facts.ps1", "apply-verdict.ps1", "SetupComplete.cmd"):
        text = texts()[f"firstboot/windows/{name}"].replace(b"\n", b"\r\n")
        assert plain[f"media/vega/firstboot/{name}"] == text
    # Without words of its own a spec leaves the scripts as they are.
    for name in ("register-task.ps1", "self-test.ps1"):
        text = texts()[f"firstboot/windows/{name}"].replace(b"\n", b"\r\n")
        assert plain[f"media/vega/firstboot/{name}"] == text


def test_the_payload_says_what_is_locked_and_what_is_not() -> None:
    rows = {row["name"]: row for row in json.loads(tree()["media/vega/payload.json"])["files"]}
    assert rows.keys() == {"openssh", "virtio", "ninja"}
    assert {row["sha256"] for row in rows.values()} == {None}
    resolved = json.loads(tree(resolved=True)["media/vega/payload.json"])["files"]
    assert all(re.fullmatch("[0-9]{64}", row["sha256"]) for row in resolved)
    assert "where" in rows["ninja"]


def test_plan_names_what_is_unresolved_and_the_stages_in_order() -> None:
    plan = json.loads(tree()["plan.json"])
    assert plan["unresolved"] == ["ninja", "openssh", "pytorch", "virtio"]
    assert json.loads(tree(resolved=True)["plan.json"])["unresolved"] == []
    assert [row["folder"] for row in plan["stages"]][:2] == [
        "10-prerequisites",
        "20-compiler-runtime",
    ]
    assert plan["image"] == json.loads(tree()["media/vega/image.json"])["image"]


@pytest.mark.parametrize("change", [SECURE, ("version: 1.0.0", "version: 1.0.1")])
def test_the_image_is_known_by_what_it_is_made_from(change: tuple[str, str]) -> None:
    def image(files: dict[str, bytes]) -> str:
        return str(json.loads(files["media/vega/image.json"])["image"])

    assert image(tree(resolved=True)) != image(tree())
    assert image(tree(Platform.HYPERV)) != image(tree())
    assert (image(tree(change=change)) != image(tree())) == ("version" in change[0])


@WITH_VM
def test_hcl_keeps_our_rules_with_and_without_what_is_newer(platform: Platform) -> None:
    more = "updates: {install_while_building: true}\n"
    for files in (tree(platform), tree(platform, more=more)):
        hcl = {path: data.decode() for path, data in files.items() if path.endswith(".hcl")}
        findings, variables = check_hcl(hcl)
        assert findings == []
        assert {
            "iso_path",
            "iso_checksum",
            "output_directory",
            "serial_log",
        } <= variables.keys()
        assert len(hcl) == 6


@pytest.mark.parametrize(("path", "data", "said"), [
    ("media/vega/a.ps1", b"# one\n# \xc3\xa9\n", "media/vega/a.ps1:2: only ASCII"),
    ("a.cmd", b"\xff\n", "a.cmd:1: only ASCII"),
    ("media/vega/" + "n" * 65, b"", "names of at most 64 characters"),
])  # fmt: skip
def test_what_windows_could_not_read_is_refused(path: str, data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        as_windows_reads(path, data)
    assert caught.value.code == "TEMPLATE_INVALID"


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b" "])))
@settings(deadline=None)
def test_line_ends_are_given_once(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    once = as_windows_reads("a.ps1", data)
    assert as_windows_reads("a.ps1", once) == once
    assert once.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n")
    assert as_windows_reads("a.json", data) == data


@pytest.mark.parametrize(("lost", "code"), [
    ("windows/answer/autounattend.xml.j2", "TEMPLATE_ABSENT"),
    ("windows/scripts/prepare.ps1", "TEMPLATE_ABSENT"),
    ("firstboot/windows/register-task.ps1", "TEMPLATE_ABSENT"),
    ("windows/readme/qemu.md.j2", "TEMPLATE_ABSENT"),
])  # fmt: skip
def test_a_lost_template_is_said(lost: str, code: str) -> None:
    asked = target(spec())
    kept = {path: data for path, data in texts().items() if path != lost}
    with pytest.raises(UsageError) as caught:
        render_windows(asked, lock(asked), platform=Platform.QEMU, parts=Parts(texts=kept))
    assert caught.value.code == code


@pytest.mark.parametrize(("path", "data"), [
    ("firstboot/windows/self-test.ps1", b"param(\n    [string]$Level = 'r4'\n)\n"),
    ("windows/packer/build.pkr.hcl.j2", b"{{ nobody }}"),
    ("windows/answer/commands.xml.j2", b"{% for %}"),
    ("windows/readme/README.md.j2", b"\xff"),
])  # fmt: skip
def test_a_broken_template_is_said(path: str, data: bytes) -> None:
    asked = target(spec())
    broken = Parts(texts={**texts(), path: data})
    with pytest.raises(UsageError) as caught:
        render_windows(asked, lock(asked), platform=Platform.QEMU, parts=broken)
    assert caught.value.code == "TEMPLATE_INVALID"
    assert path.rpartition("/")[2] in caught.value.message


def test_two_texts_for_one_file_are_refused() -> None:
    asked = target(spec())
    twice = Parts(texts=texts(), shared={"README.md": b"mine"})
    with pytest.raises(UsageError, match=r"README\.md: two templates"):
        render_windows(asked, lock(asked), platform=Platform.QEMU, parts=twice)


def test_playbooks_and_inventory_go_along_as_they_are() -> None:
    asked = target(spec())
    whole = parts(asked, with_shared=True)
    files = render_windows(asked, lock(asked), platform=Platform.QEMU, parts=whole)
    for path, data in shared().items():
        ends = data.replace(b"\n", b"\r\n") if path.endswith(".ps1") else data
        assert files[path] == ends


def test_scripts_parse() -> None:
    import tree_sitter
    import tree_sitter_powershell

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    scripts = {path: data for path, data in tree().items() if path.endswith(".ps1")}
    assert len(scripts) > 15
    for path, data in scripts.items():
        assert not parser.parse(data).root_node.has_error, path
        assert parser.parse(data.replace(b"}", b"", 1) + b"{").root_node.has_error
