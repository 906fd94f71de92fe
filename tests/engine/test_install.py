"""A whole Debian installed offline by the real mmdebstrap, twice, on a host that changes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests import factory
from vega_image.engines.base import Work
from vega_image.errors import StageError, UsageError
from vega_image.lock import LockedDebian
from vega_image.lockfile import seal
from vega_image.oci.layer import split, write_layers
from vega_image.rootfs.install import install
from vega_image.rootfs.selection import Selection
from vega_image.rootfs.tree import Tree
from vega_image.rootfs.volatile import VOLATILE
from vega_image.sources.locked import Supply, fetch_sources, resolve_sources
from vega_image.sources.mirror import host_keyring, host_mirror
from vega_image.sources.origin import Origin
from vega_image.spec import Layer, Root
from vega_image.store import Store

EPOCH = 1764460800
ROOT = Root(source="debian", exclude=("usr/share/man/*", "usr/share/locale/*"))
SPEC = factory.SPEC.replace(
    "suites: [trixie], packages: [hello, base-files]",
    "suites: [bookworm], packages: [base-files], essential: true",
)
LAYERS = (Layer(name="base", rest=True), Layer(name="perl", packages=("perl-base",)))
pytestmark = [pytest.mark.needs("mmdebstrap", "network"), pytest.mark.slow]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def debian(store: Store, tmp_path_factory: pytest.TempPathFactory) -> LockedDebian:
    origin = Origin(mirror=host_mirror(), keyring=host_keyring(), snapshots=())
    scratch = tmp_path_factory.mktemp("resolve")
    target = factory.target(SPEC)
    supply = Supply(
        origin=origin,
        store=store,
        scratch=scratch,
        now=int(time.time()),
        log=lambda _line: None,
    )
    sources = resolve_sources(target, supply)
    fetch_sources(seal(target, sources, tools={}), supply)
    locked = sources["debian"]
    assert isinstance(locked, LockedDebian)
    return locked


def work(store: Store, scratch: Path, lines: list[str]) -> Work:
    return Work(
        store=store,
        parent=None,
        scratch=scratch,
        epoch=EPOCH,
        log=lines.append,
        log_path=scratch / "log",
        progress=lambda *_: None,
    )


def installed(store: Store, debian: LockedDebian, folder: Path, mask: int) -> Tree:
    folder.mkdir(parents=True)
    old = os.umask(mask)
    try:
        return install(debian.packages, ROOT, work(store, folder, []))
    finally:
        os.umask(old)


def test_two_installs_on_a_changed_host_are_the_same_layers(
    store: Store, debian: LockedDebian, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = installed(store, debian, tmp_path / "one", 0o022)
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("LC_ALL", "C")
    second = installed(store, debian, tmp_path / "another place" / "two", 0o077)
    ids = [
        [
            layer.diff_id
            for layer in write_layers(
                split(tree, LAYERS), store, epoch=EPOCH, progress=lambda *_: None
            )
        ]
        for tree in (first, second)
    ]
    assert ids[0] == ids[1]
    check_root(first)


def check_root(tree: Tree) -> None:
    files = tree.by_path()
    leaks = Selection(exclude=VOLATILE)
    assert [path for path in files if not leaks.keeps(path)] == []
    assert files["usr/lib/os-release"].owner == "base-files"
    assert files["usr/bin/perl"].owner == "perl-base"
    assert files["etc/passwd"].owner == "install"
    assert files["tmp"].mode == 0o1777
    assert not any(entry.mode & 0o6000 for entry in tree.entries)
    assert not any(path.startswith("usr/share/man/man") for path in files)


def test_a_package_that_cannot_be_installed_shows_the_last_lines(
    store: Store, debian: LockedDebian, tmp_path: Path
) -> None:
    lines: list[str] = []
    some = [package for package in debian.packages if package.package != "libc6"]
    with pytest.raises(StageError, match="libc6") as caught:
        install(some, ROOT, work(store, tmp_path, lines))
    assert caught.value.code == "INSTALL_FAILED"
    assert lines


def test_omitting_needs_extraction(store: Store, debian: LockedDebian, tmp_path: Path) -> None:
    root = ROOT.model_copy(update={"omit": {"dash": "no shell"}})
    with pytest.raises(UsageError, match="dash") as caught:
        install(debian.packages, root, work(store, tmp_path, []))
    assert caught.value.code == "OMIT_NEEDS_EXTRACT"
