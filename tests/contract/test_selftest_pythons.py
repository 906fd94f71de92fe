"""vega-selftest.pyz in every Python it is for, where vega-image is not installed.

Interpreters are python3.10 to python3.13 of the path, those that VEGA_PYTHONS names
(separated like PATH), and the one that runs the tests. What is not there is listed as skipped;
docs/selftest-pythons.md says what ran where with numpy and torch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.selftest_pythons import Record, page
from vega_image.selftest.pack import pack

VERSIONS = ("3.10", "3.11", "3.12", "3.13")
COUNTS = {"op": 98, "linalg": 20, "conv": 1016, "regression": 29}
BARE = ("-I", "-S", "-W", "error")
"""Isolated and without site-packages: neither vega-image nor numpy nor torch."""


def version_of(python: str) -> str:
    argv = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def found() -> dict[str, str]:
    named = os.environ.get("VEGA_PYTHONS", "").split(os.pathsep)
    here = [shutil.which(f"python{version}") for version in VERSIONS]
    pythons = [path for path in (*named, *here) if path]
    return {version_of(path): path for path in reversed(pythons)} | {
        version_of(sys.executable): sys.executable
    }


@pytest.fixture(scope="module")
def pythons() -> dict[str, str]:
    return found()


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pyz") / "vega-selftest.pyz"
    pack(path)
    return path


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest, pythons: dict[str, str]) -> str:
    version = str(request.param)
    if version not in pythons:
        pytest.skip(f"NOT RUN on Python {version}: none on the path or in VEGA_PYTHONS")
    return pythons[version]


def run(
    python: str, pyz: Path, *words: str, cwd: Path, flags: tuple[str, ...] = BARE
) -> subprocess.CompletedProcess[str]:
    argv = [python, *flags, str(pyz), *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


def test_at_least_the_python_of_these_tests_is_among_them(pythons: dict[str, str]) -> None:
    assert pythons[f"{sys.version_info[0]}.{sys.version_info[1]}"] == sys.executable


def test_core_words_need_nothing_but_python(python: str, pyz: Path, tmp_path: Path) -> None:
    listed = run(python, pyz, "list", "--json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    kinds = [case["kind"] for case in json.loads(listed.stdout)["cases"]]
    assert {kind: kinds.count(kind) for kind in kinds} == COUNTS
    explained = run(python, pyz, "explain", "conv0000", cwd=tmp_path)
    assert explained.returncode == 0, explained.stderr
    assert "stem_c3" in explained.stdout
    assert run(python, pyz, "run", "--help", cwd=tmp_path).returncode == 0
    packed = run(python, pyz, "pack", "--output", "again.pyz", cwd=tmp_path)
    assert packed.returncode == 0, packed.stderr
    assert (tmp_path / "again.pyz").read_bytes() == pyz.read_bytes()


@pytest.mark.parametrize("device", ["replay", "cpu"])
@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_a_run_without_numpy_says_what_is_missing_and_writes_nothing(
    python: str, pyz: Path, tmp_path: Path, device: str, isolation: str
) -> None:
    recording = tmp_path / "recording"
    recording.write_bytes(b'{"schema": "vega-selftest-recording/1", "identity": {}}\n')
    spec = f"replay:{recording}" if device == "replay" else device
    done = run(python, pyz, "--device", spec, "--level", "r1", "--isolation", isolation,
               "--report", "r", "--json", cwd=tmp_path)  # fmt: skip
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["at"]) == (5, "MODULE_MISSING", "numpy")
    assert error["hint"]
    assert not (tmp_path / "r").exists()


def test_a_recording_replays_where_numpy_and_torch_are(
    python: str, pyz: Path, tmp_path: Path
) -> None:
    probe = [python, "-I", "-c", "import numpy, torch"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip(f"NOT RUN on Python {version_of(python)} with numpy and torch: it has none")
    words = ("--level", "r1", "--case", "conv0000")
    first = run(python, pyz, *words, "--report", "a", "--record", "kept",
                cwd=tmp_path, flags=("-I",))  # fmt: skip
    assert first.returncode == 0, first.stderr
    again = run(python, pyz, *words, "--device", "replay:kept", "--isolation", "spawn",
                "--report", "b", cwd=tmp_path, flags=("-I",))  # fmt: skip
    assert again.returncode == 0, again.stderr
    results = [json.loads((tmp_path / name / "report.json").read_text())["results"]
               for name in "ab"]  # fmt: skip
    digests = [[item["digest"] for item in result] for result in results]
    assert digests[0] == digests[1]
    assert all(item["digest"] for item in results[0] if item["group"] != "fact/machine")


def test_an_older_python_is_told_so(pyz: Path) -> None:
    text = zipfile.ZipFile(pyz).read("__main__.py").decode()
    assert "(3, 10)" in text
    program = text.replace("sys.version_info < (3, 10)", "sys.version_info < (9, 9)")
    argv = [sys.executable, "-c", program, "list"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr.startswith("PYTHON_TOO_OLD: this is Python 3.")


def test_one_damaged_byte_anywhere_is_found_before_anything_runs(
    pyz: Path, tmp_path: Path
) -> None:
    data = bytearray(pyz.read_bytes())
    place = data.index(b"Compare a device's output with a reference")
    data[place] ^= 1
    spoilt = tmp_path / "spoilt.pyz"
    spoilt.write_bytes(data)
    done = run(sys.executable, spoilt, "list", "--json", cwd=tmp_path)
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["code"] == "ARCHIVE_DAMAGED"


def test_another_place_time_and_umask_make_the_same_bytes(pyz: Path, tmp_path: Path) -> None:
    package = Path(__file__).resolve().parents[2] / "vega_image"
    other = tmp_path / "else where" / "vega_image"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    shutil.copytree(package / "selftest", other / "selftest", copy_function=shutil.copyfile)
    (other / "selftest" / "notes.txt~").write_text("left by an editor")
    (other / "selftest" / "data" / ".conv.jsonl.swp").write_text("left by another")
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    argv = [sys.executable, "-m", "vega_image.selftest", "pack", "--output", "p.pyz"]
    done = subprocess.run(
        argv, cwd=other.parent, umask=0o077, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (other.parent / "p.pyz").read_bytes() == pyz.read_bytes()


def test_the_page_is_made_from_the_record_and_all_pythons_agree() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    document = json.loads((docs / "selftest-pythons.json").read_text())
    records = [Record(**one) for one in document["records"]]
    assert (docs / "selftest-pythons.md").read_text() == page(document, records)
    assert {".".join(one.python.split(".")[:2]) for one in records} == set(VERSIONS)
    assert all(one.core and one.pack and one.runs for one in records)
    for name in records[0].runs:
        assert len({json.dumps(one.runs[name]) for one in records}) == 1, name
