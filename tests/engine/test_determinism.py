"""One digest, whatever machine, user, engine, moment or folder an image is built in."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.minidebian import MiniDebian
from tests.tiny import VEGA_IMAGE, Result, Tiny, cold, new_user, small_disk

pytestmark = pytest.mark.needs("docker", "busybox")
NOBODY = 65534
TARGET = "linux-inference"


def test_twice_the_same(tiny: Tiny, reference: Result) -> None:
    assert cold(tiny) == reference


@pytest.mark.parametrize(
    "environ",
    [
        {
            "TZ": "Asia/Kathmandu",
            "LC_ALL": "tr_TR.UTF-8",
            "LANGUAGE": "tr",
            "PYTHONHASHSEED": "1",
            "SOURCE_DATE_EPOCH": "12345",
            "HOSTNAME": "elsewhere",
        },
        {
            "TZ": "America/St_Johns",
            "LC_ALL": "POSIX",
            "PYTHONUTF8": "0",
            "PYTHONHASHSEED": "2",
            "TAR_OPTIONS": "--mtime=@0",
            "GZIP": "-9",
            "http_proxy": "http://127.0.0.1:9",
        },
    ],
    ids=["one", "another"],
)
def test_the_environment_does_not_show(
    tiny: Tiny, reference: Result, environ: dict[str, str]
) -> None:
    assert cold(tiny.having(**environ)) == reference


def test_the_umask_does_not_show(tiny: Tiny, reference: Result) -> None:
    assert cold(replace(tiny, umask=0o077)) == reference


def test_the_folders_do_not_show(
    mini: MiniDebian, locked_factory: Path, tmp_path: Path, reference: Result
) -> None:
    folder = tmp_path / "a folder; with 'quotes', ünïcode" / ("deep/" * 10)
    user = new_user(folder, archive=mini, factory=locked_factory)
    assert cold(replace(user, cwd=Path("/"))) == reference


@pytest.mark.needs("faketime")
def test_the_moment_does_not_show(tiny: Tiny, reference: Result) -> None:
    there = ("faketime", "2031-07-01 03:30:00")
    told = subprocess.run([*there, "date", "+%Y"], capture_output=True, text=True, check=True)
    assert told.stdout == "2031\n", "faketime itself does not work"
    user = replace(tiny, before=there).having(FAKETIME_DONT_FAKE_MONOTONIC="1")
    assert cold(user) == reference


def test_the_number_of_cores_does_not_show(tiny: Tiny, reference: Result) -> None:
    assert cold(replace(tiny, before=("taskset", "--cpu-list", "0"))) == reference


def test_the_network_does_not_show(tiny: Tiny, reference: Result, tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    tiny.done("pool", "export", "tiny", "-o", str(pool))
    shutil.rmtree(tiny.store)
    other = tiny.having(VEGA_IMAGE_DEBIAN_MIRROR="http://127.0.0.1:9/none")
    other.done("pool", "import", str(pool))
    assert {step["state"] for step in other.done("plan", "tiny")["steps"]} == {"miss"}
    value = other.build("--offline")
    assert (value["digest"], value["image_id"]) == reference


@pytest.mark.needs("podman")
def test_the_engine_does_not_show(tiny: Tiny, reference: Result) -> None:
    assert cold(replace(tiny, engine="podman")) == reference


@pytest.mark.needs("podman", "root")
def test_the_storage_driver_does_not_show(
    tiny: Tiny, reference: Result, tmp_path: Path
) -> None:
    with overlay(tmp_path / "overlay") as folder:
        user = replace(tiny, engine="podman").having(VEGA_IMAGE_STORE=str(folder / "store"))
        assert cold(user) == reference
        used = [path.name for path in (folder / "store/podman").glob("slot-*/root/*-images")]
        assert used == ["vfs-images"], "podman was expected to choose another driver here"


@pytest.mark.needs("root")
def test_the_file_system_does_not_show(tiny: Tiny, reference: Result, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "200m") as disk:
        assert cold(tiny.having(VEGA_IMAGE_STORE=str(disk / "store"))) == reference


@pytest.mark.needs("root")
def test_the_user_does_not_show(
    mini: MiniDebian, locked_factory: Path, reference: Result
) -> None:
    docker = Path("/var/run/docker.sock").stat().st_gid
    become = (
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        f"--groups={docker}",
        "--inh-caps=-all",
    )
    can = subprocess.run([*become, VEGA_IMAGE, "--version"], capture_output=True, check=False)
    if can.returncode != 0:
        pytest.skip(f"another user cannot run {VEGA_IMAGE}: {can.stderr.decode()}")
    with tempfile.TemporaryDirectory(prefix="vega-nobody-") as name:
        folder = Path(name)
        archive = MiniDebian.__new__(MiniDebian)
        shutil.copytree(mini.root, folder / "archive")
        archive.root, archive.keyring = folder / "archive", folder / "archive/keyring.gpg"
        user = new_user(folder / "u", archive=archive, factory=locked_factory)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        assert cold(replace(user, before=become, umask=0o027)) == reference
        assert {path.stat().st_uid for path in user.store.rglob("*")} == {NOBODY}


def test_gzip_is_as_exact(tiny: Tiny, tmp_path: Path) -> None:
    words = ("--codec", "gzip", "--level", "6")
    first = cold(tiny, *words)
    there = tiny.having(VEGA_IMAGE_STORE=str(tmp_path / "other"), TZ="Asia/Tokyo")
    one_core = replace(there, before=("taskset", "--cpu-list", "0"), umask=0o077)
    assert cold(one_core, *words) == first


@pytest.mark.slow
def test_the_real_image_is_the_same_in_another_store_at_another_time(
    inference_image: str, real_factory: Path, tmp_path: Path
) -> None:
    """The fixture is a first build in the user's own store; here are two from empty ones."""
    pool = tmp_path / "pool"
    vega(real_factory, {}, "pool", "export", TARGET, "-o", str(pool))
    first = vega(real_factory, {}, "inspect", f"oci:{inference_image}")["digest"]
    abroad = {"TZ": "Pacific/Chatham", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "7"}
    made = [
        offline(real_factory, tmp_path / "here", pool, umask=0o022, environ={}),
        offline(real_factory, tmp_path / "an other ünit", pool, umask=0o077, environ=abroad),
    ]
    assert made == [first, first]


