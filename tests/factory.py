"""Tiny factories for tests: a spec, a sealed lock, recipes; nothing of the real images."""

from __future__ import annotations

from vega_image.lock import Lock, LockedDebian, LockedSource, PackageFile, ReleaseFile
from vega_image.lockfile import seal
from vega_image.spec import Target
from vega_image.specfile import decode_target

SPEC = """\
schema: 1
name: tiny
kind: oci
version: 1.0.0
title: tiny image
description: a fixture
licenses: Apache-2.0
sources:
  debian: {kind: debian, suites: [trixie], packages: [hello, base-files]}
root:
  source: debian
  exclude: [usr/share/doc/*]
  links: {bin: usr/bin}
  users: [{name: vega, uid: 10001, home: /tmp}]
stages:
  - {name: greet, recipe: greet, options: {word: hello}}
slim: {keep: [gfx906]}
census: {arch: gfx906}
layers:
  - {name: base, rest: true}
  - {name: app, packages: ["stage:*"]}
image:
  user: "10001:10001"
  entrypoint: [/usr/bin/hello]
  env: {PATH: /usr/bin}
  labels: {io.vega-image.note: plain}
"""

SERVE = """
serve:
  protocol: llama-server
  socket: /run/vega/llama.sock
  model: /models/model.gguf
  gpu_args: [--device, ROCm0]
  cpu_args: [--device, none]
  gpu_device: ROCm0
"""

MAKERS = dict.fromkeys(
    ("root", "stage", "slim", "census", "finddb", "layers", "image", "archive"),
    "sha256:" + "0" * 64,
)
RECIPES = {"greet": "sha256:" + "1" * 64}


def target(text: str = SPEC) -> Target:
    """Decode a spec."""
    target = decode_target(text, at="images/tiny.yaml")
    assert isinstance(target, Target)
    return target


def package(name: str, version: str = "1.0-1", size: int = 1000) -> PackageFile:
    """Make a locked package whose digest depends on name and version."""
    import hashlib

    return PackageFile(
        package=name,
        version=version,
        architecture="amd64",
        suite="trixie",
        pool_path=f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb",
        size=size,
        sha256=hashlib.sha256(f"{name} {version}".encode()).hexdigest(),
    )


def lock(spec: Target | None = None, *, version: str = "1.0-1") -> Lock:
    """Seal a lock for the fixture spec."""
    debian: LockedSource = LockedDebian(
        kind="debian",
        releases=(ReleaseFile(suite="trixie", date=1764460800, sha256="2" * 64),),
        packages=(package("base-files"), package("hello", version)),
    )
    return seal(spec or target(), {"debian": debian}, tools={"libzstd": "1.5.7"})
