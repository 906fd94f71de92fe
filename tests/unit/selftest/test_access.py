from __future__ import annotations

import os
from pathlib import Path

import pytest

from vega_image.selftest.access import User, read_access
from vega_image.selftest.reading import NotAvailable, Sysroot

ME = User.of(os.geteuid(), os.getgroups())


def node(folder: Path, mode: int) -> Sysroot:
    (folder / "dev").mkdir()
    (folder / "dev/kfd").touch()
    (folder / "dev/kfd").chmod(mode)
    return Sysroot(folder)


@pytest.mark.parametrize(
    ("mode", "in_group", "allowed"),
    [
        (0o660, True, True),
        (0o660, False, False),
        (0o640, True, False),
        (0o666, False, True),
        (0o606, True, False),
    ],
)
def test_a_recorded_node_is_judged_by_mode_and_group(
    tmp_path: Path,
    mode: int,
    in_group: bool,  # noqa: FBT001
    allowed: bool,  # noqa: FBT001
) -> None:
    gid = tmp_path.stat().st_gid
    user = User.of(54321, {gid} if in_group else {gid + 1})
    found = read_access(node(tmp_path, mode), "dev/kfd", user)
    assert (found.allowed, found.how) == (allowed, "mode")
    assert found.error == ("" if allowed else "EACCES")
    assert (found.gid, found.mode) == (gid, f"{mode:04o}")


def test_the_owner_is_judged_by_the_owner_bits_alone(tmp_path: Path) -> None:
    root = node(tmp_path, 0o066)
    owner = User.of((tmp_path / "dev/kfd").stat().st_uid or 1, {tmp_path.stat().st_gid})
    if owner.uid == (tmp_path / "dev/kfd").stat().st_uid:
        assert read_access(root, "dev/kfd", owner).allowed is False
    assert read_access(root, "dev/kfd", User.of(0, ())).allowed is True


def test_an_absent_node_has_no_owner(tmp_path: Path) -> None:
    found = read_access(Sysroot(tmp_path), "dev/kfd", ME)
    assert (found.exists, found.error) == (False, "ENOENT")
    assert isinstance(found.gid, NotAvailable)
    assert isinstance(found.allowed, NotAvailable)


def test_on_this_machine_the_kernel_is_asked() -> None:
    found = read_access(Sysroot(Path("/")), "dev/null", ME)
    assert (found.exists, found.allowed, found.how) == (True, True, "open")
    refused = read_access(Sysroot(Path("/")), "dev", ME)
    assert (refused.allowed, refused.error) == (False, "EISDIR")


def test_for_another_user_of_this_machine_only_the_mode_speaks() -> None:
    other = User.of(ME.uid + 1, ())
    assert read_access(Sysroot(Path("/")), "dev/null", other).how == "mode"
