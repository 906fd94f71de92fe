"""Is this a .wsl archive as WSL wants it, and as we promise it? Pure: values in, findings out.

Rules of WSL: MicrosoftDocs/WSL, build-custom-distro. Rules of our own: what makes the archive
the same from every build, and what it needs for its first boot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import pairwise
from typing import Final

from vega_image.checks.finding import Finding
from vega_image.wsl import conf, places
from vega_image.wsl.accounts import judge_accounts

ICON_BYTES: Final = 10_000_000
_UNSHARED: Final = 0o022
_RUN: Final = 0o111
_DEFINED_BY_WSL: Final = {
    "etc/resolv.conf": "WSL writes it at every start",
    "etc/hosts": "WSL writes it at every start",
    "etc/hostname": "WSL takes the name of the machine",
}
# Kernel and initramfs are Windows' own.
_KERNEL: Final = (
    "boot/vmlinu*",
    "boot/init*",
    "boot/System.map*",
    "vmlinuz*",
    "initrd.img*",
    "lib/modules/*",
    "usr/lib/modules/*",
)
_OF_ONE_MACHINE: Final = (
    "etc/ssh/ssh_host_*_key",
    "var/lib/systemd/random-seed",
    "root/.ssh/*",
    "root/.bash_history",
)
# What the scripts of templates/wsl/ call, beside the shell's own words.
_FIRST_BOOT: Final = (
    "usr/bin/flock",
    "usr/bin/getent",
    "usr/bin/id",
    "usr/bin/python3",
    "usr/bin/sha256sum",
    "usr/bin/sync",
    "usr/sbin/useradd",
)
_MODULE: Final = "usr/lib/python3*/{}/__init__.py"
_TOP: Final = ("etc", "usr", "var")
_DEVICES: Final = {"3": "character device", "4": "block device", "6": "fifo"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One member of the archive; `type` is the tar type flag, `names` owners given as text.

    `data` are the bytes of small files below etc/ and usr/share/, None of all others.
    """

    path: str
    type: str
    mode: int
    uid: int
    gid: int
    size: int
    mtime: int
    link: str = ""
    names: str = ""
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole archive: the bytes of its gzip header, and its members in their order."""

    header: bytes
    nodes: Sequence[Node]

    def by_path(self) -> dict[str, Node]:
        """Index by path; of two members of one path the later one."""
        return {node.path: node for node in self.nodes}


def check_archive(listing: Listing, *, epoch: int) -> list[Finding]:
    """Return what breaks a rule; an empty list is a good archive. `epoch` is the lock's."""
    nodes = listing.by_path()
    found = [
        *_bytes(listing, epoch),
        *_members(listing.nodes),
        *_root(nodes),
        *_absent(nodes),
        *_configuration(nodes),
        *_units(nodes),
        *judge_accounts({path: n.data for path, n in nodes.items() if n.data is not None}),
        *_ours(nodes),
        *_tools(nodes),
    ]
    return sorted(found, key=lambda finding: (finding.path, finding.line, finding.rule))


def check_texts(files: Mapping[str, bytes]) -> list[Finding]:
    """Judge only the two configuration files, before anything is built."""
    return [
        finding
        for path in (places.CONF, places.DISTRIBUTION)
        for finding in _text(path, files.get(path))
    ]


def _bytes(listing: Listing, epoch: int) -> Iterator[Finding]:
    if listing.header[:10] != b"\x1f\x8b\x08\0\0\0\0\0\0\xff":
        yield _on("", "wsl-gzip-header", "a gzip header with a time, a name or flags")
    paths = [node.path for node in listing.nodes]
    for before, after in pairwise(paths):
        if before >= after:
            what = "twice" if before == after else f"after {before}"
            yield _on(after, "wsl-order", f"there {what}; members are sorted, each once")
    times = [node.path for node in listing.nodes if node.mtime != epoch]
    if times:
        message = f"not of the lock's time {epoch}, and {len(times) - 1} more"
        yield _on(times[0], "wsl-time", message)


