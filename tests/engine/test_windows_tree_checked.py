"""The rendered Windows trees before the real packer, and their README.md read as a script."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.windowstree import shared, tree, whole
from vega_image.checks.hclrules import check_hcl
from vega_image.checks.packer import check_packer
from vega_image.checks.windows import check_windows_tree
from vega_image.factory import Factory
from vega_image.windows.manualzips import COMPONENTS
from vega_image.windows.prepared import prepare_windows, windows_lock
from vega_image.windows.spec import Platform, WindowsTarget

WITH_VM = [Platform.QEMU, Platform.HYPERV, Platform.PROXMOX]
NEWER = "updates: {install_while_building: true}\n"
SECURE = ("memory_gib: 8", "memory_gib: 8, secure_boot: true")
FILES = ("OpenSSH-Win64.zip", "virtio-win.iso", "ninja-win.zip")
STUB = """\
import json, os, pathlib, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open(os.environ["LOG"], "a") as log:
    log.write(json.dumps([name, os.getcwd(), *words]) + "\\n")
if name == "packer" and words[0] == "version":
    print(os.environ["PACKER"])
if name == "packer" and words[0] == "build":
    given = dict(word.split("=", 1) for word in words if "=" in word)
    if "serial_log" in given:
        made = pathlib.Path(given["output_directory"]).name
        pathlib.Path(given["serial_log"]).write_text(f"VEGA-IMAGE READY {made} 1.0.0\\n")
if name == "vega-image" and words[0] == "selftest":
    pathlib.Path(words[-1]).write_text("a zip")
if name == "xorriso":
    pathlib.Path(words[-1]).mkdir()
if name == "git" and words[0] == "clone":
    (pathlib.Path(words[-1]) / "shared").mkdir(parents=True)
if name == "ssh-keyscan":
    print(words[-1], "ssh-ed25519 BBBB")
if name == "ssh-keygen":
    key = pathlib.Path(words[-1])
    key.write_text("a key")
    key.with_suffix(".pub").write_text("ssh-ed25519 AAAA\\n")
