"""A Windows target of the tests' own, with stub stages: nothing of the real spec or recipes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vega_image.lock import Lock, LockedFile, LockedGit, LockedIso, LockedSource
from vega_image.lockfile import seal
from vega_image.specfile import decode_target
from vega_image.windows.parts import Parts
from vega_image.windows.references import STAGES
from vega_image.windows.render import render_windows
from vega_image.windows.spec import Platform, Strategy, WindowsTarget

ROOT = Path(__file__).resolve().parents[1]
MAKING = ("compiler-runtime", "math-libs", "wheels", "pytorch")
HEAD = b"""\
#Requires -Version 5.1
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
"""
RUNNER = (
    HEAD
    + b"""\
$stage = Join-Path $PSScriptRoot 'stage.json'
& (Join-Path $PSScriptRoot 'stage.ps1') -Stage $stage
exit $LASTEXITCODE
"""
)
SPEC = """\
schema: 1
name: tiny-windows
kind: windows
version: 1.0.0
title: tiny windows
description: a fixture
licenses: Apache-2.0
epoch: 1787356800
platform: qemu
edition: {source: windows, index: 1, name: Windows 11 IoT Enterprise LTSC Evaluation}
machine: {cpus: 4, memory_gib: 8}
disk: {size_gib: 128}
stack: {rocm: 10.1.0, pytorch: "2.12"}
sources:
  windows: {kind: iso, iso: windows-11-iot-enterprise-ltsc-eval}
  pytorch: {kind: git, url: "https://github.com/ROCm/pytorch", branch: release/2.12}
  openssh: {kind: file, file: OpenSSH-Win64.zip, where: Win32-OpenSSH project}
  virtio: {kind: file, file: virtio-win.iso, where: virtio-win project}
  ninja: {kind: file, file: ninja-win.zip, version: 1.12.1, where: Ninja project}
stages:
"""


@dataclass(frozen=True)
class Bound:
    value: int
    basis: str
    source: str


@dataclass(frozen=True)
class Forecast:
    minutes: Bound
    disk_gib: Bound
    memory_gib: Bound


@dataclass(frozen=True)
class Row:
    name: str
    folder: str
    strategy: Strategy | None
    inputs: str
    forecast: Forecast


def spec(*, strategy: str = "source", more: str = "") -> str:
    stages = [
        f"  - {{name: {name}, recipe: win-{name}"
        + (f", strategy: {strategy}, sources: [ninja]" if name in MAKING else "")
        + "}"
        for name in STAGES
    ]
    return SPEC + "\n".join(stages) + "\n" + more


def target(text: str) -> WindowsTarget:
    found = decode_target(text, at="images/tiny-windows.yaml")
    assert isinstance(found, WindowsTarget)
    return found


def lock(asked: WindowsTarget, *, resolved: bool = False) -> Lock:
    iso = LockedIso(
        kind="iso",
        iso="windows-11-iot-enterprise-ltsc-eval",
        size=5060020224,
        sha256="2cee70bd183df42b92a2e0da08cc2bb7a2a9ce3a3841955a012c0f77aeb3cb29",
        editions={1: "Windows 11 IoT Enterprise LTSC Evaluation"},
    )
    git = LockedGit(
        kind="git",
        url="https://github.com/ROCm/pytorch",
        commit="a" * 40 if resolved else None,
        branch="release/2.12",
        on_machine=True,
        tree_sha256=None,
    )
    sources: dict[str, LockedSource] = {"windows": iso, "pytorch": git}
    for number, (name, source) in enumerate(asked.sources.items(), 1):
        if source.kind == "file":
            sources[name] = LockedFile(
                kind="file",
                file=source.file,
                version=source.version,
                size=1000 + number if resolved else None,
                sha256=str(number) * 64 if resolved else None,
            )
    return seal(asked, sources, tools={})


@cache
def texts() -> dict[str, bytes]:
    """Read templates/windows and templates/firstboot as they are."""
    found: dict[str, bytes] = {}
    base = ROOT / "templates"
    for folder in ("windows", "firstboot/windows"):
        for path in (base / folder).rglob("*"):
            if path.is_file():
                found[path.relative_to(base).as_posix()] = path.read_bytes()
    return found


@cache
def shared() -> dict[str, bytes]:
    """Read playbooks/ and inventory/ as they are."""
    paths = [path for name in ("playbooks", "inventory") for path in (ROOT / name).rglob("*")]
    return {p.relative_to(ROOT).as_posix(): p.read_bytes() for p in paths if p.is_file()}


def parts(asked: WindowsTarget, *, with_shared: bool = False) -> Parts:
    rows: list[Row] = []
    files: dict[str, bytes] = {"media/vega/stages/run-stage.ps1": RUNNER}
    for number, stage in enumerate(asked.stages, 1):
        folder = f"{number}0-{stage.name}"
        inputs = "sha256:" + str(number) * 64
        rows.append(
            Row(
                name=stage.name,
                folder=folder,
                strategy=stage.strategy,
                inputs=inputs,
                forecast=_forecast(number, stage.strategy),
            )
        )
        value = {"schema": 1, "stage": stage.name, "inputs": inputs}
        files[f"media/vega/stages/{folder}/stage.json"] = (json.dumps(value) + "\n").encode()
        files[f"media/vega/stages/{folder}/stage.ps1"] = HEAD + b"exit 0\n"
    files["media/vega/patches/clr/patches.json"] = b'{"patches": []}\n'
    return Parts(
        texts=texts(),
        stage_files=files,
        stages=rows,
        shared=shared() if with_shared else {"playbooks/windows.yaml": b"---\n"},
    )


def _forecast(number: int, strategy: Strategy | None) -> Forecast:
    said = "prebuilt" if strategy is Strategy.PREBUILT else "stub"
    minutes = Bound(10 * number, "estimate", f"{said} minutes")
    return Forecast(
        minutes, Bound(number, "published", "a limit"), Bound(8, "estimate", "ours")
    )


def tree(
    platform: Platform = Platform.QEMU,
    *,
    strategy: str = "source",
    more: str = "",
    change: tuple[str, str] = ("", ""),
    resolved: bool = False,
) -> dict[str, bytes]:
    """Render the fixture; `more` is put below its spec, `change` is (old, new) in its text."""
    text = spec(strategy=strategy, more=more)
    assert change[0] in text
    asked = target(text.replace(*change) if change[0] else text)
    locked = lock(asked, resolved=resolved)
    return render_windows(asked, locked, platform=platform, parts=parts(asked))


def whole(platform: Platform) -> dict[str, bytes]:
    """Render the fixture with the playbooks and the inventory as they are."""
    asked = target(spec())
    texts_and_rows = parts(asked, with_shared=True)
    return render_windows(asked, lock(asked), platform=platform, parts=texts_and_rows)
