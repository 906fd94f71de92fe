"""`render`: a folder that plain `docker build` turns into a working image, offline."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.tiny import Tiny


def engine(name: str, *words: str) -> str:
    done = subprocess.run([name, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs("docker")
def test_docker_builds_the_completed_folder_without_a_network(tiny: Tiny) -> None:
    folder = tiny.folder / "rendered"
    tiny.done("render", "tiny", "--context", "-o", str(folder))
    tag = f"vega-image-test-render:{tiny.folder.parent.name.lower()}"
    try:
        engine("docker", "build", "-q", "--network", "none", "-t", tag, str(folder))
        said = engine("docker", "run", "--rm", "--network", "none", "--entrypoint", "/bin/sh",
                      tag, "-c", "id -u; echo works")  # fmt: skip
    finally:
        subprocess.run(["docker", "rmi", "-f", tag], capture_output=True, check=False)
    assert said.split()[-1] == "works"
    assert {path.name for path in (folder / "layers").iterdir()} >= {"base.tar"}
    locked = json.loads(tiny.lock.read_text())["sources"]["debian"]["packages"]
    names = {path.name for path in (folder / "pool").iterdir()}
    assert names == {f"{package['sha256']}.deb" for package in locked}


def test_rendering_alone_fetches_and_builds_nothing(tiny: Tiny) -> None:
    folder = tiny.folder / "rendered"
    offline = tiny.having(VEGA_IMAGE_DEBIAN_MIRROR="http://127.0.0.1:9", PATH="/nonexistent")
    answer = offline.json("render", "tiny", "-o", str(folder))
    assert answer.code == 0, answer.out
    assert not (folder / "layers").exists()
    again = tiny.json("render", "tiny", "-o", str(folder))
    assert again.value["files"] == answer.value["files"]


def test_a_folder_with_other_things_is_left_alone(tiny: Tiny) -> None:
    folder = tiny.folder / "mine"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    assert tiny.json("render", "tiny", "-o", str(folder)).error == (2, "FOLDER_NOT_OURS")
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


@pytest.mark.needs("hadolint")
def test_check_names_rule_file_and_line(tiny: Tiny) -> None:
    assert tiny.json("check", "tiny").code == 0
    recipes = tiny.factory / "templates" / "stages"
    dockerfile = next(Path(path) for path in recipes.glob("*/Dockerfile.j2"))
    text = dockerfile.read_text()
    dockerfile.write_text(text + "RUN curl -O http://example.invalid/x\n")
    answer = tiny.json("check", "tiny")
    assert answer.error == (2, "CHECK_FAILED")
    line = text.count("\n") + 1
    message = answer.value["error"]["message"]
    assert f"Dockerfile:{line}: VEGA001" in message
