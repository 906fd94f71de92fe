"""`--solvers`: children, verdicts, journals, resumption and the printed commands."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from tests import miopenjournals
from vega_image.selftest.journal import Entry, read_entries

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
GEMM, NAIVE, OCL = "GemmWrwUniversal", "ConvDirectNaiveConvWrw", "ConvOclBwdWrW2<1>"
THREE = f"{GEMM},{NAIVE},{OCL}"
ONE = ("--case", "conv0515", "--direction", "W")
ENVIRON = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
PROGRAM = (sys.executable, "-m", "vega_image.selftest")


def sweep(
    device: str, report: Path, *words: str, solvers: str = THREE
) -> subprocess.CompletedProcess[str]:
    name = device if device in {"cpu", "hip"} else f"python:tests.miopenfake:{device}"
    argv = [*PROGRAM, "--device", name, "--solvers", solvers, "--report", str(report)]
    argv += [*(words or ONE)]
    return subprocess.run(
        argv, cwd=ROOT, env=ENVIRON, capture_output=True, text=True, check=False
    )


def lines(report: Path) -> list[Entry]:
    """Return what the sweep wrote; the machine's facts come before and are no sweep's."""
    return swept((report / "journal.jsonl").read_bytes())


def swept(data: bytes) -> list[Entry]:
    return [line for line in read_entries(data) if line.solver]


def table(report: Path) -> dict[tuple[str, str], str]:
    return {(line.solver, line.oracle): line.verdict for line in lines(report)}


def by_solver(report: Path, solver: str) -> list[str]:
    found = table(report)
    return [found[solver, oracle] for oracle in ("integer", "real", "hygiene")]


def plain(data: bytes) -> list[dict[str, object]]:
    rows = [vars(entry) for entry in read_entries(data)]
    rows = [row for row in rows if row["solver"]]
    # Another version of the tables, or of numpy's sums: not what these files are about.
    left_out = {"suite", "error", "bound", "detail"}
    return [{name: row[name] for name in row if name not in left_out} for row in rows]


@pytest.mark.parametrize("name", ["wrong-c3-wgrad", "mixed"])
def test_the_shipped_journals_are_what_a_sweep_writes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = (miopenjournals.FOLDER / f"{name}.jsonl").read_bytes()
    made = miopenjournals.journal(name)
    capsys.readouterr()
    assert plain(made) == plain(shipped)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["healthy", "substituted"])
def test_the_others_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shipped = (miopenjournals.FOLDER / f"{name}.jsonl").read_bytes()
    made = miopenjournals.journal(name)
    capsys.readouterr()
    assert plain(made) == plain(shipped)


def test_the_shipped_journals_are_complete() -> None:
    file = resources.files("vega_image.selftest") / "data" / "journal.schema.json"
    schema = jsonschema.Draft202012Validator(json.loads(file.read_text()))
    for path in miopenjournals.FOLDER.glob("*.jsonl"):
        for text in path.read_bytes().splitlines():
            row = json.loads(text)
            schema.validate(row)
            assert row["source"] == "replay"
            assert len(row["lib_sha256"]) == 64
            assert row["db_sha256"] == "none"
            if row["verdict"] == "MATCH":
                assert row["solver"] == row["solver_ran"]
                assert row["algo"]
                assert row["perf_config"] == "default"
                assert row["time_ms"] > 0
                assert row["workspace_bytes"] is not None
        found = Counter((e.trial, e.lib_sha256, e.driver, str(e.device))
                        for e in read_entries(path.read_bytes()))  # fmt: skip
        assert set(found.values()) == {1}
    healthy = list(read_entries((miopenjournals.FOLDER / "healthy.jsonl").read_bytes()))
    proven = Counter(
        (e.key, e.solver)
        for e in healthy
        if e.verdict == "MATCH" and e.oracle in {"integer", "real", "hygiene"}
    )
    assert set(proven.values()) == {3}
    assert len(proven) == 27


def test_a_wrong_solver_is_found_and_the_right_ones_are_not_blamed(tmp_path: Path) -> None:
    done = sweep("wrong", tmp_path)
    assert done.returncode == 8, done.stderr
    assert by_solver(tmp_path, OCL) == ["MISMATCH", "MISMATCH", "MATCH"]
    assert by_solver(tmp_path, GEMM) == by_solver(tmp_path, NAIVE) == ["MATCH"] * 3


def test_a_fresh_process_for_each_child_says_the_same(tmp_path: Path) -> None:
    done = sweep("wrong", tmp_path, *ONE, "--isolation", "spawn", solvers=OCL)
    assert done.returncode == 8, done.stderr
    assert by_solver(tmp_path, OCL) == ["MISMATCH", "MISMATCH", "MATCH"]
    assert {len(line.lib_sha256) for line in lines(tmp_path)} == {64}


def test_a_crash_and_a_hang_stop_nobody_else(tmp_path: Path) -> None:
    done = sweep("deadly", tmp_path, *ONE, "--timeout", "2")
    assert done.returncode == 8, done.stderr
    assert by_solver(tmp_path, NAIVE) == ["CRASHED"] * 3
    assert by_solver(tmp_path, GEMM) == ["TIMED_OUT"] * 3
    assert by_solver(tmp_path, OCL) == ["MATCH"] * 3


def test_hygiene_has_a_word_of_its_own(tmp_path: Path) -> None:
    done = sweep("unclean", tmp_path)
    assert done.returncode == 8
    assert by_solver(tmp_path, GEMM) == ["UNPROVEN", "UNPROVEN", "MISMATCH"]
    # Right once and wrong in dirty memory is wrong, for each oracle that looked.
    assert by_solver(tmp_path, NAIVE) == ["MISMATCH"] * 3


def test_another_solver_in_its_place_is_unproven(tmp_path: Path) -> None:
    done = sweep("substituting", tmp_path)
    assert done.returncode == 9
    assert by_solver(tmp_path, OCL) == ["SUBSTITUTED"] * 3
    assert {line.solver_ran for line in lines(tmp_path) if line.solver == OCL} == {GEMM}


def test_a_solver_that_does_not_apply_spoils_nothing(tmp_path: Path) -> None:
    done = sweep("healthy", tmp_path / "a", solvers=f"{GEMM},ConvOclBwdWrW53")
    assert done.returncode == 0, done.stderr
    alone = sweep("healthy", tmp_path / "b", solvers="ConvOclBwdWrW53")
    assert alone.returncode == 9
    assert by_solver(tmp_path / "b", "ConvOclBwdWrW53") == ["UNSUPPORTED"] * 3


def test_a_processor_proves_no_solver_and_says_why(tmp_path: Path) -> None:
    done = sweep("cpu", tmp_path, solvers=GEMM)
    assert done.returncode == 9
    assert "no solver can be read back" in done.stderr
    assert by_solver(tmp_path, GEMM) == ["UNPROVEN"] * 3
    assert {line.lib_sha256 for line in lines(tmp_path)} == {"not available"}


def test_the_budget_ends_a_sweep_and_the_rest_is_asked_again(tmp_path: Path) -> None:
    assert sweep("healthy", tmp_path, *ONE, "--budget", "0").returncode == 9
    assert {line.verdict for line in lines(tmp_path)} == {"UNPROVEN"}
    again = sweep("healthy", tmp_path)
    assert again.returncode == 0, again.stderr
    assert "holds 0 of 9" in again.stderr
    assert set(table(tmp_path).values()) == {"MATCH"}


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    argv = [*PROGRAM, "--device", "python:tests.miopenfake:deadly", "--report", str(tmp_path)]
    argv += [*ONE, "--solvers", THREE, "--timeout", "300"]
    with subprocess.Popen(argv, cwd=ROOT, env=ENVIRON, stderr=subprocess.DEVNULL) as running:
        wait(lambda: journal_lines(tmp_path) >= 7)
        running.kill()
    before = (tmp_path / "journal.jsonl").read_bytes()
    assert {line.solver for line in swept(before)} == {NAIVE, OCL}
    (tmp_path / "journal.jsonl").write_bytes(before + b'{"cut short')
    done = sweep("healthy", tmp_path)
    assert "holds 6 of 9" in done.stderr
    # What was wrong before is still wrong: it was not asked again.
    assert done.returncode == 8
    after = (tmp_path / "journal.jsonl").read_bytes()
    assert after.startswith(before)
    assert [line.solver for line in swept(after[len(before) :])] == [GEMM] * 3
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["counts"] == {"MATCH": 6, "CRASHED": 3}
    other = sweep("other_library", tmp_path, solvers=GEMM)
    assert "holds 0 of 3" in other.stderr


def journal_lines(folder: Path) -> int:
    path = folder / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def wait(ready: object, seconds: float = 60.0) -> None:
    assert callable(ready)
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_stopped_it_leaves_nothing_running(
    number: signal.Signals, isolation: str, tmp_path: Path
) -> None:
    mark = f"VEGA_TEST_MARK={tmp_path}"
    environ = {**ENVIRON, "VEGA_TEST_MARK": str(tmp_path), "TMPDIR": str(tmp_path)}
    argv = [*PROGRAM, "--device", "python:tests.miopenfake:deadly", *ONE, "--solvers", GEMM]
    argv += ["--report", str(tmp_path / "r"), "--isolation", isolation]
    with subprocess.Popen(argv, cwd=ROOT, env=environ, stderr=subprocess.PIPE) as running:
        wait(lambda: any(tmp_path.glob("vega-sweep-*/*/library.json")))
        running.send_signal(number)
        assert running.wait(30) == 130
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if mark in environment(pid)]
    assert not list(tmp_path.glob("vega-sweep-*"))


def environment(process: Path) -> str:
    try:
        return (process / "environ").read_text(errors="replace")
    except OSError:
        return ""


def test_a_dry_run_needs_no_card_and_its_commands_run_as_typed(tmp_path: Path) -> None:
    report = tmp_path / "a folder"
    done = sweep("hip", report, *ONE, "--dry-run", solvers="all")
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("#")]
    commands = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert f"# {len(commands)} children" in said[0]
    assert any("about" in line and "min" in line for line in said)
    assert not report.exists()
    (typed,) = [line for line in commands if f"MIOPEN_DEBUG_FIND_ONLY_SOLVER='{OCL}'" in line]
    assert OCL in shlex.split(typed)
    on_cpu = typed.replace("--device hip", "--device cpu")
    ran = subprocess.run(["/bin/sh", "-c", on_cpu], cwd=tmp_path, env=ENVIRON,
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert ran.returncode == 9, ran.stderr
    (folder,) = report.iterdir()
    assert by_solver(folder, OCL) == ["UNPROVEN"] * 3


def test_a_dry_run_as_json(tmp_path: Path) -> None:
    done = sweep("hip", tmp_path, *ONE, "--dry-run", "--json")
    found = json.loads(done.stdout)
    assert (found["children"], found["trials"]) == (3, 9)
    assert found["estimate_seconds"] > 0
    assert len(found["commands"]) == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--solvers", "NoSuchSolver"), "UNKNOWN_SOLVER"),
        (("--solvers", "all", "--profile", "int"), "USAGE"),
        (("--solvers", "all", "--case", "op01"), "NOTHING_TO_RUN"),
        (("--solvers", "all", "--dry-run", "--device", "nonsense"), "UNKNOWN_DEVICE"),
    ],
)
def test_bad_wishes_are_refused(words: tuple[str, ...], code: str, tmp_path: Path) -> None:
    argv = [*PROGRAM, "--json", "--report", str(tmp_path / "r"), *words]
    done = subprocess.run(
        argv, cwd=ROOT, env=ENVIRON, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, code)
    assert not (tmp_path / "r").exists()
