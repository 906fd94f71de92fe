"""A user who builds a Windows target: the installed `vega-image` on a factory of two specs.

`windows-ltsc` is the project's own; `tiny` is installed from a medium of 45 KB that the tests
make, so that everything but Windows itself is real.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tiny import PROJECT, User

SPEC = """\
schema: 1
name: tiny
kind: windows
version: 1.0.0
title: tiny
description: a fixture
licenses: Apache-2.0
epoch: 1787356800
platform: qemu
edition: {{source: windows, index: 1}}
machine: {{cpus: 2, memory_gib: 4}}
disk: {{size_gib: 64}}
stack: {{rocm: 10.1.0, pytorch: "2.12"}}
sources:
  windows: {{kind: iso, size: {size}, sha256: {sha256}, editions: {{1: Tiny}}}}
  tool: {{kind: file, file: tool.zip, version: "1.0", where: its project}}
stages:
  - {{name: enumeration, recipe: win-enumeration}}
"""
# The real packer for all but builds; a build makes an image and says what the guest would.
PACKER = """\
#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
if words[0] != "build":
    os.execv({packer!r}, ["packer", *words])
given = dict(b.split("=", 1) for a, b in zip(words, words[1:]) if a == "-var")
seen = {{"words": words, "cwd": os.getcwd(), "env": dict(os.environ)}}
pathlib.Path(os.environ["SEEN"]).write_text(json.dumps(seen))
made = pathlib.Path(given["output_directory"])
made.mkdir()
(made / "disk.qcow2").write_bytes(b"QFI")
pathlib.Path(given["serial_log"]).write_text("VEGA-IMAGE READY tiny 1.0.0\\n")
print(f"1,qemu.windows,artifact,0,file,0,{{made}}/disk.qcow2", flush=True)
"""
WORDS = ("--var", "accelerator=none", "--var", "cpu=qemu64")


def windows_user(folder: Path, *, medium: bytes = b"a medium") -> User:
    """Make a user below a folder whose name has a space and no ASCII."""
    user = User(folder=folder / "a user é")
    images = user.factory / "images"
    images.mkdir(parents=True)
    (user.factory / "templates").symlink_to(PROJECT / "templates")
    for name in ("windows-ltsc.yaml", "windows-ltsc.lock.json"):
        shutil.copy(PROJECT / "images" / name, images / name)
    (user.folder / "medium é.iso").write_bytes(medium)
    digest = hashlib.sha256(medium).hexdigest()
    user.spec.write_text(SPEC.format(size=len(medium), sha256=digest))
    new_key(user.folder / "key")
    payload = user.folder / "pay load"
    payload.mkdir()
    (payload / "tool.zip").write_bytes(b"a tool")
    return user


def new_key(path: Path, *, passphrase: str = "") -> None:
    """Make a key pair as the operator would."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "vega", "-f"]
    subprocess.run([*words, str(path)], check=True)


def all_given(user: User, *, firmware: Path | None = None) -> list[str]:
    """Return every option of a build of `tiny` that reaches packer."""
    bios = firmware or user.folder / "key"
    return [
        *("--iso", str(user.folder / "medium é.iso")),
        *("--ssh-key", str(user.folder / "key")),
        *("--payload", str(user.folder / "pay load")),
        *WORDS,
        *("--var", f"firmware={bios}"),
        "--accept-unproven",
    ]


def with_packer(user: User) -> User:
    """Return the user with a packer whose builds succeed without a VM; `seen` says how."""
    programs = user.folder / "bin"
    programs.mkdir()
    real = shutil.which("packer")
    assert real is not None
    program = programs / "packer"
    program.write_text(PACKER.format(python=sys.executable, packer=real))
    program.chmod(0o755)
    path = f"{programs}:{user.env()['PATH']}"
    return user.having(PATH=path, SEEN=str(user.folder / "seen"))