def _members(nodes: Sequence[Node]) -> Iterator[Finding]:
    for node in nodes:
        if node.names:
            message = f"owner {node.names!r} as text; owners are numbers only"
            yield _on(node.path, "wsl-owner-name", message)
        if node.type in _DEVICES:
            yield _on(node.path, "wsl-device", f"a {_DEVICES[node.type]}")
        if node.type != "2" and node.mode & 0o6000:
            message = f"mode {node.mode:o}: set-uid or set-gid; root is `wsl -u root`"
            yield _on(node.path, "wsl-set-uid", message)


def _root(nodes: Mapping[str, Node]) -> Iterator[Finding]:
    missing = [name for name in _TOP if name not in nodes]
    if missing:
        message = f"no folder {', '.join(missing)}: the archive's root is not a system's root"
        yield _on(min(nodes, default=""), "wsl-root", message)
    shell = _followed(nodes, "bin/sh")
    if shell is None or not shell.mode & _RUN:
        yield _on("bin/sh", "wsl-root", "no shell there that can be executed")


def _absent(nodes: Mapping[str, Node]) -> Iterator[Finding]:
    for path, why in _DEFINED_BY_WSL.items():
        if path in nodes:
            rule = "wsl-resolv-conf" if path == "etc/resolv.conf" else "wsl-host-file"
            yield _on(path, rule, f"must not be there: {why}")
    for path, node in nodes.items():
        if _matches(path, _KERNEL):
            yield _on(
                path, "wsl-kernel", "a kernel, its modules or an initramfs: WSL has its own"
            )
        if _matches(path, _OF_ONE_MACHINE):
            yield _on(
                path, "wsl-machine-secret", "of one machine only; every copy would share it"
            )
        if path == "etc/machine-id" and (node.data or b"").strip() not in {
            b"",
            b"uninitialized",
        }:
            yield _on(path, "wsl-machine-secret", "an id that every copy would share")


def _configuration(nodes: Mapping[str, Node]) -> Iterator[Finding]:
    for path in (places.CONF, places.DISTRIBUTION):
        node = nodes.get(path)
        if node and (node.type not in "07" or (node.mode, node.uid, node.gid) != (0o644, 0, 0)):
            message = f"type {node.type}, mode {node.mode:o}, owner {node.uid}:{node.gid}"
            yield _on(path, "wsl-conf-mode", f"{message}; a file, 0644, of root")
        yield from _text(path, node.data if node else None)
    data = nodes[places.DISTRIBUTION].data if places.DISTRIBUTION in nodes else None
    found, _wrong = conf.settings(places.DISTRIBUTION, data or b"")
    yield from _command(nodes, conf.value_of(found, "oobe", "command"))
    yield from _icon(nodes, conf.value_of(found, "shortcut", "icon"))
    yield from _profile(nodes, conf.value_of(found, "windowsterminal", "profileTemplate"))


def _text(path: str, data: bytes | None) -> Iterator[Finding]:
    if data is None:
        yield _on(path, "wsl-conf-absent", "must be there, a small file")
        return
    found, wrong = conf.settings(path, data)
    yield from wrong
    if path == places.DISTRIBUTION:
        yield from conf.judge_distribution(found)


def _command(nodes: Mapping[str, Node], setting: conf.Setting | None) -> Iterator[Finding]:
    if setting is None:
        return
    on = partial(_at, setting, conf.COMMAND)
    node = _followed(nodes, setting.value.lstrip("/"))
    if node is None:
        yield on(f"{setting.value} is not in the archive: nobody would get a shell")
    elif node.type not in "07" or node.mode & _RUN != _RUN:
        yield on(f"{setting.value} is not a file that can be executed")
    elif node.uid or node.mode & _UNSHARED:
        yield on(f"{setting.value} can be written by others than root: it runs as root")


def _icon(nodes: Mapping[str, Node], setting: conf.Setting | None) -> Iterator[Finding]:
    if setting is None:
        return
    node = _followed(nodes, setting.value.lstrip("/"))
    if node is None or not setting.value.endswith(".ico") or node.size > ICON_BYTES:
        message = f"{setting.value}: wants an .ico of at most 10 MB in the archive"
        yield _at(setting, "wsl-icon", message)


