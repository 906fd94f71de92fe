"""Make vega-selftest.pyz: the closed world as one file that any Python 3.10 or later runs.

Stored, not compressed, with fixed times and order: the same bytes from every Python.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.files import write_whole

if TYPE_CHECKING:
    # Its place moved in Python 3.11 and the old one is gone in 3.14.
    from importlib.resources.abc import Traversable

EPOCH = (1980, 1, 1, 0, 0, 0)
SHEBANG = b"#!/usr/bin/env python3\n"
ROOT = "vega_image/selftest"
MAIN = """import json
import sys
import zipfile


def refuse(exit_code, code, message, hint):
    if "--json" in sys.argv:
        error = {"exit": exit_code, "code": code, "message": message, "hint": hint, "at": None}
        sys.stdout.write(json.dumps({"error": error}, indent=1) + "\\n")
    else:
        sys.stderr.write(code + ": " + message + "\\nhint: " + hint + "\\n")
    sys.exit(exit_code)


def damage(path):
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip()
    except (OSError, zipfile.BadZipFile) as error:
        return str(error)


if __name__ == "__main__":
    if sys.version_info < (3, 10):
        message = "this is Python %d.%d, at least 3.10 is needed" % sys.version_info[:2]
        refuse(5, "PYTHON_TOO_OLD", message, "run it with a later python3")
    bad = damage(__loader__.archive)
    if bad:
        refuse(4, "ARCHIVE_DAMAGED", __loader__.archive + ": " + bad, "copy the file again")
    from vega_image.selftest.main import main

    sys.exit(main(sys.argv[1:]))
"""
KEPT = (".py", ".json", ".jsonl", ".tsv", ".c", ".h", ".def", "prebuilt/vega-ggml")
EXECUTABLE = 0o100755 << 16
PLAIN = 0o100644 << 16


def pack(path: Path) -> None:
    """Write the file. Raises SelftestError if it cannot be written."""
    try:
        write_whole(path, archive(), mode=0o755)
    except OSError as error:
        text = f"cannot write {path}: {error.strerror or error}"
        raise SelftestError(
            "PACK", text, exit_code=5, at=str(path), hint="choose another --output"
        ) from error


def archive() -> bytes:
    """Return the bytes of the file."""
    buffer = io.BytesIO()
    members = {
        "__main__.py": MAIN.encode(),
        "vega_image/__init__.py": b"",
        **dict(_tree(resources.files("vega_image.selftest"), ROOT)),
    }
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system = 3
            info.external_attr = EXECUTABLE if name == "__main__.py" else PLAIN
            target.writestr(info, members[name])
    return SHEBANG + buffer.getvalue()


def _tree(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _tree(entry, path)
        elif path.endswith(KEPT) and not entry.name.startswith("."):
            # Whatever else an editor or a tool left in a checkout would make other bytes.
            yield path, entry.read_bytes()
