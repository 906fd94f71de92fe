"""`check_packer` with the real packer: format, validation, and what an absent packer means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vega_image.checks.packer import check_packer
from vega_image.engines.packer import Packer
from vega_image.errors import EngineError

GOOD = Path(__file__).resolve().parents[1] / "cases/windows/packer/good"
BUILD, SOURCE = "packer/build.pkr.hcl", "packer/source.pkr.hcl"
EFI = "packer/overlays/efi.pkr.hcl"

pytestmark = pytest.mark.needs("packer")


def good() -> dict[str, bytes]:
    return {
        path.relative_to(GOOD).as_posix(): path.read_bytes()
        for path in GOOD.rglob("*")
        if path.is_file()
    }


def found(files: dict[str, bytes]) -> list[tuple[str, str, int]]:
    return [(item.rule, item.path, item.line) for item in check_packer(files)]


def test_the_good_tree_passes_without_iso_and_without_values() -> None:
    assert found(good()) == []


def test_what_is_not_formatted_is_named_with_its_line() -> None:
    files = good()
    files[BUILD] = files[BUILD].replace(b"    restart_timeout", b"  restart_timeout")
    files[EFI] = files[EFI].replace(b"  efi_boot     =", b"  efi_boot =")
    line = files[BUILD][: files[BUILD].index(b"  restart_timeout")].count(b"\n") + 1
    assert found(files) == [("PKR001", BUILD, line), ("PKR001", EFI, 4)]


def test_what_packer_refuses_is_named_with_its_line() -> None:
    files = good()
    files[BUILD] = files[BUILD].replace(b'"windows-restart"', b'"windows-reboot"')
    [item] = check_packer(files)
    assert (item.rule, item.path) == ("PKR002", BUILD)
    assert files[BUILD].splitlines()[item.line - 1] == b'  provisioner "windows-reboot" {'
    assert 'Unknown provisioner type "windows-reboot"' in item.message


def test_a_file_for_the_cd_that_is_missing_is_refused() -> None:
    files = good()
    del files["media/vega/SetupComplete.cmd"]
    [item] = check_packer(files)
    assert item.rule == "PKR002"
    assert "SetupComplete.cmd" in item.message


def test_broken_files_are_refused_with_the_line_that_packer_does_not_say() -> None:
    files = good() | {EFI: b"source {\n  a = \n}\n", SOURCE: b'source "qemu" "windows" {\n\xff'}
    assert found(files) == [("PKR002", EFI, 2), ("PKR002", SOURCE, 2)]


def test_an_overlay_with_an_unknown_block_is_refused() -> None:
    files = good() | {EFI: b'sources "qemu" "x" {\n}\n'}
    [item] = check_packer(files)
    assert (item.rule, item.path, item.line) == ("PKR002", EFI, 1)


def test_a_tree_without_packer_files_is_refused() -> None:
    assert found({"README.md": b""}) == [("PKR002", "packer", 0)]


def test_an_absent_packer_is_no_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError) as caught:
        check_packer(good())
    assert caught.value.code == "TOOL_ABSENT"
    assert caught.value.exit_code == 5


def test_a_template_may_have_any_name_and_inspect_shows_it(tmp_path: Path) -> None:
    packer = Packer.find(os.environ)
    folder = tmp_path / "a folder é"
    for name in ("{x}", "-x"):
        path = folder / name / "a.pkr.hcl"
        path.parent.mkdir(parents=True)
        path.write_text('variable "colour" {\n  default = "red"\n}\n')
        assert 'var.colour: "red"' in packer.inspect(folder, name)
        assert packer.validate(folder, name, {}) == ()
        assert packer.fmt_check(folder, [f"{name}/a.pkr.hcl"]) == ()
    with pytest.raises(EngineError) as caught:
        packer.inspect(folder, "nowhere")
    assert caught.value.code == "TOOL_FAILED"