"""


@pytest.mark.needs("packer")
@pytest.mark.parametrize("platform", WITH_VM)
def test_packer_accepts_the_core_and_the_form_of_the_overlays(platform: Platform) -> None:
    assert check_packer(tree(platform)) == []
    if platform is not Platform.PROXMOX:
        assert check_packer(tree(platform, more=NEWER, change=SECURE)) == []


@pytest.mark.needs("packer")
def test_packer_sees_a_file_for_the_cd_that_is_missing() -> None:
    files = tree()
    del files["media/autounattend.xml"]
    [item] = check_packer(files)
    assert item.rule == "PKR002"
    assert "autounattend.xml" in item.message


@pytest.mark.needs("packer")
@pytest.mark.parametrize("platform", Platform)
def test_no_check_of_the_tree_finds_anything(platform: Platform) -> None:
    assert check_windows_tree(whole(platform), platform=platform) == []


@pytest.mark.parametrize(
    "path",
    [
        "answer/unattend-oobe.xml",
        "media/vega/firstboot/SetupComplete.cmd",
        "media/vega/scripts/capture.ps1",
    ],
)
def test_on_metal_nothing_but_the_page_hands_these_over(path: str) -> None:
    files = whole(Platform.METAL)
    name = path.rpartition("/")[2].encode()
    lines = files["README.md"].splitlines(keepends=True)
    files["README.md"] = b"".join(line for line in lines if name not in line)
    found = check_windows_tree(files, platform=Platform.METAL)
    assert {(item.path, item.rule) for item in found} == {(path, "XRF002")}


def test_on_metal_the_machine_gets_the_files_of_this_tree() -> None:
    """Else it would go on as the virtual machine that its WIM was made in."""
    files = tree(Platform.METAL)
    page = files["README.md"].decode()
    assert json.loads(files["media/vega/image.json"]) != json.loads(
        tree()["media/vega/image.json"]
    )
    for name in ("image.json", "settings.json", "firstboot", "scripts"):
        assert f'Copy-Item "${{From}}media\\vega\\{name}' in page


class Desk:
    """A folder with a tree, the operator's files, and stubs that note what was called."""

    def __init__(self, folder: Path, files: dict[str, bytes]) -> None:
        self.folder = folder / "a folder é"
        self.tree = self.folder / "tree"
        inventory = {path: data for path, data in shared().items() if "inventory/" in path}
        for path, data in {**inventory, **files}.items():
            place = self.tree / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        (self.folder / "payload").mkdir()
        (self.folder / ".ssh").mkdir()
        for name in sorted(set(re.findall(r"\| file `([^`]+)`", self.readme())) or FILES):
            (self.folder / "payload" / name).write_text(name)
        (self.folder / "driver").mkdir()
        (self.folder / "driver" / "u0.inf").write_text("a driver")
        self.packer = "Packer v1.6.6"
        self.log = self.folder / "calls"
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        for name in (
            "vega-image",
            "packer",
            "xorriso",
            "ansible",
            "ansible-playbook",
            "dvc",
            "git",
            "zip",
            "qemu-img",
            "sha256sum",
            "ssh",
            "ssh-keygen",
            "ssh-keyscan",
        ):
            program = self.programs / name
            program.write_text(f"#!{sys.executable}\n{STUB}")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(self) -> list[list[str]]:
        """Run every `sh` block of README.md, one after another, in one shell."""
        script = "set -eu\n" + "\n".join(blocks(self.readme()))
        environ = {
            "HOME": str(self.folder),
            "LOG": str(self.log),
            "PACKER": self.packer,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.tree,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.said = done.stdout
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def readme(self) -> str:
        return (self.tree / "README.md").read_text()


def blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def given(calls: list[list[str]], name: str) -> list[list[str]]:
    """Return the arguments of each call of a program."""
    return [call[2:] for call in calls if call[0] == name]


@pytest.mark.parametrize("platform", Platform)
def test_readme_runs_from_top_to_bottom(tmp_path: Path, platform: Platform) -> None:
    desk = Desk(tmp_path, tree(platform))
    calls = desk.run()
    factory = ["-C", str(desk.folder / "vega-image")]
    ours = given(calls, "vega-image")
    assert ours[0] == ["lock", "tiny-windows", *factory, "--payload", f"{desk.folder}/payload"]
    wanted = ["render", "tiny-windows", *factory, "--platform", platform.value]
    assert ours[1] == [*wanted, "-o", str(desk.tree)]
    media = desk.tree / "media/vega"
    assert (media / "vega-selftest.pyz").exists()
    assert {p.name for p in (media / "installers").iterdir()} >= {"ninja-win.zip"}
    if platform is not Platform.METAL:
        assert (media / "authorized_keys").read_text() == "ssh-ed25519 AAAA\n"
        assert (media / "installers/OpenSSH-Win64.zip").exists()
        assert (media / "drivers/display/u0.inf").exists()
    if platform in {Platform.QEMU, Platform.PROXMOX}:
        drivers = {path.name for path in (media / "drivers").iterdir()}
        assert drivers == {"vioscsi", "viostor", "vioserial", "NetKVM", "display"}
        assert given(calls, "packer")[-1][0] == "build"


@pytest.mark.parametrize("platform", Platform)
def test_readme_reaches_builds_on_and_asks_the_machine(
    tmp_path: Path, platform: Platform
) -> None:
    desk = Desk(tmp_path, tree(platform, more="administrator: provision\n"))
    calls = desk.run()
    names = [call[0] for call in calls]
    assert names[-6:] == [
        "ssh-keyscan",
        "ansible",
        "ansible-playbook",
        "ssh",
        "ssh",
        "ssh",
    ] or (
        platform is Platform.METAL
        and [name for name in names[-7:] if name != "vega-image"]
        == ["ssh-keyscan", "ansible", "ansible-playbook", "ssh", "ssh", "ssh"]
    )
    office = desk.folder / "office"
    hosts = yaml.safe_load((office / "office.yaml").read_text())
    assert hosts["windows"]["children"]["windows_ssh"]["hosts"] == {
        "192.0.2.10": {"vega_expected_gpu": "66AF", "ansible_user": "provision"}
    }
    assert (office / "controller-key").read_text() == "a key"
    assert (office / "known_hosts").read_text() == "192.0.2.10 ssh-ed25519 BBBB\n"
    [played] = [call for call in calls if call[0] == "ansible-playbook"]
    said = f'{{"vega_tree": "{desk.tree}", "vega_native_build": true}}'
    inventory = ["--inventory", str(office / "office.yaml")]
    assert played[1:] == [
        str(desk.tree / "playbooks"),
        *inventory,
        "--extra-vars",
        said,
        "windows.yaml",
    ]
    assert given(calls, "ansible") == [
        [*inventory, "-m", "ansible.windows.win_ping", "windows"]
    ]
    for words in given(calls, "ssh"):
        assert words[:4] == ["-F", "none", "-i", str(desk.folder / ".ssh/vega")]
        assert f'UserKnownHostsFile="{office}/known_hosts"' in words
        assert words[-2] == "provision@192.0.2.10"
        # What OpenSSH for Windows puts around the words.
        assert '"' not in words[-1]
    assert "$env:ProgramData/VegaImage/selftest/verdict.json" in given(calls, "ssh")[1][-1]


@pytest.mark.parametrize("platform", Platform)
def test_readme_of_our_own_target_runs_too(
    project: Path, tmp_path: Path, platform: Platform
) -> None:
    factory = Factory(project)
    asked = factory.spec("windows-ltsc")
    assert isinstance(asked, WindowsTarget)
    locked = windows_lock(factory, asked)
    files = prepare_windows(factory, asked, locked, platform=platform).files
    desk = Desk(tmp_path, dict(files))
    calls = desk.run()
    interop = [name for name in ("git", "dvc", "zip") if given(calls, name)]
    assert interop == ["git", "dvc", "zip"]
    [systems] = [source for name, source in locked.sources.items() if name == "rocm-systems"]
    assert given(calls, "git")[-1][-1] == getattr(systems, "commit", None)
    assert given(calls, "zip")[-1][2] == f"{desk.folder}/payload/amdgpu-windows-interop.zip"
    installers = {path.name for path in (desk.tree / "media/vega/installers").iterdir()}
    payload = {path.name for path in (desk.folder / "payload").iterdir()}
    assert installers == payload - {"virtio-win.iso"}


def test_the_layout_holds_the_components_that_the_stage_demands(project: Path) -> None:
    stage = (project / "templates/stages/win-prerequisites/stage.ps1.j2").read_text()
    wanted = re.findall(r"'(Microsoft\.VisualStudio\.Component\.[\w.]+)'", stage)
    assert wanted == list(COMPONENTS)


@pytest.mark.needs("ansible")
def test_ansible_reads_the_inventory_that_the_page_makes(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tree())
    desk.run()
    office = desk.folder / "office"
    program = Path(sys.executable).parent / "ansible-inventory"
    done = subprocess.run(
        [program, "--inventory", office / "office.yaml", "--host", "192.0.2.10"],
        env={**os.environ, "HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=True,
    )
    known = json.loads(done.stdout)
    assert known["ansible_user"] == "vega"
    assert known["ansible_connection"] == "ansible.builtin.ssh"
    assert known["ansible_ssh_private_key_file"] == "{{ inventory_dir }}/controller-key"
    assert known["packages_from"] == "layout"


def test_a_machine_that_does_not_answer_leaves_no_inventory(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tree())
    (desk.programs / "ssh-keyscan").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(AssertionError):
        desk.run()
    assert not (desk.folder / "office/office.yaml").exists()


def test_an_inventory_that_is_there_is_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, whole(Platform.QEMU))
    (desk.folder / "office").mkdir()
    (desk.folder / "office/office.yaml").write_text("mine\n")
    calls = desk.run()
    assert (desk.folder / "office/office.yaml").read_text() == "mine\n"
    assert not given(calls, "ssh-keyscan")


def test_a_key_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tree())
    (desk.folder / ".ssh/vega").write_text("mine")
    (desk.folder / ".ssh/vega.pub").write_text("ssh-ed25519 MINE\n")
    assert not given(desk.run(), "ssh-keygen")
    assert (desk.tree / "media/vega/authorized_keys").read_text() == "ssh-ed25519 MINE\n"


