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
MAIN = """import sys

from vega_image.selftest.main import main

sys.exit(main(sys.argv[1:]))
"""
LEFT_OUT = ("__pycache__", ".pyc")
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
        if entry.name.endswith(LEFT_OUT):
            continue
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _tree(entry, path)
        else:
            yield path, entry.read_bytes()
