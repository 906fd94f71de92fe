"""A find-db in an image that a user builds: its files, labels, variables, and rebuilding it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.minidebian import MiniDebian
from tests.tampering import documents
from tests.tiny import Tiny, new_user

FOLDER = "usr/share/vega-image/finddb"
STAGES = 'stages:\n  - {name: greet, recipe: greet, options: {word: hello, seconds: "0"}}\n'


@pytest.fixture
def user(mini: MiniDebian, locked_factory: Path, tmp_path: Path) -> Tiny:
    """A user whose tiny target needs no engine and asks for a find-db."""
    made = new_user(tmp_path / "user", archive=mini, factory=locked_factory)
    made.edit(STAGES, "finddb: {profile: safe}\n")
    made.edit(', "stage:*"', "")
    return made


def bake(user: Tiny, **files: str) -> None:
    """Do what `finddb bake` leaves behind."""
    folder = user.spec.with_name("tiny.finddb")
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.mark.needs("busybox")
def test_it_is_built_in_and_rebuilt_from_the_image_alone(user: Tiny, tmp_path: Path) -> None:
    bake(user, manifest__json='{"status": "unproven"}', gfx906_60__HIP__fdb__txt="a=b:1,0,c\n")
    layout = tmp_path / "layout"
    digest = user.build("-o", str(layout))["digest"]
    assert texts(layout) == {
        f"{FOLDER}/gfx906_60.HIP.fdb.txt": "a=b:1,0,c\n",
        f"{FOLDER}/manifest.json": '{"status": "unproven"}',
    }
    config = config_of(layout)
    assert config["Labels"]["io.vega-image.finddb.status"] == "unproven"
    assert f"MIOPEN_SYSTEM_DB_PATH=/{FOLDER}" in config["Env"]
    bake(user, gfx906_60__HIP__fdb__txt="another=one:1,0,c\n")
    assert user.done("reproduce", f"oci:{layout}")["digest"] == digest
    other = user.build()
    assert other["digest"] != digest
    states = {step["name"]: step["state"] for step in other["steps"]}
    assert states == {"root": "cached", "layers": "built", "image": "built"}


@pytest.mark.needs("busybox")
def test_what_defeats_or_overstates_it_is_refused_before_building(user: Tiny) -> None:
    bake(user, manifest__json='{"status": "proven"}')
    assert user.refused("build", "tiny") == (2, "FINDDB_BAKED")
    bake(user, manifest__json='{"status": "unproven"}')
    user.edit("env: {PATH: /usr/bin}", "env: {PATH: /usr/bin, MIOPEN_FIND_MODE: NORMAL}")
    for words in (("build", "tiny"), ("plan", "tiny"), ("check", "tiny")):
        assert user.refused(*words) == (2, "FINDDB_DEFEATED")
    user.edit(", MIOPEN_FIND_MODE: NORMAL", "")
    user.edit("profile: safe", "profile: saef")
    assert user.refused("plan", "tiny") == (2, "SPEC_INVALID")


def texts(layout: Path) -> dict[str, str]:
    """The files of the find-db, from the layers' tars."""
    found: dict[str, str] = {}
    manifest, _config = documents(layout)
    for layer in manifest["layers"]:
        blob = (layout / "blobs/sha256" / layer["digest"][7:]).read_bytes()
        plain = zstandard.ZstdDecompressor().decompressobj().decompress(blob)
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            for info in tar:
                if info.name.startswith(FOLDER) and info.isfile():
                    file = tar.extractfile(info)
                    assert file is not None
                    found[info.name] = file.read().decode()
    return found


def config_of(layout: Path) -> dict[str, Any]:
    """The image's process configuration."""
    _manifest, config = documents(layout)
    value: dict[str, Any] = config["config"]
    return value