def test_a_driver_that_is_not_there_is_said(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tree())
    (desk.folder / "driver/u0.inf").unlink()
    (desk.folder / "driver").rmdir()
    desk.run()
    assert f"missing: {desk.folder}/driver" in desk.said
    assert not (desk.tree / "media/vega/drivers/display").exists()


@pytest.mark.parametrize(
    ("said", "joins"), [("Packer v1.6.6", False), ("Packer v1.14.2", True), ("", True)]
)
def test_a_packer_without_builders_gets_its_plugins(
    tmp_path: Path, said: str, *, joins: bool
) -> None:
    desk = Desk(tmp_path, tree())
    desk.packer = said
    calls = given(desk.run(), "packer")
    assert [words[0] for words in calls] == ["version", *["init"] * joins, "build"]
    assert (desk.tree / "packer/plugins.pkr.hcl").exists() == joins


def test_readme_of_a_resolved_lock_locks_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tree(resolved=True))
    assert "Nothing: every file has its digest" in desk.readme()
    assert not [words for words in given(desk.run(), "vega-image") if words[0] == "lock"]


@pytest.mark.needs("packer")
@pytest.mark.parametrize("word", [None, "firmware=", "serial_log="])
def test_the_packer_command_of_the_page_is_one_that_packer_accepts(
    tmp_path: Path, word: str | None
) -> None:
    """Also with a word spoilt, which packer must refuse."""
    desk = Desk(tmp_path, tree())
    [build] = [call for call in desk.run() if call[0] == "packer" and call[2] == "build"]
    words = ["validate", *build[3:]]
    if word is not None:
        words = [item.replace(word, "nobody=") for item in words]
    # Packer reads the key, and an empty name is no key.
    key = next(item for item in words if item.startswith("ssh_private_key_file="))
    assert key == f"ssh_private_key_file={desk.folder / '.ssh/vega'}"
    words[words.index(key)] = "ssh_private_key_file="
    (desk.folder / "windows.iso").touch()
    program = shutil.which("packer")
    assert program is not None
    done = subprocess.run(
        [program, *words],
        cwd=build[1],
        env={**os.environ, "CHECKPOINT_DISABLE": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (word is None), done.stdout + done.stderr


@pytest.mark.parametrize("platform", WITH_VM)
def test_the_packer_command_names_every_variable_but_secrets(platform: Platform) -> None:
    files = tree(platform)
    texts = {path: data.decode() for path, data in files.items() if path.endswith(".hcl")}
    core = {path: text for path, text in texts.items() if "overlays" not in path}
    _, declared = check_hcl(core)
    page = files["README.md"].decode()
    given = set(re.findall(r"-var \"?(\w+)=", page))
    secret = {name for name, block in declared.items() if block.attribute("sensitive")}
    unused = {"output_directory", "serial_log"} if platform is Platform.PROXMOX else set()
    assert given == declared.keys() - secret - unused
    # A secret on a command line can be read by others.
    assert not secret & given


@pytest.mark.parametrize("platform", Platform)
def test_blocks_are_marked_for_the_machine_they_are_for(platform: Platform) -> None:
    page = tree(platform)["README.md"].decode()
    kinds = re.findall(r"^```(\w*)$", page, re.MULTILINE)
    assert {kind for kind in kinds if kind} <= {"sh", "powershell"}
    for block in blocks(page):
        assert not re.search(r"[A-Z]:\\", block)
        shlex.split(block, comments=True)
    for word in ("PROVEN", "HIP_PAL_GAP", "Never run", "docs/windows-gate.md"):
        assert word in page
    assert page.count("\n") < 260
