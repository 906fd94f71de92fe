"""Finds vega-ggml: built into the image, shipped prebuilt beside its source, or compiled now.

The archive carries the C source always and `prebuilt/vega-ggml` when the pack was made on a
machine that compiled it; either is written to a folder before it runs.
"""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.installation import BUILT_IN
from vega_image.selftest.external.ggml.table import Row, rows
from vega_image.selftest.external.protocol import Command
from vega_image.selftest.external.running import Run, run

PACKAGE = "vega_image.selftest.external.ggml"
SUFFIXES = (".c", ".h", ".def")
LEVELS = {"r1": 1, "r2": 2, "r3": 3, "r4": 4}


def cases(level: str) -> tuple[Row, ...]:
    """Return the cases of a level, in the order in which they run."""
    text = (files(PACKAGE) / "cases.def").read_text(encoding="utf-8")
    return tuple(row for row in rows(text) if row.level <= LEVELS[level])


def find_program(root: Path, folder: Path, *, run: Run = run) -> Path:
    """Return a program that can be started; `folder` is where it may be written.

    Raises SelftestError COMPILER_ABSENT or COMPILE (7).
    """
    built = root / BUILT_IN
    if built.is_file():
        return built
    target = folder / "vega-ggml"
    prebuilt = files(PACKAGE) / "prebuilt" / "vega-ggml"
    if prebuilt.is_file():
        target.write_bytes(prebuilt.read_bytes())
        target.chmod(0o755)
        return target
    return build(folder, run=run)


def build(folder: Path, *, run: Run = run) -> Path:
    """Compile the source into `folder`."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SelftestError(
            "COMPILER_ABSENT",
            "no prebuilt vega-ggml and no C compiler",
            exit_code=7,
            hint="build the image with its selftest, or install gcc",
        )
    for name in sorted(item.name for item in files(PACKAGE).iterdir()):
        if name.endswith(SUFFIXES):
            (folder / name).write_bytes((files(PACKAGE) / name).read_bytes())
    target = folder / "vega-ggml"
    ended = run(Command(compile_command(compiler, folder, target), {}))
    if ended.code != 0:
        raise SelftestError("COMPILE", f"vega-ggml: {ended.stderr}", exit_code=7)
    return target


def compile_command(compiler: str, folder: Path, target: Path) -> tuple[str, ...]:
    """Return the one command that makes vega-ggml; nothing of libggml is needed for it."""
    sources = sorted(str(path) for path in folder.glob("*.c"))
    flags = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")
    # Contraction would let the reference itself round otherwise than the goldens' maker.
    return (compiler, *flags, "-ffp-contract=off", "-o", str(target), *sources, "-ldl", "-lm")
