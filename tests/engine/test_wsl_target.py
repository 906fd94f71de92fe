"""A `.wsl` target built for real from tiny packages, and every word that meets it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.minidebian import MiniDebian, Package, gpg_home
from tests.tiny import Tiny, new_user, rehash
from tests.wslroot import unpacked
from vega_image.wsl import places

pytestmark = pytest.mark.needs("busybox")
SPEC = """\
schema: 1
name: tiny
kind: wsl
version: 1.0.0
title: tiny distribution
description: the fixture of the .wsl tests
licenses: Apache-2.0
sources:
  debian: {kind: debian, suites: [mini], packages: [wsl-base, wsl-shell]}
root:
  source: debian
  links: {bin: usr/bin, sbin: usr/sbin}
  files:
    etc/passwd: "root:*:0:0:root:/root:/bin/sh\\n"
    etc/group: "root:*:0:\\n"
    etc/shadow: "root:*:20000::::::\\n"
compression: {codec: gzip, level: 1}
wsl:
  name: TinyDebian
  flavor: Tiny
  friendly_name: Tiny Debian
  default_user: {name: vega, uid: 1000}
  systemd: false
"""
APPLETS = (
    *("awk", "cat", "chmod", "cut", "echo", "env", "grep", "id", "mkdir", "mv", "rm", "sh"),
    *("sha256sum", "sync", "touch"),
)
# In place of programs that busybox does not have. `python3` answers what /answer says.
SCRIPTS = {
    "usr/bin/flock": "#!/bin/sh\n",
    "usr/bin/getent": '#!/bin/sh\ngrep ":x:$2:" /etc/passwd\n',
    "usr/bin/python3": "#!/bin/sh\necho '{}'\nexit $(cat /answer 2>/dev/null || echo 0)\n",
    "usr/sbin/useradd": "#!/bin/sh\necho vega:x:1000:1000::/home/vega:/bin/sh >>/etc/passwd\n",
}
MODULES = "usr/lib/python3/dist-packages"


@pytest.fixture(scope="session")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniDebian]:
    scripts = tmp_path_factory.mktemp("scripts")
    copies = {"usr/bin/busybox": Path(str(shutil.which("busybox")))}
    for path, text in SCRIPTS.items():
        copies[path] = scripts / Path(path).name
        copies[path].write_text(text)
    files = {f"{MODULES}/{name}/__init__.py": "" for name in ("numpy", "torch")}
    files |= {"etc/base": "base\n", "usr/lib/libx.so": "x" * 5000}
    with gpg_home() as home:
        archive = MiniDebian(tmp_path_factory.mktemp("archive"), home=home)
        archive.add(Package("wsl-base", files=files))
        links = {f"usr/bin/{name}": "busybox" for name in APPLETS}
        archive.add(Package("wsl-shell", "1.35", "amd64", copies=copies, links=links))
        archive.publish()
        yield archive


@pytest.fixture(scope="session")
def factory(mini: MiniDebian, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factory whose tiny target is of kind wsl and has a lock."""
    folder = tmp_path_factory.mktemp("wsl")
    (folder / "texts/images").mkdir(parents=True)
    (folder / "texts/images/tiny.yaml").write_text(SPEC)
    user = new_user(folder / "user", archive=mini, factory=folder / "texts")
    user.done("lock", "tiny")
    return user.factory


@pytest.fixture
def user(mini: MiniDebian, factory: Path, tmp_path: Path) -> Tiny:
    return new_user(tmp_path / "user", archive=mini, factory=factory)


def check_schema(user: Tiny, word: str, value: Any) -> None:
    jsonschema.validate(value, user.done("targets", "--schema", word))


