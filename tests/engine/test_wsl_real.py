"""The real wsl-debian: built, unpacked, and its tool-chain, Ansible and reference run in it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.realimage import ROOT, VEGA_IMAGE, build_real
from tests.wslroot import WslRoot, unpacked
from vega_image.codeobjects.census import census_file
from vega_image.wsl import places
from vega_image.wsl.checks import check_archive
from vega_image.wsl.reading import list_archive, small_files

pytestmark = [pytest.mark.needs("mmdebstrap", "network", "root"), pytest.mark.slow]
TARGET = "wsl-debian"
PYZ = f"/{places.PYZ}"
KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void add(float *a, const float *b) { a[threadIdx.x] += b[threadIdx.x]; }
int main() { return 0; }
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.21)
project(add LANGUAGES HIP)
add_executable(add add.hip)
"""


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the factory: a relock on a mirror that has moved must not touch the checkout."""
    folder = tmp_path_factory.mktemp("wsl-factory")
    for name in ("images", "templates", "playbooks", "inventory"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def archive(factory: Path) -> Path:
    """The shipped archive but for gzip's level, in the user's own store."""
    return Path(str(build_real(factory, "--level", "1", target=TARGET)["archive"]))


@pytest.fixture(scope="module")
def root(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> WslRoot:
    return unpacked(archive, tmp_path_factory.mktemp("wsl") / "root")


def test_the_real_archive_keeps_every_rule(archive: Path) -> None:
    listing = list_archive(archive)
    lock = json.loads(small_files(listing)[places.LOCK])
    assert check_archive(listing, epoch=lock["epoch"]) == []
    assert len(listing.nodes) > 20_000
    nodes = listing.by_path()
    assert not [n.path for n in listing.nodes if n.mode & 0o6000]
    assert nodes["tmp"].mode == 0o1777


def test_a_cold_rebuild_is_the_same(factory: Path, archive: Path) -> None:
    argv = [str(VEGA_IMAGE), "-C", str(factory), "reproduce", TARGET, "--json"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    value = json.loads(done.stdout)
    assert value.get("reproduced") is True, value
    assert archive.parent.name.endswith(value["digest"][7:23])


def test_hipcc_compiles_gfx906_and_only_that(root: WslRoot) -> None:
    folder = root.folder / "tmp"
    (folder / "add.hip").write_text(KERNEL)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    root.done("hipcc", "--offload-arch=gfx906", "-O2", "/tmp/add.hip", "-o", "/tmp/add")
    wish = ("-DCMAKE_HIP_ARCHITECTURES=gfx906", "-DCMAKE_HIP_COMPILER=/usr/bin/clang++-21")
    root.done("cmake", "-S", "/tmp", "-B", "/tmp/build", "-G", "Ninja", *wish)
    root.done("cmake", "--build", "/tmp/build")
    for path in (folder / "add", folder / "build/add"):
        codes = list(census_file(path, path.name))
        assert {code.arch for code in codes} == {"gfx906"}, path
    said = root.done("readelf", "-d", "/tmp/add")
    assert "libamdhip64.so.6" in said, "the soname that linux-inference has"


def test_ansible_reads_and_runs_the_playbooks(root: WslRoot) -> None:
    said = root.done("ansible-playbook", "--version")
    assert "core 2.22.0b2" in said
    assert "python version = 3.14" in said
    for book in ("windows", "wsl", "linux"):
        file = f"/{places.SHARE}/playbooks/{book}.yaml"
        root.done("ansible-playbook", "--syntax-check", "-i", "localhost,", file)
    root.done("python3", "-c", "import pypsrp, yaml, cryptography")
    before = (root.folder / places.CONF).read_text()
    play = (
        "cd /usr/share/vega-image/playbooks && ANSIBLE_LOCALHOST_WARNING=0 ansible-playbook "
        "-i wsl-1, -c local -e ansible_python_interpreter=/usr/bin/python3 /tmp/play.yaml"
    )
    book = "- hosts: all\n  gather_facts: false\n  roles: [wsl_settings]\n"
    (root.folder / "tmp/play.yaml").write_text(book)
    said = root.done("sh", "-c", f"ANSIBLE_ROLES_PATH=/{places.SHARE}/playbooks/roles; "
                     f"export ANSIBLE_ROLES_PATH; {play}; {play}")  # fmt: skip
    first, second = [line for line in said.splitlines() if "changed=" in line]
    assert "changed=1" in first
    assert "changed=0" in second
    after = (root.folder / places.CONF).read_text()
    assert after.splitlines()[1:] == before.splitlines()[1:]


def test_the_cpu_reference_passes(root: WslRoot) -> None:
    said = root.done("python3", PYZ, "run", "--device", "cpu", "--level", "r1", "--json",
                     "--report", "/tmp/report")  # fmt: skip
    value = json.loads(said)
    assert (value["exit_code"], value["source"], value["failures"]) == (0, "cpu", [])
    assert value["counts"]["MATCH"] >= 8


@pytest.mark.parametrize(
    ("release", "dxg"), [("5.15.167.4-microsoft-standard-WSL2", ""), ("", "yes")]
)
def test_the_card_is_refused_inside_wsl(root: WslRoot, release: str, dxg: str) -> None:
    inside = WslRoot(root.folder, release=release, dxg=dxg)
    for words in (("--level", "r1"), ("--level", "r2", "--json")):
        done = inside("python3", PYZ, "run", "--device", "hip", *words)
        assert done.returncode == 7, done.stdout + done.stderr
        said = done.stdout + done.stderr
        assert "WSL_GFX906_UNSUPPORTED" in said
        assert "Linux on the bare machine" in said
        assert "native Windows" in said


def test_the_first_shell(root: WslRoot) -> None:
    inside = WslRoot(root.folder, release="5.15.167.4-microsoft-standard-WSL2", dxg="yes")
    assert inside("vega-reference", "state").stdout == "pending\n"
    numpy = root.folder / "usr/lib/python3/dist-packages/numpy/__init__.py"
    text = numpy.read_text()
    numpy.write_text("raise ImportError\n")
    failed = inside(f"/{places.OOBE}")
    numpy.write_text(text)
    assert failed.returncode not in {0, 126, 127}
    assert "no shell until it passes" in failed.stderr
    assert inside("getent", "passwd", "1000").returncode == 2
    said = inside.done(f"/{places.OOBE}")
    assert "The CPU reference passed." in said
    assert inside.done("vega-reference", "state") == "pass\n"
    assert inside.done("su", "-", "vega", "-c", "id -u; vega-reference state") == "1000\npass\n"
    shadow = (root.folder / "etc/shadow").read_text().splitlines()
    [line] = [line for line in shadow if line.startswith("vega:")]
    assert line.split(":")[1] == "!"
    assert inside.done("bash", "-lc", "true") == ""


def test_the_units_are_what_systemd_reads(root: WslRoot) -> None:
    units = ["vega-reference.service", "vega-reference.timer", "vega-reference-again.service"]
    root.done("systemd-analyze", "verify", *(f"/{places.UNITS}/{unit}" for unit in units))
    for unit in ("vega-reference.service", "vega-reference.timer"):
        assert root.done("systemctl", "is-enabled", unit) == "enabled\n"
    for unit in places.MASKED:
        there = (root.folder / places.UNITS / unit).exists()
        said = root("systemctl", "is-enabled", unit).stdout.strip()
        assert said == "masked", f"{unit} (a unit of the archive: {there})"
    assert root.done("dpkg", "--audit") == ""
    root.done("apt-get", "check")
