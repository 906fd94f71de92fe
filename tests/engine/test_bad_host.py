"""Machines that refuse: full disks, absent engines, folders of others, hostile packages."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import tarfile
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.debs import deb, member, tar
from tests.factory import SERVE
from tests.minidebian import MiniDebian
from tests.tiny import FIXTURE, Result, Tiny, new_user, rehash, small_disk, tiny_packages

pytestmark = pytest.mark.needs("busybox")
MB = 1 << 20


@pytest.mark.needs("root", "docker")
@pytest.mark.parametrize("size", ["300k", "4m"])
def test_a_disk_too_small_is_refused_before_work_starts(
    tiny: Tiny, tmp_path: Path, size: str
) -> None:
    with small_disk(tmp_path / "disk", size) as disk:
        there = tiny.having(VEGA_IMAGE_STORE=str(disk / "store"))
        answer = there.json("build", "tiny")
        code, word = answer.error
        assert (code, word in {"DISK_TOO_SMALL", "DISK_FULL"}) == (5, True)
        assert "--store" in answer.value["error"]["hint"]
        assert not list((disk / "store/objects").rglob("*/*/*"))


@pytest.mark.needs("root", "docker")
def test_a_disk_that_fills_up_on_the_way(
    tmp_path: Path, mini: MiniDebian, reference: Result
) -> None:
    """A package that holds 60 MB of zeros needs far more than its size lets one expect."""
    archive = MiniDebian(tmp_path / "archive", home=mini._home)
    zeros = tmp_path / "zeros"
    with zeros.open("wb") as file:
        file.truncate(60 * MB)
    swollen(archive, zeros)
    user = new_user(tmp_path / "user", archive=archive, factory=FIXTURE)
    user.done("lock", "tiny")
    with small_disk(tmp_path / "disk", "30m") as disk:
        there = user.having(VEGA_IMAGE_STORE=str(disk / "store"))
        assert there.refused("build", "tiny") == (5, "DISK_FULL")
        rehash(there.store)
        assert list((there.store / "tmp").iterdir()) == []
        assert list((there.store / "refs/steps").glob("*")) == []
    assert user.build()["digest"] != reference[0]


def swollen(archive: MiniDebian, zeros: Path) -> None:
    """Let tiny-data be large once unpacked."""
    for package in tiny_packages():
        big = replace(package, copies={"usr/share/zeros": zeros}, filler=0)
        archive.add(big if package.name == "tiny-data" else package)
    archive.publish()


@pytest.mark.needs("root")
@pytest.mark.parametrize("place", ["read-only", "below-a-file", "proc"])
def test_a_store_that_cannot_be_written(tiny: Tiny, tmp_path: Path, place: str) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        (disk / "file").write_text("")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        store = {
            "read-only": disk / "store",
            "below-a-file": disk / "file/store",
            "proc": Path("/proc/store"),
        }[place]
        answer = tiny.having(VEGA_IMAGE_STORE=str(store)).json("build", "tiny")
        code, word = answer.error
        assert (code, word in {"NO_PERMISSION", "CANNOT_WRITE"}) == (5, True), answer.out


def without(tiny: Tiny, tmp_path: Path, *programs: str) -> Tiny:
    """A user on whose PATH these programs are not."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in reversed(tiny.env()["PATH"].split(":")):
        for path in sorted(Path(place).glob("*")):
            if path.name not in programs:
                (folder / path.name).unlink(missing_ok=True)
                (folder / path.name).symlink_to(path)
    return tiny.having(PATH=str(folder))


def test_engines_that_are_absent(tiny: Tiny, tmp_path: Path) -> None:
    bare = without(tiny, tmp_path, "podman", "docker")
    for engine, word in (("podman", "ENGINE_ABSENT"), ("docker", "ENGINE_ABSENT")):
        there = replace(bare, engine=engine).having(DOCKER_HOST=f"unix://{tmp_path}/none")
        answer = there.json("build", "tiny")
        assert answer.error == (5, word)
        assert answer.value["error"]["hint"]
    there = replace(bare, engine="auto").having(DOCKER_HOST=f"unix://{tmp_path}/none")
    answer = there.json("build", "tiny")
    assert answer.error == (5, "ENGINE_ABSENT")
    for name in ("docker", "podman"):
        assert name in answer.value["error"]["message"]
    assert not list((bare.store / "objects").rglob("*/*/*")), (
        "refused before anything is fetched"
    )


