"""All checks of a Windows tree together, with the real packer."""

from __future__ import annotations

import pytest

from tests.marks import CASES, tree
from vega_image.checks.windows import check_windows_tree
from vega_image.windows.spec import Platform

pytestmark = pytest.mark.needs("packer")
WINDOWS = (".ps1", ".cmd", ".xml")
BUILD = "packer/build.pkr.hcl"
SCRIPT = "media/vega/scripts/updates.ps1"


def good() -> dict[str, bytes]:
    """Return the good tree as it would be rendered: CRLF where Windows reads."""
    return {
        path: data.replace(b"\n", b"\r\n") if path.endswith(WINDOWS) else data
        for path, data in tree(CASES / "crossrefs/good").items()
    }


@pytest.mark.parametrize("platform", [Platform.QEMU, Platform.HYPERV, Platform.PROXMOX])
def test_the_good_tree_passes(platform: Platform) -> None:
    assert check_windows_tree(good(), platform=platform) == []


def test_every_check_has_its_say_in_the_order_of_files_and_lines() -> None:
    files = good()
    files[SCRIPT] += b"gci 'C:\\'\r\n$Password = 'hunter2'\r\n"
    files[BUILD] = files[BUILD].replace(b"updates.ps1", b"gone.ps1")
    files["media/vega/firstboot/SetupComplete.cmd"] += b"shutdown /r\r\n"
    files["answer/unattend-oobe.xml"] = b"<unattend>\r\n"
    files["README.md"] += b"https://ann:s3cret@example.invalid\n"
    found = [
        (item.path, item.rule) for item in check_windows_tree(files, platform=Platform.QEMU)
    ]
    assert found == sorted(found, key=lambda pair: pair[0])
    assert {
        ("README.md", "SEC005"),
        ("answer/unattend-oobe.xml", "ANS001"),
        ("media/vega/firstboot/SetupComplete.cmd", "CMD007"),
        (SCRIPT, "PS005"),
        (SCRIPT, "PS011"),
        (SCRIPT, "XRF002"),
        (BUILD, "XRF001"),
    } <= set(found)
    assert any(rule == "PKR002" for _, rule in found)
    # Said once: by the check of the format, not again by that of all texts.
    assert (SCRIPT, "SEC004") not in found


def test_a_script_of_a_playbook_may_keep_the_line_ends_of_the_checkout() -> None:
    text = b"#Requires -Version 5.1\nSet-StrictMode -Version 2.0\n"
    text += b"$ErrorActionPreference = 'Stop'\n"
    path = "playbooks/roles/x/files/x.ps1"
    for data in (text, text.replace(b"\n", b"\r\n")):
        assert check_windows_tree({**good(), path: data}, platform=Platform.QEMU) == []
    mixed = text.replace(b"\n", b"\r\n", 1)
    [item] = check_windows_tree({**good(), path: mixed}, platform=Platform.QEMU)
    assert (item.rule, item.path, item.line) == ("PS015", path, 2)
