"""Fixtures of the real target: its image, built once per session, and its unslimmed root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
VEGA_IMAGE = Path(sys.executable).parent / "vega-image"
TARGET = "linux-inference"
# Unpacked only to be left out of the image again: 3 GB of kernels for other GPUs.
FOREIGN = "*/rocblas/*/library/*"


def build_real(factory: Path, *words: str, target: str = TARGET) -> dict[str, Any]:
    """Build a real target in the user's own store; return the --json value.

    Level 3 makes another digest than the shipped one in seconds instead of minutes; the
    layers' tars, and so the image id, are the shipped ones.
    """
    argv = [
        str(VEGA_IMAGE),
        "-C",
        str(factory),
        "build",
        target,
        "--json",
        "--relock",
        "if-gone",
        *words,
    ]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stdout.decode()
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.fixture(scope="session")
def real_factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the factory: a relock on a mirror that has moved must not touch the checkout."""
    folder = tmp_path_factory.mktemp("factory")
    for name in ("images", "templates"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def inference_image(real_factory: Path) -> str:
    """Folder of the OCI layout of linux-inference."""
    return str(build_real(real_factory, "--level", "3")["layout"])


@pytest.fixture(scope="session")
def real_root(
    real_factory: Path, inference_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Unpack the root of linux-inference, not slimmed, without the kernels of other GPUs."""
    store = Path(inference_image).parent.parent
    lock = json.loads((real_factory / "images" / f"{TARGET}.lock.json").read_text())
    root = tmp_path_factory.mktemp("real-root")
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for file in lock["sources"]["debian"]["packages"]:
        deb = store / "objects" / "sha256" / file["sha256"][:2] / file["sha256"]
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE
        ) as unpack:
            argv = [
                "tar",
                "-x",
                "-C",
                str(root),
                "--keep-directory-symlink",
                f"--exclude={FOREIGN}",
            ]
            subprocess.run(
                argv, stdin=unpack.stdout, check=True, env={**os.environ, "LC_ALL": "C"}
            )
    yield root
    shutil.rmtree(root)