def test_built_twice_the_same_and_every_word_knows_it(user: Tiny, tmp_path: Path) -> None:
    out = user.folder / "out"
    value = user.build("-o", str(out))
    check_schema(user, "build", value)
    archive = out / "tiny-1.0.0.wsl"
    assert (value["kind"], value["archive"]) == ("wsl", str(archive))
    assert [step["name"] for step in value["steps"]] == ["root", "archive"]
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert value["digest"] == f"sha256:{digest}"
    manifest = json.loads((out / "DistributionInfo.json").read_bytes())
    [entry] = manifest["ModernDistributions"]["Tiny"]
    assert entry["Amd64Url"]["Sha256"] == digest
    assert sorted(path.name for path in out.iterdir()) == [
        "DistributionInfo.json",
        "tiny-1.0.0.wsl",
    ]
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert names[:2] == ["bin", "dev"]
    rehash(user.store)

    elsewhere = new_user(tmp_path / "an other", archive=user.archive, factory=user.factory)
    again = replace(elsewhere.having(TZ="Asia/Tokyo", LC_ALL="C"), umask=0o077).build()
    assert again["digest"] == value["digest"]
    assert {step["state"] for step in user.build()["steps"]} == {"cached"}

    looked = user.done("inspect", "tiny")
    check_schema(user, "inspect", looked)
    assert (looked["digest"], looked["findings"]) == (value["digest"], [])
    assert (looked["kind"], looked["packages"]) == ("wsl", 2)
    same = user.done("reproduce", "tiny:1.0.0-candidate")
    check_schema(user, "reproduce", same)
    assert same["reproduced"] is True
    [row] = user.done("targets")["targets"]
    assert (row["built"], row["rendered"], row["proven"]) == ("1.0.0-candidate", "yes", "no")
    check_schema(user, "plan", user.done("plan", "tiny"))
    assert user.refused("run", "tiny", "--model", str(archive)) == (2, "TARGET_KIND")
    assert user.refused("inspect", "tiny:2") == (2, "IMAGE_UNKNOWN")
    gone = user.done("clean", "tiny", "--yes", "--downloads")
    check_schema(user, "clean", gone)
    left = [path for path in (user.store / "images").rglob("*") if path.is_file()]
    assert left == []
    assert user.done("targets")["targets"][0]["built"] == "no"


def test_rendered_checked_and_walked_without_building(user: Tiny) -> None:
    folder = user.folder / "rendered"
    value = user.done("render", "tiny", "-o", str(folder))
    check_schema(user, "render", value)
    assert (folder / "root/etc/wsl-distribution.conf").is_file()
    assert "wsl --install" in (folder / "README.md").read_text()
    checked = user.done("check", "tiny")
    check_schema(user, "check", checked)
    assert "wsl-configuration" in checked["checks"]
    dry = user.build("--dry-run")
    assert (dry["kind"], dry["digest"]) == ("wsl", None)
    assert user.build("--until", "render")["steps"] == []
    assert [step["name"] for step in user.build("--until", "root")["steps"]] == ["root"]
    placed = user.done("render", "tiny", "--context", "-o", str(folder))["placed"]
    assert {"tiny-1.0.0.wsl", "DistributionInfo.json"} <= set(placed)
    assert (folder / "tiny-1.0.0.wsl").is_file()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--codec", "zstd"), "BAD_CODEC"),
        (("--level", "12"), "BAD_LEVEL"),
        (("--url-base", "http://files.example"), "BAD_URL_BASE"),
        (("--until", "layers"), "UNKNOWN_STEP"),
    ],
)
def test_options_that_make_no_sense(user: Tiny, words: tuple[str, ...], code: str) -> None:
    assert user.refused("build", "tiny", *words) == (2, code)


def test_a_folder_of_other_things_is_left_alone(user: Tiny) -> None:
    out = user.folder / "out"
    out.mkdir()
    (out / "letter.txt").write_text("dear")
    assert user.refused("build", "tiny", "-o", str(out)) == (2, "FOLDER_IN_USE")
    assert [path.name for path in out.iterdir()] == ["letter.txt"]


