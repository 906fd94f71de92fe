"""`selftest program`: make vega-ggml again and compare, or write it with where it came from."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.program import (
    NAME,
    ORIGIN,
    PACKAGE,
    build,
    origin,
    shipped,
    sources_sha256,
)
from vega_image.selftest.external.protocol import Command
from vega_image.selftest.external.running import run
from vega_image.selftest.files import write_whole

MAKERS = ("gcc-12", "libc6-dev", "binutils")
"""The Debian packages that decide the bytes."""


def make() -> bytes:
    """Compile the source; raises SelftestError COMPILER_ABSENT or COMPILE (7)."""
    with TemporaryDirectory(prefix="vega-ggml-") as folder:
        return build(Path(folder)).read_bytes()


def makers() -> dict[str, str]:
    """Return the versions of the packages that decide the bytes, as installed here."""
    form = "${Package}=${Version}\\n"
    ended = run(Command(("dpkg-query", "-W", "-f", form, *MAKERS), {}))
    found = dict(line.partition("=")[::2] for line in ended.stdout.splitlines() if "=" in line)
    return {name: found.get(name, "not installed") for name in MAKERS}


def compare() -> dict[str, str]:
    """Make it again; raises SelftestError PROGRAM_DIFFERS (4) where the bytes are others.

    Another compiler makes other bytes: the message names both.
    """
    known = origin()
    if known.get("sources") != sources_sha256():
        _differ("its source has changed since it was made")
    if make() != shipped():
        here = ", ".join(f"{name} {version}" for name, version in makers().items())
        made = ", ".join(f"{name} {known.get(name)}" for name in MAKERS)
        _differ(f"made here with {here}; shipped was made with {made}")
    return known


def write() -> dict[str, str]:
    """Make it and write it into this checkout."""
    data = make()
    sha256 = hashlib.sha256(data).hexdigest()
    known = {"sha256": sha256, "sources": sources_sha256(), **makers()}
    folder = Path(str(files(PACKAGE) / "prebuilt"))
    try:
        folder.mkdir(exist_ok=True)
        write_whole(folder / NAME, data, mode=0o755)
        write_whole(folder / ORIGIN, json.dumps(known, indent=1).encode() + b"\n")
    except OSError as error:
        text = f"cannot write {folder}: {error.strerror or error}"
        raise SelftestError("PROGRAM_WRITE", text, at=str(folder)) from error
    return known


def _differ(why: str) -> None:
    text = f"vega-ggml is not what its source gives: {why}"
    hint = "vega-image selftest program --write"
    raise SelftestError("PROGRAM_DIFFERS", text, exit_code=4, hint=hint)
