"""Read `docker save`: the layers a stage added on top of its parent.

Docker writes `manifest.json` last, so every member is spooled until it is known to be of no
use. Formats: docker-archive of dockerd 20.10 and podman 4, OCI-shaped archive of dockerd 25.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import posixpath
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from vega_image.digest import PREFIX
from vega_image.errors import EngineError
from vega_image.rootfs.tarread import ByteSource, TarStream

_GZIP = b"\x1f\x8b"


def layers_above(source: ByteSource, base: str, *, scratch: Path) -> list[Path]:
    """Spool an image's layers to `scratch`, lowest first, without the one with diff id `base`.

    Raises EngineError ENGINE_EXPORT when the archive is no image on top of `base`.
    """
    files, links = _spool(source, base, scratch)
    try:
        manifest = _json(files["manifest.json"])[0]
        diff_ids = _json(files[manifest["Config"]])["rootfs"]["diff_ids"]
        layers = [files[_resolve(name, links)] for name in manifest["Layers"][1:]]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        why = f"no readable manifest ({error!r})"
        raise _unusable(why) from error
    if not diff_ids or diff_ids[0] != base or len(diff_ids) != len(layers) + 1:
        why = f"it does not begin with the parent's layer {base}"
        raise _unusable(why)
    return [_plain(path) for path in layers]


def _spool(
    source: ByteSource, base: str, scratch: Path
) -> tuple[Mapping[str, Path], Mapping[str, str]]:
    files: dict[str, Path] = {}
    links: dict[str, str] = {}
    archive = TarStream(source, "image saved by the engine")
    for member in archive:
        if member.type == "2":
            folder = posixpath.dirname(member.path)
            links[member.path] = posixpath.normpath(posixpath.join(folder, member.link))
        elif member.type == "0":
            path = scratch / f"saved-{len(files)}"
            digest = hashlib.sha256()
            with path.open("wb") as file:
                for chunk in archive.chunks():
                    digest.update(chunk)
                    file.write(chunk)
            if PREFIX + digest.hexdigest() == base:
                path.unlink()
            files[member.path] = path
    return files, links


def _resolve(name: str, links: Mapping[str, str]) -> str:
    return links.get(name, name)


def _json(path: Path) -> Any:
    return cast("Any", json.loads(path.read_bytes()))


def _plain(path: Path) -> Path:
    """Unpack a layer that a newer engine saved compressed."""
    with path.open("rb") as file:
        if file.read(len(_GZIP)) != _GZIP:
            return path
    plain = path.with_suffix(".tar")
    with gzip.open(path) as packed, plain.open("wb") as out:
        shutil.copyfileobj(packed, out)
    path.unlink()
    return plain


def _unusable(why: str) -> EngineError:
    msg = f"the engine saved an image that cannot be used: {why}"
    hint = "vega-image doctor; another engine: --engine podman or docker"
    return EngineError("ENGINE_EXPORT", msg, hint=hint)
