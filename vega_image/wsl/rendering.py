"""`render` of a .wsl target: what is laid over the root, for people to read. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from vega_image.lock import Lock
from vega_image.render import context_json
from vega_image.spec import Target
from vega_image.wsl.manifest import MANIFEST
from vega_image.wsl.places import README, archive_name


def render_wsl(
    target: Target,
    lock: Lock,
    added: Mapping[str, bytes],
    stages: Mapping[str, Mapping[str, bytes]],
) -> dict[str, bytes]:
    """Return every file of `render -o DIR`: `root/` is what `added` lays over the packages."""
    files = {f"root/{path}": data for path, data in added.items()}
    files["README.md"] = added[README]
    for name, context in stages.items():
        files |= {f"stages/{name}/{path}": data for path, data in context.items()}
    placed = {"archive": [archive_name(target), MANIFEST]}
    files["context.json"] = context_json(target, lock, files, placed)
    return dict(sorted(files.items()))
