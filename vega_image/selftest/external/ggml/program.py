"""Finds vega-ggml: as it ships beside its source, as an image carries it, or compiled now.

The shipped program is what the compiler that `prebuilt/origin.json` names makes of the source
there, byte for byte; `selftest program` makes it again and compares. Whoever judges from
outside uses his own program, never the one in what he judges.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from importlib.resources import files
from pathlib import Path

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.table import Row, rows
from vega_image.selftest.external.protocol import Command
from vega_image.selftest.external.running import Run, run

PACKAGE = "vega_image.selftest.external.ggml"
SUFFIXES = (".c", ".h", ".def")
LEVELS = {"r1": 1, "r2": 2, "r3": 3, "r4": 4}
BUILT_IN = "usr/libexec/vega-image/vega-ggml"
NAME = "vega-ggml"
ORIGIN = "origin.json"
PREBUILT_FOR = ("Linux", "x86_64")


def cases(level: str) -> tuple[Row, ...]:
    """Return the cases of a level, in the order in which they run."""
    text = (files(PACKAGE) / "cases.def").read_text(encoding="utf-8")
    return tuple(row for row in rows(text) if row.level <= LEVELS[level])


def find_program(root: Path, folder: Path, *, run: Run = run) -> Path:
    """Return a program that can be started; `folder` is where it may be written.

    Raises SelftestError PROGRAM_DAMAGED (4), COMPILER_ABSENT or COMPILE (7).
    """
    if (platform.system(), platform.machine()) == PREBUILT_FOR and origin():
        target = folder / NAME
        target.write_bytes(shipped())
        target.chmod(0o755)
        return target
    built = root / BUILT_IN
    if root == Path("/") and built.is_file():
        return built
    return build(folder, run=run)


def origin() -> dict[str, str]:
    """Return what the shipped program was made of and with; empty where none is shipped."""
    file = files(PACKAGE) / "prebuilt" / ORIGIN
    if not file.is_file():
        return {}
    return {str(key): str(value) for key, value in json.loads(file.read_text("utf-8")).items()}


def shipped() -> bytes:
    """Read the shipped program; raises SelftestError PROGRAM_DAMAGED (4) for other bytes."""
    data = (files(PACKAGE) / "prebuilt" / NAME).read_bytes()
    if hashlib.sha256(data).hexdigest() != origin().get("sha256"):
        text = "the shipped vega-ggml is not the one that was made"
        hint = "install vega-image again"
        raise SelftestError("PROGRAM_DAMAGED", text, exit_code=4, hint=hint)
    return data


def sources() -> dict[str, bytes]:
    """Read the source and its tables, by name."""
    found = (item for item in files(PACKAGE).iterdir() if item.name.endswith(SUFFIXES))
    return {item.name: item.read_bytes() for item in sorted(found, key=lambda item: item.name)}


def sources_sha256() -> str:
    """Return one digest of all of the source."""
    sha = hashlib.sha256()
    for name, data in sources().items():
        sha.update(f"{name} {hashlib.sha256(data).hexdigest()}\n".encode())
    return sha.hexdigest()


def build(folder: Path, *, run: Run = run) -> Path:
    """Compile the source into `folder`."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SelftestError(
            "COMPILER_ABSENT",
            "no shipped vega-ggml for this machine and no C compiler",
            exit_code=7,
            hint="install gcc",
        )
    for name, data in sources().items():
        (folder / name).write_bytes(data)
    target = folder / NAME
    ended = run(Command(compile_command(compiler, folder, target), {}))
    if ended.code != 0:
        raise SelftestError("COMPILE", f"vega-ggml: {ended.stderr}", exit_code=7)
    return target


def compile_command(compiler: str, folder: Path, target: Path) -> tuple[str, ...]:
    """Return the one command that makes vega-ggml; nothing of libggml is needed for it."""
    given = sorted(str(path) for path in folder.glob("*.c"))
    flags = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-s")
    # Contraction would let the reference itself round otherwise than the goldens' maker.
    return (compiler, *flags, "-ffp-contract=off", "-o", str(target), *given, "-ldl", "-lm")