def test_what_breaks_a_rule_is_not_handed_over(user: Tiny) -> None:
    user.edit("root:*:20000::::::", "root::20000::::::")
    answer = user.json("build", "tiny")
    assert answer.error == (6, "WSL_ARCHIVE_REFUSED")
    assert "etc/shadow:1: wsl-password: root has an empty password" in answer.out
    assert not (user.store / "images").exists()
    user.edit('    etc/shadow: "root::20000::::::\\n"', '    etc/resolv.conf: "x\\n"')
    assert "etc/resolv.conf: wsl-resolv-conf" in user.json("build", "tiny").out


def test_an_archive_that_was_changed_is_noticed(user: Tiny) -> None:
    file = Path(user.build()["archive"])
    data = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert user.refused("inspect", "tiny") == (4, "STORE_TAMPERED")
    assert user.refused("reproduce", "tiny") == (4, "STORE_TAMPERED")


def test_another_rebuild_is_named_by_its_first_difference(user: Tiny) -> None:
    user.build()
    (user.factory / "templates/wsl").mkdir(parents=True)
    source = Path(__file__).resolve().parents[2] / "templates/wsl/profile.sh.j2"
    text = source.read_text() + "# changed since\n"
    (user.factory / "templates/wsl/profile.sh.j2").write_text(text)
    answer = user.json("reproduce", "tiny")
    assert answer.error == (4, "NOT_REPRODUCED")
    assert f"first: {places.PROFILE}: " in answer.out


@pytest.mark.parametrize("word", ["build", "render", "plan", "lock"])
def test_a_windows_container_is_refused_by_every_word(user: Tiny, word: str) -> None:
    more = ["-o", str(user.folder / "x")] if word == "render" else []
    refused = user.refused(word, "windows-container", *more)
    assert refused == (2, "WINDOWS_CONTAINERS_UNSUPPORTED")
    user.edit("kind: wsl", "kind: windows-container")
    assert user.refused(word, "tiny", *more) == (2, "WINDOWS_CONTAINERS_UNSUPPORTED")


@pytest.mark.needs("root")
def test_the_first_shell_waits_for_the_reference(user: Tiny, tmp_path: Path) -> None:
    root = unpacked(Path(user.build()["archive"]), tmp_path / "root")
    state = ("/usr/bin/vega-reference", "state")
    assert (root(*state).returncode, root(*state).stdout) == (9, "pending\n")

    (root.folder / "answer").write_text("8")
    failed = root(f"/{places.OOBE}")
    assert failed.returncode == 8
    assert "There is no shell until it passes" in failed.stderr
    assert "No published version of WSL" in failed.stdout
    assert (root(*state).returncode, root(*state).stdout) == (8, "fail\n")
    assert "vega" not in (root.folder / "etc/passwd").read_text()

    (root.folder / "answer").unlink()
    assert "Account vega (1000) made" in root.done(f"/{places.OOBE}")
    assert root.done(*state) == "pass\n"
    passwd = (root.folder / "etc/passwd").read_text()
    assert passwd.count("vega:x:1000") == 1

    (root.folder / "answer").write_text("8")
    root.done(f"/{places.OOBE}")
    assert (root.folder / "etc/passwd").read_text() == passwd, "a second time changes nothing"
    (root.folder / "var/lib/dpkg/status").write_text("upgraded\n")
    assert (root(*state).returncode, root(*state).stdout) == (9, "pending\n")
    assert root("/usr/bin/vega-reference", "once").returncode == 8


@pytest.mark.needs("root")
def test_a_record_nobody_can_trust_is_pending(user: Tiny, tmp_path: Path) -> None:
    root = unpacked(Path(user.build()["archive"]), tmp_path / "root")
    for record in (
        "",
        "pass",
        "pass 0",
        "pass 0 abc",
        "x y z",
        "\0\n",
        "running 9 q",
        "fail 8 q",
    ):
        (root.folder / places.STATE / "state").write_text(record)
        said = root("/usr/bin/vega-reference", "state")
        assert said.returncode == 9, record
        assert said.stdout in {"pending\n", "running\n"}
    assert root("/usr/bin/vega-reference", "nonsense").returncode == 2
