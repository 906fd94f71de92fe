"""Every word about a Windows target, as a user types it; only Windows itself is missing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.bootiso import HANG, bootable
from tests.processes import marked, until
from tests.tiny import PROJECT, User
from tests.windowsuser import all_given, new_key, windows_user, with_packer

LTSC = "windows-ltsc"
PLATFORMS = ("qemu", "hyperv", "proxmox", "metal")
SAID = "vega-image: the guest is up"
BIOS = Path("/usr/share/seabios/bios-256k.bin")


@pytest.fixture
def user(tmp_path: Path) -> User:
    return windows_user(tmp_path)


@pytest.fixture
def locked(user: User) -> User:
    user.done("lock", "tiny", "--payload", str(user.folder / "pay load"))
    return user


def tree(user: User, target: str = LTSC, platform: str = "qemu") -> Path:
    return user.store / "windows" / f"{target}-{platform}" / "tree"


def fits(user: User, word: str, value: Any) -> None:
    jsonschema.validate(value, user.done("targets", "--schema", word))


# -- lock


def test_the_committed_lock_is_what_lock_writes_without_a_network(user: User) -> None:
    path = user.factory / f"images/{LTSC}.lock.json"
    path.unlink()
    value = user.done("lock", LTSC, "--offline")
    fits(user, "lock", value)
    assert path.read_bytes() == (PROJECT / f"images/{LTSC}.lock.json").read_bytes()
    assert {"ninja", "pytorch", "amdgpu-windows-interop"} <= set(value["unresolved"])
    assert "therock" not in value["unresolved"]


def test_a_payload_gives_digests_which_stay_until_another_says_otherwise(user: User) -> None:
    payload = user.folder / "pay load"
    assert user.done("lock", "tiny")["unresolved"] == ["tool"]
    user.done("lock", "tiny", "--payload", str(payload))
    tool = json.loads(user.lock.read_text())["sources"]["tool"]
    assert (tool["size"], tool["sha256"]) == (6, hashlib.sha256(b"a tool").hexdigest())
    assert user.done("lock", "tiny")["changes"] == ["no change"]
    assert user.done("lock", "tiny", "--payload", str(user.folder))["unresolved"] == []
    (payload / "tool.zip").write_bytes(b"another")
    changes = user.done("lock", "tiny", "--payload", str(payload))["changes"]
    assert changes == ["tool: changed: tool.zip (+0.0 MB)"]
    user.edit('version: "1.0"', 'version: "2.0"')
    assert user.done("lock", "tiny")["unresolved"] == ["tool"]


def test_a_payload_that_is_none_is_refused_and_the_lock_stays(locked: User) -> None:
    before, payload = locked.lock.read_bytes(), locked.folder / "pay load"
    words = ("lock", "tiny", "--payload")
    assert locked.refused(*words, str(locked.folder / "no")) == (2, "PAYLOAD_ABSENT")
    (payload / "tool.zip").write_bytes(b"")
    assert locked.refused(*words, str(payload)) == (4, "PAYLOAD_EMPTY")
    (payload / "tool.zip").unlink()
    (payload / "tool.zip").mkdir()
    assert locked.refused(*words, str(payload)) == (2, "PAYLOAD_NOT_A_FILE")
    (payload / "tool.zip").rmdir()
    (payload / "tool.zip").write_bytes(b"a tool")
    locked.edit("file: tool.zip", f"file: tool.zip, sha256: {'a' * 64}")
    assert locked.refused(*words, str(payload)) == (4, "PAYLOAD_WRONG")
    assert locked.lock.read_bytes() == before


# -- plan, render, check


def test_plan_names_stages_forecasts_and_what_nobody_has(user: User) -> None:
    value = user.done("plan", LTSC)
    fits(user, "plan", value)
    names = [stage["stage"] for stage in value["stages"]]
    assert names[:3] == ["prerequisites", "compiler-runtime", "enumeration"]
    assert {stage["status"] for stage in value["stages"]} == {"rendered"}
    text = user("plan", LTSC).out
    assert "none was ever run" in text
    for name in value["unresolved"]:
        assert f"\n{name} " in text
    assert user.done("plan", LTSC, "--platform", "metal")["image"] != value["image"]


def test_a_stage_that_changes_changes_those_after_it(user: User) -> None:
    before = {x["stage"]: x["inputs"] for x in user.done("plan", LTSC)["stages"]}
    spec = user.factory / f"images/{LTSC}.yaml"
    spec.write_text(spec.read_text().replace("{clr: pal-patch}", "{clr: rocr}"))
    after = {x["stage"]: x["inputs"] for x in user.done("plan", LTSC)["stages"]}
    same = [name for name in before if before[name] == after[name]]
    assert same == ["prerequisites"]


def test_render_is_the_same_anywhere_and_takes_away_what_is_not_of_it(user: User) -> None:
    one, two = user.folder / "one", user.folder / "sub" / "two é"
    value = user.done("render", LTSC, "-o", str(one))
    fits(user, "render", value)
    user.having(TZ="Asia/Tokyo", LANG="C").done("render", LTSC, "-o", str(two))
    assert files(one) == files(two)
    assert (one / "media/vega/vega-selftest.pyz").read_bytes()[:2] == b"#!"
    key = one / "media/vega/authorized_keys"
    key.write_text("a key\n")
    user.done("render", LTSC, "-o", str(one), "--platform", "metal")
    assert not (one / "packer/source.pkr.hcl").exists()
    assert key.read_text() == "a key\n"
    assert user.refused("render", LTSC, "-o", str(user.folder)) == (2, "FOLDER_NOT_OURS")
    assert user.refused("render", LTSC, "-o", str(one), "--context") == (2, "BAD_CONTEXT")


def test_an_edited_manifest_takes_nothing_away_outside(user: User) -> None:
    victim, out = user.folder / "victim", user.folder / "out"
    victim.write_text("mine")
    out.mkdir()
    named = {"rendered": {"../victim": "", str(victim): "", "packer/old.pkr.hcl": ""}}
    (out / "context.json").write_text(json.dumps(named))
    (out / "packer").mkdir()
    (out / "packer/old.pkr.hcl").write_text("old")
    user.done("render", LTSC, "-o", str(out))
    assert victim.read_text() == "mine"
    assert not (out / "packer/old.pkr.hcl").exists()


@pytest.mark.needs("packer")
def test_check_finds_nothing_for_any_platform(user: User) -> None:
    answer = user.json("check", "--target", LTSC)
    assert answer.code == 0, answer.out
    fits(user, "check", answer.value)
    wanted = {"answer-files", "cmd-files", "powershell", "cross-references", "packer"}
    assert wanted | {"secrets", "ansible"} <= set(answer.value["checks"])
    for platform in PLATFORMS:
        assert f"{LTSC} for {platform}: no findings" in answer.err


@pytest.mark.needs("packer")
def test_check_names_file_and_line_of_a_fault(user: User) -> None:
    templates = user.factory / "templates"
    templates.unlink()
    shutil.copytree(PROJECT / "templates", templates)
    script = templates / "windows/scripts/tell.ps1"
    script.write_text(script.read_text() + "Invoke-Expression $args[0]\n")
    line = len(script.read_text().splitlines())
    answer = user("check", LTSC, "--platform", "qemu")
    assert answer.code == 2
    assert f"media/vega/scripts/tell.ps1:{line}" in answer.err
    assert user.refused("build", LTSC) == (2, "CHECK_FAILED")


def test_a_check_that_cannot_run_passes_nothing(user: User, tmp_path: Path) -> None:
    poor = user.having(PATH=str(tmp_path))
    answer = poor.json("check", LTSC, "--platform", "qemu")
    assert answer.error == (5, "TOOL_ABSENT")
    assert "packer: packer is not installed" in answer.value["error"]["message"]


# -- build


@pytest.mark.needs("packer")
def test_build_without_a_medium_does_the_rest_and_says_so_in_one_screen(user: User) -> None:
    answer = user("build", "--target", LTSC)
    assert answer.code == 5
    assert not answer.out
    lines = answer.err.splitlines()
    assert len(lines) <= 24
    text = answer.err
    assert f"vega-image build {LTSC} --iso FILE --payload DIR --ssh-key FILE" in lines[-1]
    assert "windows-11-iot-enterprise-ltsc-eval" in text
    assert "an ssh key" in text
    assert f"vega-image lock {LTSC} --payload DIR" in text
    folder = tree(user)
    assert str(folder) in text
    plan = json.loads((folder / "plan.json").read_text())
    assert len(plan["stages"]) == 7
    assert (folder / "README.md").is_file()
    assert (folder / "media/vega/vega-selftest.pyz").is_file()


def test_build_without_any_tool_still_writes_the_tree(user: User, tmp_path: Path) -> None:
    answer = user.having(PATH=str(tmp_path)).json("build", LTSC)
    assert answer.error == (5, "BUILD_WAITS")
    message, hint = answer.value["error"]["message"], answer.value["error"]["hint"]
    for word in ("packer is not installed", "qemu-system-x86_64", "xorriso", "check packer"):
        assert word in message
    assert hint.startswith("apt-get install packer qemu-system-x86 ") or "ovmf" in hint
    assert (tree(user) / "packer/source.pkr.hcl").is_file()


def test_until_render_and_dry_run(user: User) -> None:
    value = user.done("build", LTSC, "--until", "render", "-o", str(user.folder / "o ut"))
    fits(user, "build", value)
    assert value["tree"] == str(user.folder / "o ut/tree")
    assert (user.folder / "o ut/tree/plan.json").is_file()
    assert [step["name"] for step in value["steps"]] == ["render"]
    dry = user("build", LTSC, "--dry-run")
    assert (dry.code, "waits for an ssh key" in dry.out) == (0, True)
    assert not tree(user).exists()
    assert user.refused("build", LTSC, "--until", "layers") == (2, "UNKNOWN_STEP")
    images = str(user.factory / "images")
    words = ("build", LTSC, "--until", "render", "-o", images)
    assert user.refused(*words) == (2, "FOLDER_IN_USE")


@pytest.mark.parametrize("platform", ["hyperv", "metal"])
def test_other_platforms_are_built_by_hand(user: User, platform: str) -> None:
    answer = user.json("build", LTSC, "--platform", platform)
    assert answer.error == (5, "BUILD_WAITS")
    page = tree(user, platform=platform) / "README.md"
    assert answer.value["error"]["hint"] == f"read {page}"
    assert page.is_file()


@pytest.mark.needs("packer", "qemu")
def test_all_at_hand_but_digests_or_consent(user: User) -> None:
    user.done("lock", "tiny")
    words = ("build", "tiny", *all_given(user))
    assert user.refused(*words) == (3, "LOCK_UNRESOLVED")
    user.done("lock", "tiny", "--payload", str(user.folder / "pay load"))
    assert user.refused(*words[:-1]) == (2, "RECIPE_UNPROVEN")


@pytest.mark.needs("packer", "qemu")
def test_an_image_is_made_once_with_the_key_on_its_cd(locked: User) -> None:
    user = with_packer(locked).having(PKR_VAR_product_key="AAAAA-SECRET", PACKER_X="1")
    driver = user.folder / "driver/Packages"
    driver.mkdir(parents=True)
    (driver / "u0.inf").write_text("; an inf\n")
    words = [*all_given(user), "--driver", str(driver.parent)]
    value = user.done("build", "tiny", *words)
    fits(user, "build", value)
    assert (tree(user, "tiny") / "media/vega/drivers/display/Packages/u0.inf").is_file()
    assert [Path(name).name for name in value["files"]] == ["disk.qcow2"]
    key = (tree(user, "tiny") / "media/vega/authorized_keys").read_text()
    assert key == (user.folder / "key.pub").read_text()
    seen = json.loads((user.folder / "seen").read_text())
    assert seen["cwd"] == str(tree(user, "tiny"))
    assert seen["env"]["PKR_VAR_product_key"] == "AAAAA-SECRET"
    assert "AAAAA-SECRET" not in " ".join(seen["words"])
    assert f"ssh_private_key_file={user.folder / 'key'}" in seen["words"]
    for path in (user.store / "windows").rglob("*"):
        assert not path.is_file() or b"AAAAA-SECRET" not in path.read_bytes()
    (user.folder / "seen").unlink()
    again = user("build", "tiny", *words)
    assert value["files"][0] in again.out
    assert not (user.folder / "seen").exists()
    assert user.refused("clean", "tiny") == (2, "CONFIRM")
    user.done("clean", "tiny", "--yes")
    assert not (user.store / "windows/tiny-qemu").exists()


BAD = {
    "no medium": (["--iso", "no.iso"], 2, "ISO_ABSENT"),
    "a folder": (["--iso", "pay load"], 2, "USAGE"),
    "another size": (["--iso", "key.pub"], 4, "ISO_WRONG_SIZE"),
    "another digest": (["--iso", "other.iso"], 4, "ISO_WRONG_DIGEST"),
    "no key": (["--ssh-key", "nokey"], 2, "BAD_SSH_KEY"),
    "no public half": (["--ssh-key", "key.pub"], 2, "BAD_SSH_KEY"),
    "no pair": (["--ssh-key", "nopair"], 2, "BAD_SSH_KEY"),
    "a passphrase": (["--ssh-key", "locked"], 2, "BAD_SSH_KEY"),
    "an open key": (["--ssh-key", "open"], 2, "BAD_SSH_KEY"),
    "no key at all": (["--ssh-key", "junk"], 2, "BAD_SSH_KEY"),
    "unknown variable": (["--var", "colour=red"], 2, "BAD_VARIABLE"),
    "no value": (["--var", "cpu"], 2, "BAD_VARIABLE"),
    "twice": (["--var", "cpu=a", "--var", "cpu=b"], 2, "BAD_VARIABLE"),
    "ours": (["--var", "iso_path=x"], 2, "BAD_VARIABLE"),
    "a secret": (["--var", "product_key=x"], 2, "BAD_VARIABLE"),
    "no platform": (["--platform", "vmware"], 2, "USAGE"),
    "no driver": (["--driver", "pay load"], 2, "BAD_DRIVER"),
    "no time": (["--timeout", "nan"], 2, "USAGE"),
    "a codec": (["--codec", "gzip"], 2, "BAD_OPTION"),
    "a level": (["--level", "3"], 2, "BAD_OPTION"),
    "an address": (["--url-base", "https://x.example"], 2, "BAD_OPTION"),
    "a relock": (["--relock", "if-gone"], 2, "BAD_OPTION"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_words_change_nothing(locked: User, case: str) -> None:
    words, code, name = BAD[case]
    (locked.folder / "other.iso").write_bytes(b"a mediun")
    bad_keys(locked.folder)
    assert locked.refused("build", "tiny", *words) == (code, name)
    assert not tree(locked, "tiny").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{source: windows, index: 1}", "{source: windows, index: 7}", "edition"),
        ("{source: windows, index: 1}", "{source: windows, name: Tyni}", "1 = Tiny"),
        ("{source: windows, index: 1}", "{source: window, index: 1}", "no iso source"),
        ("platform: qemu", "platform: vmware", "platform"),
        ("platform: qemu", "platform: qemu\nproduct_key: AAAAA", "product_key"),
        ("platform: qemu", "platform: qemu\nadministrator: jürgen", "administrator"),
        ("platform: qemu", "platform: qemu\ncomputer_name: BÜRO", "computer_name"),
        ("platform: qemu", "platform: metal\nupdates: {install_while_building: true}", "metal"),
        ("cpus: 2", "secure_boot: true, cpus: 0", "cpus"),
        ("size_gib: 64", "size_gib: 64, build_gib: 10", "left for Windows"),
        ("file: tool.zip", "file: ../tool.zip", "file"),
    ],
)
def test_a_bad_spec_is_refused_with_its_line(user: User, old: str, new: str, says: str) -> None:
    user.edit(old, new)
    answer = user("lock", "tiny")
    assert answer.code == 2
    assert says in answer.err
    assert "images/tiny.yaml:" in answer.err
    assert not user.lock.exists()


def test_a_feature_that_another_platform_lacks_is_refused(locked: User) -> None:
    locked.edit("cpus: 2", "cpus: 2, secure_boot: true")
    for word in ("plan", "check", "build"):
        for platform in ("metal", "proxmox"):
            words = (word, "tiny", "--platform", platform)
            assert locked.refused(*words) == (2, "PLATFORM_UNSUPPORTED")
    assert locked.done("plan", "tiny", "--platform", "hyperv")


@pytest.mark.needs("packer")
def test_a_product_key_anywhere_in_a_spec_is_found(locked: User) -> None:
    locked.edit("title: tiny", "title: ABCDE-FGHJK-LMNPQ-RTUVW-XY234")
    answer = locked("check", "tiny", "--platform", "qemu")
    assert answer.code == 2
    assert "README.md:1" in answer.err


def test_options_of_windows_are_refused_elsewhere(user: User) -> None:
    user.spec.write_text((PROJECT / "images/linux-inference.yaml").read_text())
    user.edit("name: linux-inference", "name: tiny")
    for words in (["--iso", "x"], ["--var", "a=b"], ["--timeout", "5"], ["--ssh-key", "x"]):
        assert user.refused("build", "tiny", *words) == (2, "BAD_OPTION")
    assert user.refused("lock", "tiny", "--payload", ".") == (2, "BAD_PAYLOAD")
    for word in ("plan", "check"):
        assert user.refused(word, "tiny", "--platform", "qemu") == (2, "BAD_PLATFORM")


def test_words_that_need_an_image_say_what_a_windows_target_is(user: User) -> None:
    for words in (["inspect", LTSC], ["reproduce", f"{LTSC}:1"], ["run", LTSC, "--model", "m"]):
        assert user.refused(*words) == (2, "TARGET_KIND")
    assert user.refused("pool", "export", LTSC, "-o", "x") == (2, "TARGET_KIND")
    rows = {row["name"]: row for row in user.done("targets")["targets"]}
    assert rows[LTSC]["lock"] == "unresolved"
    assert (rows[LTSC]["rendered"], rows[LTSC]["proven"]) == ("yes", "no")
    assert rows["tiny"]["lock"] == "missing"


# -- the real packer and the real qemu; the medium is no Windows


@pytest.mark.slow
@pytest.mark.needs("packer", "qemu")
def test_a_boot_that_does_not_come_to_windows_is_exit_6_with_the_log(tmp_path: Path) -> None:
    user = windows_user(tmp_path, medium=bootable(SAID, HANG))
    user.done("lock", "tiny", "--payload", str(user.folder / "pay load"))
    answer = user("build", "tiny", *all_given(user, firmware=BIOS), "--timeout", "40")
    assert answer.code == 6
    assert f"guest: {SAID}" in answer.err
    log = tree(user, "tiny").parent / "packer.log"
    assert f"guest: {SAID}" in log.read_text()
    assert str(log) in answer.err.splitlines()[-1]
    assert not list(tree(user, "tiny").parent.glob("image-*"))


@pytest.mark.slow
@pytest.mark.needs("packer", "qemu")
def test_ctrl_c_leaves_no_machine(tmp_path: Path) -> None:
    mark = f"vega-{os.getpid()}-{tmp_path.name}"
    user = windows_user(tmp_path, medium=bootable(SAID, HANG)).having(MARK=mark)
    user.done("lock", "tiny", "--payload", str(user.folder / "pay load"))
    with user.start("build", "tiny", *all_given(user, firmware=BIOS)) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line == f"guest: {SAID}\n":
                child.send_signal(signal.SIGINT)
                break
        child.communicate(timeout=60)
    assert child.returncode == 130
    until(lambda: not marked(mark), lambda: marked(mark))
    assert not list(tree(user, "tiny").parent.glob("image-*"))


def bad_keys(folder: Path) -> None:
    for name in ("nopair", "open", "junk"):
        new_key(folder / name)
    new_key(folder / "locked", passphrase="secret")
    shutil.copy(folder / "key.pub", folder / "nopair.pub")
    (folder / "open").chmod(0o644)
    (folder / "junk").write_text("junk\n")


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