def test_a_socket_nobody_answers_at(tiny: Tiny) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="vs-") as name,
        socket.socket(socket.AF_UNIX) as dead,
    ):
        dead.bind(f"{name}/docker.sock")
        there = tiny.having(DOCKER_HOST=f"unix://{name}/docker.sock")
        assert there.refused("build", "tiny") == (5, "ENGINE_ABSENT")
    assert tiny.having(DOCKER_HOST="tcp://127.0.0.1:1").refused("build", "tiny") == (
        5,
        "ENGINE_REMOTE",
    )


@pytest.mark.needs("root", "docker")
def test_dockers_socket_without_permission(mini: MiniDebian, locked_factory: Path) -> None:
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    with tempfile.TemporaryDirectory(prefix="vega-nobody-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        user = new_user(folder / "u", archive=mini, factory=locked_factory)
        user.folder.chmod(0o777)
        answer = replace(user, before=nobody).json("build", "tiny")
        assert answer.error == (5, "ENGINE_PERMISSION")
        assert "usermod -aG docker" in answer.value["error"]["hint"]


@pytest.mark.needs("docker")
def test_a_missing_tool_is_named(tiny: Tiny, tmp_path: Path) -> None:
    bare = without(tiny, tmp_path, "dpkg-deb")
    answer = bare.json("build", "tiny")
    assert answer.error == (5, "TOOL_ABSENT")
    assert "dpkg-deb" in answer.value["error"]["message"]
    assert answer.value["error"]["hint"] == "vega-image doctor"


@pytest.mark.needs("docker")
def test_an_output_folder_of_somebody_else(tiny: Tiny, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter").write_text("dear")
    assert tiny.refused("build", "tiny", "-o", str(mine)) == (2, "FOLDER_IN_USE")
    assert not (tiny.store / "refs").exists(), "refused before anything is built"
    assert tiny.refused("build", "tiny", "-o", str(mine / "letter")) == (2, "USAGE")
    assert tiny.refused("pool", "export", "tiny", "-o", str(mine)) == (2, "POOL_EXISTS")
    assert [path.name for path in mine.iterdir()] == ["letter"]
    fresh = tmp_path / "deep/er/layout"
    digest = tiny.build("-o", str(fresh))["digest"]
    assert tiny.done("inspect", f"oci:{fresh}")["digest"] == digest
    assert tiny.build("-o", str(fresh))["digest"] == digest, "our own layout is renewed"
    assert [path.name for path in fresh.parent.iterdir()] == ["layout"]
    index = fresh / "index.json"
    index.write_text(index.read_text().replace("localhost/tiny:", "localhost/precious:"))
    assert tiny.refused("build", "tiny", "-o", str(fresh)) == (2, "FOLDER_IN_USE")


HOSTILE = {
    "climbs": tar(("../../etc/cron.d/x", "x")),
    "through-link": tar(member("./etc/x", tarfile.SYMTYPE, "/"), ("etc/x/cron.d", "x")),
    "device": tar(member("./dev/sda", tarfile.BLKTYPE)),
    "cut": tar(("usr/a", "x" * 9000))[:5000],
    "noise": b"\x13" * 4096,
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_package_is_refused_naming_it(
    mini: MiniDebian, tmp_path: Path, how: str
) -> None:
    archive = MiniDebian(tmp_path / "archive", home=mini._home)
    swap(archive, deb("tiny-data", HOSTILE[how]))
    user = new_user(tmp_path / "user", archive=archive, factory=FIXTURE)
    user.done("lock", "tiny")
    answer = user.json("build", "tiny", "--until", "root")
    code, word = answer.error
    assert (code, word in {"HOSTILE_TAR", "BROKEN_TAR", "BROKEN_PACKAGE"}) == (6, True)
    assert "tiny-data" in answer.value["error"]["message"]
    rehash(user.store)
    assert list((user.store / "tmp").iterdir()) == []
    assert list((user.store / "refs/steps").glob("*")) == []


def swap(archive: MiniDebian, data: bytes) -> None:
    """An archive whose tiny-data is this .deb, signed and listed as any other."""
    for package in tiny_packages():
        place = archive.add(package)
        if package.name == "tiny-data":
            old = place.read_bytes()
            place.write_bytes(data)
            stanza = archive._stanzas["mini"][-1]
            stanza = stanza.replace(sha256(old).hexdigest(), sha256(data).hexdigest())
            archive._stanzas["mini"][-1] = stanza.replace(
                f"Size: {len(old)}", f"Size: {len(data)}"
            )
    archive.publish()


@pytest.mark.needs("docker")
@pytest.mark.parametrize(
    ("script", "code", "word"),
    [
        ("mkfifo /opt/pipe", 6, "STAGE_LEFT_DEVICE"),
        ("mknod /opt/disk b 8 0", 6, "STAGE_LEFT_DEVICE"),
        ('touch "/opt/$(printf "a\\\\nb")"', 6, "HOSTILE_TAR"),
        ("rm /usr/bin/busybox; ln -s / /opt/greet/root; exit 3", 6, "STAGE_FAILED"),
    ],
)
def test_what_a_stage_may_not_leave(tiny: Tiny, script: str, code: int, word: str) -> None:
    greet = tiny.factory / "templates/stages/greet/greet.sh"
    greet.write_text(f'#!/bin/sh\nbusybox() {{ /usr/bin/busybox "$@"; }}\nset -e\n{script}\n')
    (tiny.factory / "templates/stages/greet/Dockerfile.j2").write_text(
        "ARG BASE\nFROM ${BASE}\nCOPY greet.sh /opt/greet/\n"
        'RUN ["/usr/bin/busybox", "sh", "/opt/greet/greet.sh"]\n'
    )
    for name in ("mkfifo", "mknod", "touch", "printf"):
        text = greet.read_text()
        greet.write_text(text.replace(f"{name} ", f"/usr/bin/busybox {name} ", 1))
    tiny.edit('{word: hello, seconds: "0"}', "{}")
    recipe = tiny.factory / "templates/stages/greet/recipe.yaml"
    recipe.write_text("name: greet\n")
    answer = tiny.json("build", "tiny")
    assert answer.error == (code, word), answer.out
    assert list((tiny.store / "tmp").iterdir()) == []
    again = tiny.json("plan", "tiny").value["steps"]
    assert [step["state"] for step in again] == ["hit", "miss", "miss", "miss"]


@pytest.mark.needs("docker")
def test_models_that_are_wrong_or_cannot_be_read(tiny: Tiny, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF" + bytes(100))
    assert tiny.refused("run", "tiny", "--model", str(model)) == (2, "IMAGE_UNKNOWN")
    tiny.build()
    assert tiny.refused("run", "tiny", "--model", str(model), "--cpu") == (2, "NOT_SERVABLE")
    tiny.spec.write_text(tiny.spec.read_text() + SERVE)
    tiny.build()
    run = ("run", "tiny", "--cpu", "--port", "0", "--model")
    assert tiny.refused(*run, str(tmp_path / "none"))[0] == 2
    assert tiny.refused(*run, str(tmp_path))[0] == 2
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert tiny.refused(*run, str(fifo))[0] in {2, 4}
    answer = tiny.json(*run, str(model), "--model-sha256", "0" * 64)
    assert answer.error[0] == 4
    assert "0" * 64 in answer.value["error"]["message"]
    assert tiny.refused(*run, str(model), "--model-sha256", "xyz")[0] == 2
    model.write_bytes(b"not a model")
    assert tiny.refused(*run, str(model))[0] in {2, 4}
    assert tiny.refused("run", "tiny", "--model", str(model))[0] == 7, (
        "no GPU here, and no --cpu"
    )


def test_a_relative_xdg_folder_is_ignored_as_its_standard_says(tiny: Tiny) -> None:
    environ = tiny.env()
    environ.pop("VEGA_IMAGE_STORE")
    there = replace(
        tiny,
        before=("env", "-u", "VEGA_IMAGE_STORE", "unshare", "--user", "--map-user=1000"),
    ).having(XDG_CACHE_HOME="relative/cache", XDG_CONFIG_HOME="relative/config")
    answer = there.json("plan", "tiny")
    if "unshare" in answer.err:
        pytest.skip(f"no user namespaces here: {answer.err}")
    assert answer.code == 0, answer.out + answer.err
    assert not (tiny.folder / "relative").exists()
    assert (Path(environ["HOME"]) / ".cache/vega-image/store").is_dir()


def test_no_file_that_others_may_write(tiny: Tiny) -> None:
    tiny = replace(tiny, umask=0o000)
    tiny.done("lock", "tiny")
    assert tiny.json("build", "tiny", "--until", "root").code == 0
    for path in (tiny.store / "objects").rglob("*/*/*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o444, path
    assert stat.S_IMODE(tiny.lock.stat().st_mode) == 0o644
    shutil.rmtree(tiny.store)
