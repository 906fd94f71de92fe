"""The rules of docs/architecture.md that a reader would otherwise have to trust."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "vega_image"
FILES = sorted(PACKAGE.rglob("*.py"))
OWNERS = {
    "subprocess": {"process.py", "selftest/spawn.py"},
    "docker": {"engines/docker.py"},
    "jinja2": {"render.py"},
    "packerpy": {"engines/packer.py"},
    "paramiko": {"fleet.py"},
    "click": {"cli.py", "cliwords.py", "clioptions.py", "finddbwords/*"},
}
EXTERNAL_PURE = {"pydantic", "rfc8785", "yaml", "jinja2", "vega_image"}
PURE = ("spec.py", "lock.py", "lockfile.py", "lockdiff.py", "plan.py", "digest.py", "render.py",
        "specfile.py", "model.py", "units.py", "errors.py", "rootfs/tree.py",
        "finddb/payload.py")  # fmt: skip
EFFECTS = {"os", "subprocess", "socket", "shutil", "tempfile", "time", "pathlib", "urllib"}
FORBIDDEN_NAMES = {"utils.py", "common.py", "helpers.py"}
CODE_LINES = 400
FUNCTION_LINES = 50


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_only_its_owner_imports_a_module_with_effects(path: Path) -> None:
    for name in imports(path):
        owners = OWNERS.get(name.split(".")[0])
        here = {relative(path), f"{relative(path).rpartition('/')[0]}/*"}
        assert owners is None or here & owners, f"{relative(path)} imports {name}"


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_import_nothing_that_acts(name: str) -> None:
    for imported in imports(PACKAGE / name):
        assert imported.split(".")[0] not in EFFECTS, f"{name} imports {imported}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "selftest").rglob("*.py")), ids=relative)
def test_selftest_is_a_closed_world(path: Path) -> None:
    name_in_package = relative(path)
    numeric = name_in_package.startswith(("selftest/suites/", "selftest/devices/"))
    allowed = (
        sys.stdlib_module_names | {"__future__"} | ({"numpy", "torch"} if numeric else set())
    )
    for name in imports(path):
        inside = name == "vega_image.selftest" or name.startswith("vega_image.selftest.")
        assert inside or name.split(".")[0] in allowed, f"{relative(path)} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert path.name not in FORBIDDEN_NAMES
    assert text.count("\n") <= CODE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES, f"{relative(path)}: {node.name}: {length} lines"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_no_module_knows_engines_but_their_package(path: Path) -> None:
    if relative(path).startswith("engines/"):
        return
    pattern = re.compile(r"engine(\.name)? == [\"']")
    assert not pattern.search(path.read_text()), "if engine == ... belongs in engines/"


def tracked_text() -> Iterator[Path]:
    skipped = {".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
    for path in sorted(ROOT.rglob("*")):
        if path.is_file() and not skipped & set(path.relative_to(ROOT).parts):
            yield path


def test_no_mirror_and_no_machine_path_in_any_file() -> None:
    words = ("debian", "python", "pypi", "npm")
    pattern = re.compile(rf"https?://[a-z0-9.-]*({'|'.join(words)})[a-z]*\.(org|com)")
    machine = re.compile(r"(^|[^a-z.])/(work|farm)/")
    for path in tracked_text():
        if path.suffix in {".pyc", ".png"} or path.name == "LICENSE":
            continue
        text = path.read_text(errors="replace")
        assert not pattern.search(text), f"{path}: a mirror's address"
        assert not machine.search(text), f"{path}: a path of one machine"