def _profile(nodes: Mapping[str, Node], setting: conf.Setting | None) -> Iterator[Finding]:
    if setting is None:
        return
    node = _followed(nodes, setting.value.lstrip("/"))
    if node is None or not _is_profile(node.data):
        message = f"{setting.value}: wants a JSON table with a list `profiles`"
        yield _at(setting, "wsl-terminal-profile", message)


def _is_profile(data: bytes | None) -> bool:
    try:
        return isinstance(json.loads(data or b"")["profiles"], list)
    except (ValueError, KeyError, TypeError):
        return False


def _units(nodes: Mapping[str, Node]) -> Iterator[Finding]:
    for unit in places.MASKED:
        mask = nodes.get(f"{places.MASKS}/{unit}")
        if mask is None or mask.link != "/dev/null":
            message = "does not get along with WSL's init: mask it with a link to /dev/null"
            yield _on(f"{places.MASKS}/{unit}", "wsl-unit-unmasked", message)
    node = nodes.get(places.CONF)
    found, _wrong = conf.settings(places.CONF, (node and node.data) or b"")
    wanted = conf.value_of(found, "boot", "systemd")
    if wanted and wanted.value == "true" and _followed(nodes, "sbin/init") is None:
        message = "systemd=true, but there is no /sbin/init"
        yield Finding(
            rule="wsl-systemd-absent", path=places.CONF, line=wanted.line, message=message
        )


def _ours(nodes: Mapping[str, Node]) -> Iterator[Finding]:
    for path in (places.LOCK, places.PYZ, places.OOBE, places.REFERENCE):
        if path not in nodes or nodes[path].type not in "07":
            yield _on(
                path, "wsl-own-file", "must be there: it is how the archive proves itself"
            )
    for link in places.ENABLED:
        path = f"{places.MASKS}/{link}"
        target = _followed(nodes, path)
        if path not in nodes or target is None:
            message = "the reference must be computed also where no shell is opened"
            yield _on(path, "wsl-service-off", message)


def _tools(nodes: Mapping[str, Node]) -> Iterator[Finding]:
    for path in _FIRST_BOOT:
        node = _followed(nodes, path)
        if node is None or not node.mode & _RUN:
            yield _on(path, "wsl-tool-absent", "the first-boot command needs this program")
    for module in ("numpy", "torch"):
        if not any(_matches(path, [_MODULE.format(module)]) for path in nodes):
            message = f"no Python module {module}: the reference could never pass"
            yield _on(_MODULE.format(module), "wsl-tool-absent", message)
    passwd = nodes.get("etc/passwd")
    lines = ((passwd and passwd.data) or b"").decode(errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        name, _, rest = line.partition(":")
        shell = rest.rpartition(":")[2]
        if name == "root" and (shell.endswith("nologin") or _followed(nodes, shell) is None):
            message = f"root's shell is {shell!r}: `wsl -u root` would open none"
            yield Finding(
                rule="wsl-root-shell", path="etc/passwd", line=number, message=message
            )


def _followed(nodes: Mapping[str, Node], path: str, hops: int = 8) -> Node | None:
    """Find what a path names, through symlinks of folders and of itself."""
    done: list[str] = []
    rest = [part for part in path.split("/") if part]
    while rest:
        part = rest.pop(0)
        if part == "..":
            done = done[:-1]
            continue
        node = nodes.get("/".join([*done, part]))
        if node is None:
            return None
        if node.type == "2":
            if not hops:
                return None
            hops -= 1
            done = [] if node.link.startswith("/") else done
            rest = [p for p in node.link.split("/") if p not in {"", "."}] + rest
        else:
            done.append(part)
    return nodes.get("/".join(done))


def _matches(path: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(path, glob) for glob in globs)


def _on(path: str, rule: str, message: str) -> Finding:
    return Finding(rule=rule, path=path or "archive", line=0, message=message)


def _at(setting: conf.Setting, rule: str, message: str) -> Finding:
    return Finding(rule=rule, path=places.DISTRIBUTION, line=setting.line, message=message)