def offline(
    factory: Path, folder: Path, pool: Path, *, umask: int, environ: dict[str, str]
) -> str:
    """Build the real target in a store that goes away again; return its digest."""
    words = ("--store", str(folder / "store"))
    try:
        vega(factory, environ, "pool", "import", str(pool), *words)
        value = vega(
            factory, environ, "build", TARGET, "--offline", "--level", "3", *words, umask=umask
        )
        assert {step["state"] for step in value["steps"]} == {"built"}
        return str(value["digest"])
    finally:
        shutil.rmtree(folder)


def vega(factory: Path, environ: dict[str, str], *words: str, umask: int = 0o022) -> Any:
    """Run the installed program with --json; it must succeed."""
    import json

    done = subprocess.run(
        [VEGA_IMAGE, "-C", factory, *words, "--json"],
        env={**os.environ, **environ},
        umask=umask,
        stdout=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()
    return json.loads(done.stdout)


@contextmanager
def overlay(folder: Path) -> Iterator[Path]:
    """Mount an overlay file system, on which podman's own overlay cannot lie."""
    for name in ("lower", "upper", "work", "merged"):
        (folder / name).mkdir(parents=True)
    options = ",".join(f"{n}dir={folder / n}" for n in ("lower", "upper", "work"))
    merged = folder / "merged"
    argv: list[str | Path] = ["mount", "-t", "overlay", "overlay", "-o", options, merged]
    subprocess.run(argv, check=True)
    try:
        yield merged
    finally:
        subprocess.run(["umount", merged], check=True)
