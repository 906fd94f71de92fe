"""What a root sets for MIOpen: every place that a login or a service reads."""

from __future__ import annotations

from pathlib import Path

from vega_image.finddb.installed import variables_of
from vega_image.finddb.roots import FolderRoot

PLACES = {
    "etc/environment": 'MIOPEN_A="1"\n# MIOPEN_NOT=1\n',
    "etc/environment.d/90.conf": "MIOPEN_B=2\n",
    "etc/environment.d/90.txt": "MIOPEN_NOT=1\n",
    "usr/lib/environment.d/10.conf": "MIOPEN_C=3\n",
    "etc/profile.d/gpu.sh": "export MIOPEN_D=4 MIOPEN_E='5 6'\n",
    "etc/systemd/system/model.service": "[Service]\nEnvironment=MIOPEN_F=7 OTHER=8\n",
    "etc/systemd/system/model.service.d/more.conf": '[Service]\nEnvironment="MIOPEN_G=9"\n',
}


def test_every_place_is_read_and_said(tmp_path: Path) -> None:
    for name, text in PLACES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = {one.name: (one.value, one.place) for one in variables_of(FolderRoot(tmp_path))}
    values = {name: value for name, (value, _) in found.items() if name.startswith("MIOPEN")}
    assert values == {f"MIOPEN_{x}": y for x, y in zip(
        "ABCDEFG", ("1", "2", "3", "4", "5 6", "7", "9"), strict=True
    )}  # fmt: skip
    assert found["MIOPEN_F"][1] == "etc/systemd/system/model.service"


def test_a_link_out_of_the_root_is_not_followed_there(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("MIOPEN_A=1\n")
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/environment").symlink_to(tmp_path / "outside")
    assert not list(variables_of(FolderRoot(tmp_path / "root")))
