"""The root file system an audit looks at: a folder, or an image's libraries and databases."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from vega_image.finddb.probe.library import SHIMMED, inside
from vega_image.oci.layout import Layout
from vega_image.oci.unpack import ImageFile, image_files
from vega_image.rootfs.content import Contents
from vega_image.rootfs.tarread import hostile
from vega_image.store import Store, disk_errors

# Device code, and what no program loads.
SKIPPED: Final = re.compile(r"\.(co|dat|hsaco|kdb|a)$|^usr/share/(doc|man|locale|info)/")
WHAT: Final = "the image"
DATABASES: Final = "usr/share/miopen/db"


def lay_out(layout: Layout, store: Store, folder: Path) -> None:
    """Write an image's files below a folder: all but device code and what the shim replaces.

    Raises what reading an image raises; StageError HOSTILE_TAR; EngineError DISK_FULL.
    """
    contents = Contents(store)
    folder = folder.resolve()
    with disk_errors(folder):
        for file in image_files(layout, store):
            if not _needless(file.path):
                _write(file, folder, contents)


def _needless(path: str) -> bool:
    return bool(SKIPPED.search(path)) or PurePosixPath(path).name.startswith(SHIMMED)


def _write(file: ImageFile, folder: Path, contents: Contents) -> None:
    target = folder / file.path
    parent = target if file.type == "5" else target.parent
    if parent.resolve() != parent:
        # It would be written outside the folder, into the host.
        why = "it lies behind a link"
        raise hostile(WHAT, file.path, why)
    parent.mkdir(parents=True, exist_ok=True)
    if file.type == "2":
        target.symlink_to(file.link)
    elif file.content is not None:
        with target.open("xb") as out:
            for chunk in contents.chunks(file.content):
                out.write(chunk)
        target.chmod(0o755 if file.mode & 0o111 else 0o644)


def variables_of_image(layout: Layout) -> dict[str, str]:
    """Return the variables for MIOpen that an image sets for whatever runs in it."""
    config = json.loads(layout.blob(layout.config_digest).read_bytes()).get("config", {})
    rows = (str(row).partition("=") for row in config.get("Env") or ())
    return {name: value for name, _, value in rows if name.startswith("MIOPEN_")}


def database_folder(root: Path, library: str, environ: Mapping[str, str]) -> str | None:
    """Return the folder, from the root, where this library looks for its databases."""
    beside = PurePosixPath(library).parent.parent / "share/miopen/db"
    given = environ.get("MIOPEN_SYSTEM_DB_PATH")
    places = [given] if given else [DATABASES, str(beside)]
    found = (place.strip("/") for place in places)
    return next((place for place in found if inside(root, place)), None)
