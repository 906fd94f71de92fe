"""A `.wsl` target and a good archive of it, as values: nothing here is built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from tests.factory import target
from vega_image.factory import Factory
from vega_image.spec import Target
from vega_image.wsl import places
from vega_image.wsl.checks import Listing, Node
from vega_image.wsl.content import wsl_files

ROOT = Path(__file__).resolve().parents[1]
EPOCH = 1764460800
SPEC = """\
schema: 1
name: tiny
kind: wsl
version: 1.0.0
title: tiny distribution
description: a fixture
licenses: Apache-2.0
sources:
  debian: {kind: debian, suites: [trixie], packages: [hello, base-files]}
root:
  source: debian
  method: install
compression: {codec: gzip}
wsl:
  name: TinyDebian
  flavor: Tiny
  friendly_name: Tiny Debian
  default_user: {name: vega, uid: 1000}
  terminal: {color_scheme: Campbell}
"""
SHADOW = b"root:*:20000:0:99999:7:::\nmessagebus:!*:20000::::::\n"
PASSWD = b"root:x:0:0:root:/root:/bin/bash\nnobody:*:65534:65534::/:/usr/sbin/nologin\n"
GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
PROGRAMS = (
    *("usr/bin/bash", "usr/bin/flock", "usr/bin/getent", "usr/bin/id", "usr/bin/python3"),
    *("usr/bin/sha256sum", "usr/bin/sync", "usr/sbin/useradd", "usr/lib/systemd/systemd"),
)
MODULES = ("numpy", "torch")


def wsl_target(text: str = SPEC) -> Target:
    return target(text)


def added(text: str = SPEC) -> dict[str, bytes]:
    """What vega-image lays over the root; the self-test is a stand-in."""
    return wsl_files(wsl_target(text), Factory(ROOT).template, pyz=b"pyz\n")


def node(path: str, **values: Any) -> Node:
    """A member: a folder, unless it has data (a file) or a link."""
    data = values.get("data")
    kind = "2" if "link" in values else "0" if data is not None else "5"
    usual = {"type": kind, "mode": 0o644 if kind == "0" else 0o755, "uid": 0, "gid": 0}
    size = len(data) if data is not None else 0
    return Node(**{"path": path, "size": size, "mtime": EPOCH, **usual, **values})


def good() -> Listing:
    """An archive that breaks no rule."""
    nodes = [node("etc"), node("usr"), node("var"), node("tmp", mode=0o1777)]
    nodes += [node("bin", link="usr/bin"), node("sbin", link="usr/sbin")]
    nodes += [
        node("usr/bin/sh", link="bash"),
        node("usr/sbin/init", link="../lib/systemd/systemd"),
    ]
    nodes += [node(path, data=b"#!", mode=0o755) for path in PROGRAMS]
    nodes += [
        node(f"usr/lib/python3/dist-packages/{name}/__init__.py", data=b"") for name in MODULES
    ]
    nodes += [node("etc/passwd", data=PASSWD), node("etc/shadow", data=SHADOW, mode=0)]
    files = {**added(), places.LOCK: b"{}"}
    nodes += [
        node(path, data=data, mode=0o755 if path in places.EXECUTABLE else 0o644)
        for path, data in files.items()
    ]
    nodes += [node(f"{places.MASKS}/{unit}", link="/dev/null") for unit in places.MASKED]
    nodes += [
        node(f"{places.MASKS}/{link}", link=f"/{places.UNITS}/{unit}")
        for link, unit in places.ENABLED.items()
    ]
    known = {item.path for item in nodes}
    folders = {str(parent) for path in known for parent in PurePosixPath(path).parents}
    nodes += [node(path) for path in folders - known - {"."}]
    return listing(nodes)


def listing(nodes: list[Node]) -> Listing:
    return Listing(GZIP, sorted(nodes, key=lambda item: item.path))


def changed(path: str, **values: Any) -> Listing:
    """The good archive with one member changed."""
    assert path in good().by_path()
    return Listing(GZIP, [replace(n, **values) if n.path == path else n for n in good().nodes])


def with_member(path: str, **values: Any) -> Listing:
    """The good archive with one member more."""
    return listing([*good().nodes, node(path, **values)])


def without(path: str) -> Listing:
    """The good archive with one member less."""
    assert path in good().by_path()
    return Listing(GZIP, [n for n in good().nodes if n.path != path])


def edited(path: str, old: str, new: str) -> Listing:
    """The good archive with words of a file changed."""
    data = good().by_path()[path].data
    assert data is not None
    assert old.encode() in data
    return changed(path, data=data.replace(old.encode(), new.encode(), 1))
