"""Bad input, absent modules, damaged files and full disks: a code, a hint, nothing left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("numpy")
ROOT = Path(__file__).resolve().parents[2]
DEVICE = """
from vega_image.selftest.seam import Failed


class Refusing:
    name, source = "refusing", "cpu"

    def identity(self):
        return {}

    def run(self, request):
        return Failed("UNSUPPORTED", "x" * 900)


def broken():
    raise RuntimeError("no such bus")
"""
RUN = ("--device", "python:refusing:Refusing", "--level", "r1", "--case", "conv0000")
ROOM = 8 << 10


@dataclass(frozen=True)
class Place:
    """A folder to run in, with a device that answers at once and needs no torch."""

    folder: Path
    package: Path = ROOT

    def run(self, *words: str, out: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        argv = [sys.executable, "-m", "vega_image.selftest", *words]
        path = f"{self.package}{os.pathsep}{self.folder}"
        environ = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        with (out or self.folder / "out").open("wb") as stream:
            done = subprocess.run(
                argv, cwd=self.folder, env=environ, stdout=stream, stderr=-1, check=False
            )
        if out is None:
            done.stdout = (self.folder / "out").read_bytes()
        return done

    def refused(self, *words: str) -> tuple[int, str]:
        done = self.run(*words, "--json")
        error = json.loads(done.stdout)["error"]
        assert error["exit"] == done.returncode, done.stderr
        assert error["message"]
        assert error["hint"]
        assert b"Traceback" not in done.stderr
        return done.returncode, error["code"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "refusing.py").write_text(DEVICE)
    return Place(tmp_path)


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"refusing.py", "out"}


def test_the_device_of_these_tests_gives_a_report(place: Place) -> None:
    assert place.run(*RUN, "--report", "r").returncode == 9
    names = {"report.json", "report.xml", "report.html", "journal.jsonl"}
    assert left(place.folder / "r") == names


def entry(value: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        document = json.loads(data)
        name = min(document["sha256"])
        if value:
            document["sha256"][name] = value
        else:
            del document["sha256"][name]
        return json.dumps(document, indent=0, sort_keys=True).encode() + b"\n"

    return change


def other(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return change


def fixed(data: bytes) -> Callable[[bytes], bytes]:
    return lambda _: data


WRONG_HASH = "A" * 43 + "="
DAMAGE = [
    ("golden.json", entry(WRONG_HASH), "TABLES_DAMAGED"),
    ("golden.json", entry(""), "TABLES_DAMAGED"),
    ("golden.json", fixed(b""), "TABLES_DAMAGED"),
    ("golden.json", fixed(b"\xff\xfe{"), "TABLES_DAMAGED"),
    ("golden.json", fixed(b"[" * 100_000), "TABLES_DAMAGED"),
    ("golden.json", other(b"golden/1", b"golden/2"), "DATA_VERSION"),
    ("conv.jsonl", other(b'"N":1,', b'"N":2,'), "TABLES_DAMAGED"),
    ("conv.jsonl", lambda data: data[:-1000], "TABLES_DAMAGED"),
    ("linalg.jsonl", other(b'"threshold":30.0', b'"threshold":90.0'), "TABLES_DAMAGED"),
    ("regressions.jsonl", fixed(b"{}\n"), "TABLES_DAMAGED"),
    ("calibration.json", other(b"0.944", b"9.944"), "TABLES_DAMAGED"),
    ("digests.json", fixed(b"{}"), "TABLES_DAMAGED"),
    ("digests.json", other(b'"suite": "1"', b'"suite": "0"'), "DATA_VERSION"),
    ("texts.en.json", lambda data: data[:-30], "TABLES_DAMAGED"),
]


@pytest.mark.parametrize(("name", "change", "code"), DAMAGE)
def test_damaged_tables_are_wrong_bytes_and_no_device_is_blamed(
    place: Place, name: str, change: Callable[[bytes], bytes], code: str
) -> None:
    package = place.folder / "copy" / "vega_image"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "vega_image" / "selftest", package / "selftest", ignore=leave)
    file = package / "selftest" / "data" / name
    file.write_bytes(change(file.read_bytes()))
    copy = Place(place.folder, package.parent)
    assert copy.refused(*RUN, "--report", "r") == (4, code)
    assert left(place.folder) == {"copy"}


@pytest.mark.parametrize(
    ("data", "exit_code"),
    [
        (b"", 4),
        (b"\x00\xff", 4),
        (b'{"schema": "vega-selftest-recording/2"}\n', 4),
        (b'{"schema": "vega-selftest-recording/1"}\n{"key": "x"', 4),
        (b'{"schema": "vega-selftest-recording/1"}\n{"key": "x"}\n', 4),
        (b'{"schema": "vega-selftest-recording/1"}\n' + b"[" * 100_000 + b"\n", 4),
    ],
)
def test_a_damaged_recording_is_wrong_bytes(place: Place, data: bytes, exit_code: int) -> None:
    (place.folder / "recording").write_bytes(data)
    words = ("--device", "replay:recording", *RUN[2:], "--report", "r")
    assert place.refused(*words) == (exit_code, "REPLAY")
    assert left(place.folder) == {"recording"}


def test_bits_of_a_recorded_output_do_not_change_unseen(place: Place) -> None:
    packed = '"y": {"shape": [1], "dtype": "fp32", "data": "eJxjYGBgAAAABAAB"}'
    line = f'{{"key": "k", "outputs": {{{packed}}}, "seconds": 1, "solver": "", '
    line += '"inputs_sha256": {}, "hygiene": []}\n'
    head = '{"schema": "vega-selftest-recording/1", "identity": {}}\n'
    spoilt = line.replace("eJxjYGBg", "eJxjYGBh")
    words = ("--device", "replay:recording", *RUN[2:], "--report", "r")
    (place.folder / "recording").write_text(head + spoilt)
    assert place.refused(*words) == (4, "REPLAY")


MODULES = {
    "no bfloat16": ("float64 = float32 = float16 = int64 = int32 = uint8 = bool = 1\n",
                    "DTYPE_MISSING"),
    "no library": ("raise OSError('libtorch_cpu.so: cannot open shared object file')\n",
                   "MODULE_MISSING"),
    "no module": ("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n",
                  "MODULE_MISSING"),
    "of another numpy": ("raise RuntimeError('compiled against another API')\n",
                         "MODULE_MISSING"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_a_torch_that_cannot_judge_or_compute_is_said(
    place: Place, kind: str, isolation: str
) -> None:
    text, code = MODULES[kind]
    (place.folder / "torch.py").write_text(text)
    run = ("--device", "cpu", "--level", "r1", "--isolation", isolation, "--report", "r")
    assert place.refused(*run) == (5, code)
    if isolation == "fork":
        judged = ("--device", "python:refusing:Refusing", "--level", "r1", "--case", "op27")
        assert place.refused(*judged, "--report", "r") == (5, code)
    assert left(place.folder) <= {"torch.py", "__pycache__"}


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (("--report", "file"), 2, "REPORT_FOLDER"),
        (("--report", "file/below"), 2, "REPORT_FOLDER"),
        (("--report", "/proc/absent/below"), 5, "REPORT_FOLDER"),
        (("--report", "r", "--verdict-file", "absent/gate"), 5, "VERDICT_FILE"),
        (("--report", "r", "--record", "absent/recording"), 5, "RECORDING"),
        (("--report", "r", "--device", "python:refusing:broken"), 2, "UNKNOWN_DEVICE"),
        (("--report", "r", "--device", "python:refusing:absent"), 2, "UNKNOWN_DEVICE"),
    ],
)
def test_what_cannot_be_written_or_opened_leaves_nothing(
    place: Place, words: tuple[str, ...], exit_code: int, code: str
) -> None:
    (place.folder / "file").write_text("mine")
    assert place.refused(*RUN, *words) == (exit_code, code)
    assert left(place.folder) <= {"file", "__pycache__"}
    assert (place.folder / "file").read_text() == "mine"


@pytest.mark.parametrize("words", [("list",), ("list", "--json"), ("explain", "op27"), RUN])
def test_a_full_standard_output_is_no_success(place: Place, words: tuple[str, ...]) -> None:
    more = ("--report", "r") if words is RUN else ()
    done = place.run(*words, *more, out=Path("/dev/full"))
    assert done.returncode == 5
    assert b"OUTPUT" in done.stderr or "--json" in words
    assert b"Traceback" not in done.stderr


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB with room for a few lines and for no report."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mounted)]
    subprocess.run(argv, check=True)
    (mounted / "filler").write_bytes(bytes((64 << 10) - ROOM))
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


@pytest.mark.needs("root")
def test_a_disk_that_fills_up_leaves_no_half_report(place: Place, disk: Path) -> None:
    gate = ("--verdict-file", "gate")
    report = ("--report", str(disk / "new" / "report"))
    assert place.refused(*RUN, *gate, *report) == (5, "REPORT_FOLDER")
    assert left(disk) == {"filler"}
    assert json.loads((place.folder / "gate").read_text())["state"] != "pass"
    (disk / "filler").write_bytes(bytes(64 << 10))
    assert place.refused(*RUN, *report) == (5, "REPORT_FOLDER")
    assert left(disk) == {"filler"}


@pytest.mark.needs("root")
def test_an_older_report_and_journal_stay_whole_on_a_full_disk(
    place: Place, disk: Path
) -> None:
    folder = disk / "report"
    folder.mkdir()
    before = {"report.json": b"{}\n", "journal.jsonl": b'{"old": 1}\n'}
    for name, data in before.items():
        (folder / name).write_bytes(data)
    (disk / "filler").write_bytes(bytes((64 << 10) - 4 * 4096))
    assert place.refused(*RUN, "--report", str(folder))[0] == 5
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.needs("root")
def test_a_recording_without_room_is_nobody_elses_fault(place: Place, disk: Path) -> None:
    (disk / "filler").write_bytes(bytes((64 << 10) - 4096))
    words = ("--record", str(disk / "recording"), "--report", "r", "--level", "r2")
    run = ("--device", "python:refusing:Refusing", "--case", "conv0000", *words)
    assert place.refused(*run) == (5, "RECORDING")
    assert left(disk) == {"filler"}
    assert left(place.folder) <= {"disk", "__pycache__"}
