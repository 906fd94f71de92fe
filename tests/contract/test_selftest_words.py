"""selftest's words from a shell: exit codes, errors that help, nothing half done."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]


def selftest(*words: str, program: tuple[str, ...] = ("-m", "vega_image.selftest"),
             cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:  # fmt: skip
    argv = [sys.executable, *program, *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["--case", "nonsense"], "UNKNOWN_CASE", 2),
        (["--plant", "nonsense"], "UNKNOWN_FAULT", 2),
        (["--device", "nonsense"], "UNKNOWN_DEVICE", 2),
        (["--device", "replay:absent"], "REPLAY", 2),
        (["--level", "r9"], "USAGE", 2),
        (["--budget", "-1"], "USAGE", 2),
        (["--language", "xx"], "LANGUAGE", 2),
        (["--dtype", "fp99"], "USAGE", 2),
        (["--direction", "X"], "USAGE", 2),
        (["--profile", "zz"], "USAGE", 2),
        (["--timeout", "0"], "USAGE", 2),
        (["--target", "linux-inference"], "USAGE", 2),
        (["--case", "la01", "--level", "r1"], "NOTHING_TO_RUN", 2),
        (["explain", "nonsense"], "UNKNOWN_CASE", 2),
        (["nonsense"], "USAGE", 2),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    words: list[str], code: str, exit_code: int, tmp_path: Path
) -> None:
    folder = tmp_path / "report"
    more = [] if words[0] in {"explain", "nonsense"} else ["--report", str(folder)]
    done = selftest(*words, *more, "--json")
    assert done.returncode == exit_code
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["exit"]) == (code, exit_code)
    assert not folder.exists()


def test_a_folder_nobody_can_write_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = selftest("--level", "r1", "--report", str(tmp_path / "file" / "x"))
    assert done.returncode == 2
    assert "REPORT_FOLDER" in done.stderr
    assert "hint:" in done.stderr


def test_a_clean_run_a_planted_fault_and_their_files(tmp_path: Path) -> None:
    gate = ("--verdict-file", str(tmp_path / "gate"), "--image", "sha256:1")
    clean = selftest("--level", "r1", "--report", str(tmp_path / "a"), "--json", *gate)
    assert clean.returncode == 0, clean.stderr
    assert json.loads(clean.stdout)["source"] == "cpu"
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names == {"report.json", "report.xml", "report.html", "journal.jsonl"}
    lines = (tmp_path / "a" / "journal.jsonl").read_text().splitlines()
    assert {json.loads(line)["source"] for line in lines} == {"cpu"}
    verdict = json.loads((tmp_path / "gate").read_text())
    assert (verdict["state"], verdict["source"]) == ("pass", "cpu")
    fault = ("--plant", "wrong-c3-wgrad")
    bad = selftest("--level", "r1", *fault, "--report", str(tmp_path / "b"))
    assert bad.returncode == 8
    page = (tmp_path / "b" / "report.html").read_text()
    assert "backward-weights" in page
    assert "first wrong element" in page


def test_a_recording_replays_to_the_same_verdict_and_says_so(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    words = ["--level", "r1", "--case", "conv0000"]
    selftest(*words, "--report", str(tmp_path / "a"), "--record", str(recording))
    done = selftest(*words, "--report", str(tmp_path / "b"), "--device", f"replay:{recording}")
    assert done.returncode == 0, done.stderr
    assert "Replay" in done.stdout
    bent = selftest(*words, "--report", str(tmp_path / "c"), "--plant", "bit-flip",
                    "--device", f"replay:{recording}")  # fmt: skip
    assert bent.returncode == 8


def test_a_budget_of_nothing_proves_nothing(tmp_path: Path) -> None:
    done = selftest("--level", "r1", "--budget", "0", "--report", str(tmp_path), "--json")
    assert done.returncode == 9
    assert set(json.loads(done.stdout)["counts"]) == {"UNPROVEN"}


def test_the_pyz_is_the_same_each_time_and_runs_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "one.pyz", tmp_path / "two.pyz"
    assert selftest("pack", "--output", str(one)).returncode == 0
    alone = selftest("pack", "--output", str(two), program=(str(one),), cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert one.read_bytes() == two.read_bytes()
    assert not [name for name in zipfile.ZipFile(one).namelist() if ".pyc" in name]
    spawned = selftest("--level", "r1", "--isolation", "spawn", "--report", str(tmp_path / "r"),
                       program=("-I", str(one)), cwd=tmp_path)  # fmt: skip
    assert spawned.returncode == 0, spawned.stderr
