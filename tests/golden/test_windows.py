"""What `render` writes for Windows: the shared core once, then only what differs from it.

`pytest --update-golden` rewrites tests/golden/windows. `core` holds what is the same on every
platform that has it; a platform's folder what is its own; the others what differs from `qemu`.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.windowstree import tree
from vega_image.windows.spec import Platform

GOLDEN = Path(__file__).parent / "windows"
SECURE = (
    "language: {display: de-DE, formats: de-DE, keyboard: '0407:00000407', "
    "time_zone: W. Europe Standard Time}\n"
    "computer_name: OFFICE-1\n"
    "finddb: strict\n"
    "administrator: provision\n"
    "updates: {policy: wsus, block_drivers: false, install_while_building: true}\n"
    "first_boot: {level: r3, cards: ['66AF', '66A1'], time_limit_minutes: 300, port: 9000}\n"
)
CHANGE = ("memory_gib: 8", "memory_gib: 8, secure_boot: true")
VARIANTS = ("prebuilt", "secure")


@cache
def trees() -> dict[str, dict[str, bytes]]:
    return {
        **{platform.value: tree(platform) for platform in Platform},
        "prebuilt": tree(strategy="prebuilt", resolved=True),
        "secure": tree(more=SECURE, change=CHANGE),
    }


def core() -> dict[str, bytes]:
    """Return what is the same wherever it is; context.json says which tree has which file."""
    found: dict[str, bytes] = {}
    for path in sorted({path for platform in Platform for path in trees()[platform]}):
        there = [trees()[platform][path] for platform in Platform if path in trees()[platform]]
        if len(there) > 1 and len(set(there)) == 1:
            found[path] = there[0]
    return found


def parts() -> dict[str, dict[str, bytes]]:
    """Split the trees into what is stored: folder of tests/golden/windows -> its files."""
    shared, qemu = core(), trees()["qemu"]
    found = {"core": shared}
    for platform in Platform:
        own = trees()[platform].items()
        found[platform] = {path: data for path, data in own if path not in shared}
    for name in VARIANTS:
        assert trees()[name].keys() == qemu.keys()
        found[name] = {p: data for p, data in trees()[name].items() if qemu[p] != data}
    return found


def golden() -> dict[str, dict[str, bytes]]:
    return {
        folder.name: {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in GOLDEN.iterdir()
        if folder.is_dir()
    }


def test_the_rendered_trees_are_the_golden_ones(*, update_golden: bool) -> None:
    found = parts()
    if update_golden:
        shutil.rmtree(GOLDEN, ignore_errors=True)
        for folder, files in found.items():
            for name, data in files.items():
                path = GOLDEN / folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    stored = golden()
    assert found.keys() == stored.keys()
    for folder, files in found.items():
        assert files.keys() == stored[folder].keys()
        for name, data in files.items():
            assert data == stored[folder][name], f"{folder}/{name}"


def test_the_core_is_most_of_a_tree_and_a_platform_little() -> None:
    shared = core()
    assert {"media/vega/scripts/account.ps1", "answer/unattend-oobe.xml"} <= shared.keys()
    for platform in Platform:
        own = trees()[platform].keys() - shared.keys()
        assert {"README.md", "context.json", "plan.json"} <= own
        assert len(own) < len(shared)


@pytest.mark.parametrize(
    ("old", "new", "touched"),
    [
        ("level: r3", "level: r1", "media/vega/firstboot/self-test.ps1"),
        ("port: 9000", "port: 9001", "media/vega/settings.json"),
        ("administrator: provision", "administrator: other", "packer/source.pkr.hcl"),
        ("computer_name: OFFICE-1", "computer_name: OFFICE-2", "media/autounattend.xml"),
        ("policy: wsus", "policy: manual", "media/vega/settings.json"),
        ("'66AF', '66A1'", "'66AF'", "media/vega/image.json"),
        (
            "block_drivers: false",
            "block_drivers: true",
            "packer/overlays/windows-update.pkr.hcl",
        ),
        ("finddb: strict", "finddb: safe", "media/vega/image.json"),
    ],
)
def test_a_mutant_does_not_pass_for_the_golden(old: str, new: str, touched: str) -> None:
    assert old in SECURE
    mutant = tree(more=SECURE.replace(old, new), change=CHANGE)
    assert mutant[touched] != golden()["secure"][touched]
