"""A tree that can run a shell, made of this machine's own programs; what stages build on."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
from pathlib import Path

from vega_image.engines.base import TREE, Artifact
from vega_image.process import run
from vega_image.rootfs.overlay import apply_layers
from vega_image.rootfs.tree import Tree
from vega_image.store import Store

PROGRAMS = ("bash", "cat", "chmod", "id", "ln", "ls", "mkdir", "mkfifo", "rm", "sleep")
FILES = {
    "etc/taken-away": b"a stage removes this\n",
    "etc/untouched": b"a stage writes the same bytes again\n",
    "srv/replaced/old": b"a stage replaces the folder\n",
}
OWNER = "host"


def host_parent(store: Store, scratch: Path) -> Artifact:
    """Store the tree and return it as the artifact of a step before the stage."""
    layer = scratch / "host.tar"
    layer.write_bytes(_host_tar())
    tree = apply_layers(Tree(()), [layer], store=store, owner=OWNER)
    return Artifact(step="host", digest=store.put_json(tree.to_json()), media_type=TREE)


def _host_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "etc", "opt", "srv", "srv/replaced"):
            _add(tar, folder, tarfile.DIRTYPE, mode=0o755)
        _add(tar, "tmp", tarfile.DIRTYPE, mode=0o1777)
        for path, data in FILES.items():
            _add(tar, path, tarfile.REGTYPE, data=data, mode=0o644)
        for path, source in sorted(_programs().items()):
            _add(tar, path, tarfile.REGTYPE, data=source.read_bytes(), mode=0o755)
        link = tarfile.TarInfo("bin/sh")
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, "bash", 0o777
        tar.addfile(link)
    return buffer.getvalue()


def _programs() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name in PROGRAMS:
        program = Path(str(shutil.which(name))).resolve()
        found[f"bin/{name}"] = program
        for library in re.findall(r"(/\S+) \(0x", run(["ldd", str(program)]).output):
            found[library.lstrip("/")] = Path(library).resolve()
    return found


def _add(tar: tarfile.TarFile, path: str, kind: bytes, *, data: bytes = b"", mode: int) -> None:
    info = tarfile.TarInfo(path)
    info.type, info.size, info.mode = kind, len(data), mode
    tar.addfile(info, io.BytesIO(data))
