"""A Windows target, the sources of its lock and the texts of templates/: the native build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vega_image.lock import LockedFile, LockedGit, LockedSource
from vega_image.windows.spec import WindowsTarget
from vega_image.windows.stages import SCRIPTS, StageParts, native_stages, stage_files

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
ISO = "windows-11-iot-enterprise-ltsc-eval"
GITS = ("therock", "rocm-systems", "rocm-libraries", "amd-llvm")
FILES = (
    "vs-build-tools",
    "vc-redist",
    "cmake",
    "ninja",
    "python",
    "git",
    "strawberry-perl",
    "amdgpu-windows-interop",
    "python-wheels",
)
PREBUILT = ("compiler-runtime", "math-libs", "wheels", "pytorch")
PINS = {name: f"{number:040x}" for number, name in enumerate(GITS, 1)}
CLR = "c" * 40


def _sources() -> dict[str, Any]:
    gits = {
        name: {"kind": "git", "url": f"https://example.org/{name}", "commit": commit}
        for name, commit in PINS.items()
    }
    files = {name: {"kind": "file", "file": f"{name}.bin"} for name in (*FILES, *PREBUILT)}
    return {
        "windows": {"kind": "iso", "iso": ISO},
        "torch-git": {"kind": "git", "url": "https://example.org/torch", "branch": "r"},
        "clr": {"kind": "git", "url": "https://example.org/clr", "commit": CLR},
        **gits,
        **files,
    }


def _stages(clr: str, prebuilt: frozenset[str]) -> list[dict[str, Any]]:
    wanted = {
        "prerequisites": list(FILES[:7]),
        "compiler-runtime": ["therock", "rocm-systems", "amd-llvm", *FILES[7:]],
        "enumeration": [],
        "math-libs": ["therock", "rocm-libraries"],
        "wheels": ["therock", "python-wheels"],
        "pytorch": ["therock", "pytorch", "python-wheels"],
        "seal": ["python-wheels"],
    }
    rows = []
    for name, sources in wanted.items():
        row: dict[str, Any] = {"name": name, "recipe": f"win-{name}", "sources": sources}
        if name in PREBUILT:
            row["strategy"] = "prebuilt" if name in prebuilt else "source"
        if name in prebuilt:
            row["sources"] = [name]
        if name == "compiler-runtime":
            row["options"] = {"clr": clr}
            row["sources"] = [*row["sources"], *(["clr"] if clr == "old-clr" else [])]
        rows.append(row)
    return rows


def target(
    *, clr: str = "pal-patch", prebuilt: frozenset[str] = frozenset(), **more: Any
) -> WindowsTarget:
    """Return a target; `more` replaces top-level keys."""
    sources = _sources()
    if "pytorch" not in prebuilt:
        sources["pytorch"] = sources["torch-git"]
    spec = {
        "schema": 1,
        "name": "windows-ltsc",
        "kind": "windows",
        "version": "0.1.0",
        "title": "a title",
        "description": "a description",
        "epoch": 1,
        "licenses": "MIT",
        "sources": sources,
        "platform": "qemu",
        "edition": {"source": "windows", "index": 1},
        "stack": {"rocm": "10.1.0", "pytorch": "2.12"},
        "stages": _stages(clr, prebuilt),
        **more,
    }
    return WindowsTarget.model_validate_json(json.dumps(spec))


def locked(spec: WindowsTarget, *, known: bool = False) -> dict[str, LockedSource]:
    """Return the lock's sources; files and branches are unresolved unless `known`."""
    found: dict[str, LockedSource] = {}
    for name, source in spec.sources.items():
        if source.kind == "git":
            commit = source.commit or ("d" * 40 if known else None)
            found[name] = LockedGit(
                kind="git",
                url=source.url,
                commit=commit,
                branch=source.branch,
                on_machine=True,
                tree_sha256=None,
            )
        elif source.kind == "file":
            size, sha256 = (7, "e" * 64) if known else (None, None)
            found[name] = LockedFile(kind="file", file=source.file, size=size, sha256=sha256)
    return found


def parts(**more: Any) -> StageParts:
    """Return the texts as they lie in templates/; `more` replaces fields."""
    folders = sorted((TEMPLATES / "stages").glob("win-*"))
    recipes = {folder.name: _files(folder) for folder in folders}
    found: dict[str, Any] = {
        "recipes": recipes,
        "scripts": {name: (TEMPLATES / "windows" / name).read_bytes() for name in SCRIPTS},
        "patches": _files(TEMPLATES / "windows/patches/clr"),
        "finddb": {"set-environment.ps1": b"x\r\n", "environment": b"A=1\n"},
    }
    return StageParts(**{**found, **more})


def tree(spec: WindowsTarget, **more: Any) -> Mapping[str, bytes]:
    """Return everything the native build of a target renders."""
    texts = parts(**more)
    return stage_files(native_stages(spec, locked(spec), parts=texts), parts=texts)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
