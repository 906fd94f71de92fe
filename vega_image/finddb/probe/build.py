"""Jail, probe and shim compiled once per source, compiler and flags; kept in the store."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vega_image.digest import Json, digest, hex_of
from vega_image.errors import BytesError, EngineError
from vega_image.process import run, which
from vega_image.store import Store

REF: Final = "probe"
SOURCES: Final = Path(__file__).parent
FLAGS: Final = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror")
LIBRARY: Final = ("-shared", "-fPIC", "-fvisibility=hidden")
PROGRAMS: Final = {"jail": FLAGS, "probe": FLAGS, "shim": (*FLAGS, *LIBRARY)}
COMPILERS: Final = ("cc", "gcc", "clang")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The compiled programs, as objects of the store."""

    jail: Path
    probe: Path
    shim: Path


def tools(store: Store, *, compiler: str | None = None) -> Tools:
    """Return the programs, compiling those this store does not hold.

    Raises EngineError COMPILER_ABSENT, COMPILE_FAILED.
    """
    compiler = compiler or _compiler()
    version = run([compiler, "--version"]).output.partition("\n")[0]
    paths = {name: _program(store, name, compiler, version) for name in PROGRAMS}
    return Tools(**paths)


def _compiler() -> str:
    for name in COMPILERS:
        if which(name):
            return name
    msg = "no C compiler here, and the probe for libMIOpen is compiled on the host"
    raise EngineError("COMPILER_ABSENT", msg, hint="apt install gcc libc6-dev", at="cc")


def _program(store: Store, name: str, compiler: str, version: str) -> Path:
    source = SOURCES / f"{name}.c"
    value: Json = {
        "source": hashlib.sha256(source.read_bytes()).hexdigest(),
        "compiler": [compiler, version],
        "flags": list(PROGRAMS[name]),
    }
    key = f"{name}-{hex_of(digest(value))[:32]}"
    known = store.get_ref(REF, key)
    if isinstance(known, str):
        try:
            return store.verify(known, what=f"the compiled {name}")
        except BytesError:
            pass  # damaged or cleaned: made again below
    found = _compiled(store, source, [compiler, *PROGRAMS[name]])
    store.set_ref(REF, key, found)
    return store.path(found)


def _compiled(store: Store, source: Path, command: list[str]) -> str:
    with tempfile.TemporaryDirectory(dir=store.tmp) as folder:
        out = Path(folder) / source.stem
        done = run([*command, str(source), "-o", str(out)])
        if done.returncode != 0:
            msg = f"{source.name} does not compile: {done.output.strip()[-2000:]}"
            hint = "apt install gcc libc6-dev"
            raise EngineError("COMPILE_FAILED", msg, hint=hint, at=done.command)
        return store.put(out.read_bytes())
