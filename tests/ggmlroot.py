"""A real llama.cpp of Debian forky, with a Vulkan that needs no GPU (Mesa's lavapipe).

Resolved by an isolated apt against the host's mirror and unpacked without maintainer scripts.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from vega_image.sources.mirror import host_keyring, host_mirror

# What of linux-inference's lock a root needs in which libggml computes on the processor.
CPU_PACKAGES = frozenset({"libc6", "libgcc-s1", "libgomp1", "libstdc++6", "libggml0"})
PACKAGES = ("libggml0", "libggml0-backend-vulkan", "mesa-vulkan-drivers")
OPTIONS = {
    "APT::Install-Recommends": "false",
    "APT::Architecture": "amd64",
    "Acquire::Check-Valid-Until": "false",
    "Acquire::Languages": "none",
    "APT::Sandbox::User": "root",
}


@pytest.fixture(scope="session")
def ggml_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the closure of libggml, its Vulkan back end and lavapipe (86 MB of packages)."""
    work = tmp_path_factory.mktemp("ggml-apt")
    for name in ("etc/apt/apt.conf.d", "var/lib/dpkg", "var/lib/apt", "var/cache/apt", "debs"):
        (work / name).mkdir(parents=True)
    (work / "var/lib/dpkg/status").touch()
    line = f"deb [signed-by={host_keyring()}] {host_mirror()} forky main\n"
    (work / "etc/apt/sources.list").write_text(line)
    options = [f"-o{name}={value}" for name, value in OPTIONS.items()]
    options += [f"-oDir={work}", f"-oDir::State::status={work}/var/lib/dpkg/status"]
    options += [f"-oDir::Cache::archives={work}/debs/"]
    subprocess.run(["apt-get", *options, "-q", "update"], check=True)
    download = ["install", "-q", "-y", "--download-only", *PACKAGES]
    subprocess.run(["apt-get", *options, *download], check=True)
    root = tmp_path_factory.mktemp("ggml-root")
    return unpacked(root, sorted((work / "debs").glob("*.deb")))


@pytest.fixture(scope="session")
def cpu_root(
    real_factory: Path, inference_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Unpack libggml and its closure from the locked files of linux-inference."""
    store = Path(inference_image).parent.parent / "objects" / "sha256"
    lock = json.loads((real_factory / "images/linux-inference.lock.json").read_text())
    rows = lock["sources"]["debian"]["packages"]
    found = [row["sha256"] for row in rows if row["package"] in CPU_PACKAGES]
    assert len(found) == len(CPU_PACKAGES)
    debs = (store / sha256[:2] / sha256 for sha256 in found)
    return unpacked(tmp_path_factory.mktemp("cpu-root"), debs)


def unpacked(root: Path, debs: Iterable[Path]) -> Path:
    """Unpack .debs without their maintainer scripts."""
    for deb in debs:
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE
        ) as tar:
            argv = ["tar", "-x", "-C", str(root), "--keep-directory-symlink"]
            environ = {**os.environ, "LC_ALL": "C"}
            subprocess.run(argv, stdin=tar.stdout, check=True, env=environ)
    (root / "lib64").symlink_to("usr/lib64")
    return root
