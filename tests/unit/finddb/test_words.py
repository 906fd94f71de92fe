"""The words on files: what they print, their schemas, bad files and exit codes."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.finddbfiles import CONV1_W, CURRENT, PERF, SLICE
from tests.schemas import hold
from vega_image.cli import _interrupted, _run
from vega_image.finddb.perfdb import COLUMNS

WRW = "miopenConvolutionBwdWeightsAlgo"
GEMM = f"GemmWrwUniversal:2,7375872,{WRW}GEMM"
OCL = f"ConvOclBwdWrW2<1>:1,0,{WRW}Direct"
ASSEMBLY_KEY = "1-161-700-5x20-32-79-341-1024-0x0-2x2-1x1-0-NCHW-FP32-F"
MLIR = f"ConvMlirIgemmWrW:0.5,0,{WRW}ImplicitGEMM"


class Said:
    """Runs words and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def lines(self, *words: object, exit_code: int = 0) -> str:
        """What a person sees on stdout and stderr."""
        assert _run(["finddb", *map(str, words)]) == exit_code
        out, err = self.capsys.readouterr()
        return out + err

    def value(self, word: str, *words: object, exit_code: int = 0) -> Any:
        """What a script reads, held against the exported schema."""
        code = _run(["finddb", word, *map(str, words), "--json"])
        value = json.loads(self.capsys.readouterr().out)
        assert code == exit_code
        if "error" not in value:
            hold(f"finddb-{word}", value)
        return value


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def split_counts(path: Path) -> tuple[Counter[str], Counter[str], int, int]:
    """Directions, C=3, items and records of MLIR only, by plain splitting."""
    directions: Counter[str] = Counter()
    rgb: Counter[str] = Counter()
    items = dead = 0
    for line in path.read_text().splitlines():
        key, _, value = line.partition("=")
        fields = key.partition("-0-N")[0].split("-")
        direction = key.partition("_")[0][-1]
        wide = 3 + ("NCDHW" in key)
        directions[direction] += 1
        rgb[direction] += fields[0 if direction == "F" else wide + 1] == "3"
        names = [item.split(":")[1].split(",")[0] for item in value.split(";")]
        items += len(names)
        dead += all("Mlir" in name for name in names)
    return directions, +rgb, items, dead


def test_stats_of_the_slice_are_those_of_plain_splitting(say: Said) -> None:
    value = say.value("stats", SLICE)
    directions, rgb, items, dead = split_counts(SLICE)
    assert value["by_direction"] == directions
    assert value["c3"] == rgb
    assert (value["records"], value["items"]) == (directions.total(), items)
    assert value["only_unavailable"] == dead
    assert sum(kind["records"] for kind in value["by_kind"]) == value["records"]
    assert sum(value["items_by_kernels"].values()) == items
    assert sum(map(sum, (v.values() for v in value["winners"].values()))) == value["records"]
    assert f"{value['records']} records" in say.lines("stats", SLICE)


def test_a_winner_is_the_fastest_wherever_it_stands(say: Said, tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_text(f"{CONV1_W}={GEMM};{OCL}\n{CONV1_W}x={GEMM}\n")
    value = say.value("stats", path)
    assert value["c3_winners"]["W"] == {"ConvOclBwdWrW2<1>": 1}
    assert (value["records"], value["left_out"], value["only_unavailable"]) == (1, 1, 0)
    assert "1 lines are no records" in say.lines("stats", path)


def test_query_finds_by_network_shape_and_key(say: Said) -> None:
    by_key = say.value("query", SLICE, CONV1_W)
    assert [one["key"] for one in by_key["records"]] == [CONV1_W]
    assert by_key["records"][0]["x"] == [3, 224, 224]
    assert by_key["records"][0]["y"] == [64, 112, 112]
    for words in (
        ("resnet50",),
        ("ResNet-50",),
        ("3x224x224", "k=64", "filter=7x7", "stride=2"),
    ):
        found = say.value("query", "--db", SLICE, *words, "--direction", "W", "--dtype", "fp32")
        keys = {one["key"] for one in found["records"]}
        assert CONV1_W in keys
        assert all("-7x7-" in key and key.endswith("FP32-W") for key in keys)
    one = say.value("query", SLICE, "resnet50_n1", "--direction", "F")
    assert {record["batch"] for record in one["records"]} == {1}
    rgb = say.value("query", SLICE, "--first-layer-rgb", "--limit", 1)
    assert rgb["matches"] == sum(split_counts(SLICE)[1].values())
    assert len(rgb["records"]) == 1
    assert all(one["x"][0] == 3 for one in rgb["records"])
    assert "not shown" in say.lines("query", SLICE, "--first-layer-rgb", "--limit", 1)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("resnet5O",), "UNKNOWN_NAME"),
        (("zz=1",), "UNKNOWN_NAME"),
        ((), "NO_QUERY"),
        (("3-9-9-1x1-W",), "BAD_KEY"),
        ((CONV1_W[:-1] + "X",), "BAD_KEY"),
        (("k=many",), "BAD_SETTING"),
        (("k=-1",), "BAD_SETTING"),
        (("resnet50", "vgg16"), "MANY_NETWORKS"),
        (("--dtype", "FP33"), "UNKNOWN_DTYPE"),
    ],
)
def test_a_query_that_means_nothing_is_refused(
    say: Said, words: tuple[str, ...], code: str
) -> None:
    assert say.value("query", SLICE, *words, exit_code=2)["error"]["code"] == code


def test_a_broken_key_is_told_where_it_breaks(say: Said) -> None:
    error = say.value("query", SLICE, CONV1_W[:-1] + "X", exit_code=2)["error"]
    assert "column 52: expected the direction" in error["message"]


def test_explain_says_when_no_convolution_has_the_key(say: Said) -> None:
    assert say.value("explain", SLICE, CONV1_W)["impossible"] is None
    for key, why in (
        (CONV1_W.replace("112-112", "112-110"), "the output is 112x110, but 112x112 follows"),
        (f"{CONV1_W}_g2", "3 and 64 channels do not divide into 2 groups"),
    ):
        assert say.value("explain", SLICE, key)["impossible"].startswith(why)
        assert why in say.lines("explain", SLICE, key)


def test_an_assembly_solver_is_not_called_usable_in_a_build_without_them(say: Said) -> None:
    for word in ("query", "explain"):
        said = say.lines(word, SLICE, ASSEMBLY_KEY)
        row = next(row for row in said.splitlines() if "  ConvAsm" in row)
        assert "not in Debian's build" in row


def test_a_file_that_is_no_find_db_says_nothing_of_misses(say: Said, tmp_path: Path) -> None:
    gone = tmp_path / "gone.jsonl"
    words = ("curate", SLICE, "--evidence", gone)
    assert say.value(*words, exit_code=2)["error"]["message"] == f"there is no file {gone}"
    error = say.value("stats", gone, exit_code=2)["error"]
    assert "every problem is then a miss" in error["message"]
    assert "docs/finddb.md" in error["hint"]


def test_a_usage_error_names_the_help_of_its_word(say: Said) -> None:
    assert say.value("stats", exit_code=2)["error"]["hint"] == "vega-image finddb stats --help"


def test_an_interrupted_word_does_not_claim_to_go_on() -> None:
    assert _interrupted(["finddb", "audit", "x"]) == "interrupted; the next run begins anew"
    assert _interrupted(["build", "x"]) == "interrupted; the next run goes on from here"


@pytest.mark.parametrize("word", ["curate", "merge"])
def test_what_cannot_be_written_is_no_bug(say: Said, word: str) -> None:
    words = (SLICE, SLICE) if word == "merge" else (SLICE,)
    error = say.value(word, *words, "-o", "/proc/none", exit_code=5)["error"]
    assert error["code"] == "CANNOT_WRITE"


def test_explain_says_what_each_mode_does(say: Said, tmp_path: Path) -> None:
    system = tmp_path / "system"
    system.write_text(f"{CONV1_W}={GEMM};{MLIR};{OCL.replace(',0,', ',9999999,')}\n")
    value = say.value("explain", CONV1_W, "--db", system)
    modes = {one["mode"].split()[0]: one for one in value["modes"]}
    assert modes["NORMAL"]["how"] == "race"
    assert "system's db is not asked" in modes["NORMAL"]["why"]
    for mode in ("FAST", "HYBRID", "DYNAMIC_HYBRID", "TRUST_VERIFY", "immediate"):
        assert modes[mode]["solver"] == "ConvOclBwdWrW2<1>"
        assert "ConvMlirIgemmWrW" in modes[mode]["why"]
    assert "GemmFwdRest" not in value["candidates"]
    assert "GemmWrwUniversal" in value["candidates"]


def test_explain_says_that_a_users_record_hides_the_systems(say: Said, tmp_path: Path) -> None:
    system, user = tmp_path / "system", tmp_path / "user"
    system.write_text(f"{CONV1_W}={GEMM}\n")
    user.write_text(f"{CONV1_W}={MLIR}\n")
    value = say.value("explain", system, CONV1_W, "--user-db", user)
    assert (value["record"], value["hidden_system_record"]) == ("user", True)
    modes = {one["mode"].split()[0]: one["how"] for one in value["modes"]}
    assert modes["FAST"] == modes["immediate"] == "heuristic"
    assert modes["DYNAMIC_HYBRID"] == "race"
    other = say.value("explain", system, CONV1_W.replace("-32-", "-31-"))
    assert other["record"] is None
    assert "no db has the key" in say.lines("explain", system, CONV1_W.replace("-32-", "-31-"))


def test_lint_exits_2_on_errors_and_0_without(say: Said, tmp_path: Path) -> None:
    good, bad, warned = (tmp_path / name for name in ("good", "bad", "warned"))
    good.write_text(f"{CONV1_W}={GEMM}\n")
    bad.write_text(f"{CONV1_W}={GEMM};{MLIR}\n")
    warned.write_text(f"{CONV1_W}={GEMM}")
    assert say.value("lint", good)["findings"] == []
    found = say.value("lint", bad, exit_code=2)["findings"]
    assert [(one["code"], one["severity"], one["line"]) for one in found] == [
        ("COMPILED_OUT_SOLVER", "error", 1)
    ]
    assert f"{bad}:1:{len(CONV1_W) + len(GEMM) + 3}: error" in say.lines(
        "lint", bad, exit_code=2
    )
    assert say.value("lint", warned)["warnings"] == 1
    hidden = say.value("lint", bad, "--system-db", good, exit_code=2)
    assert hidden["counts"]["USER_RECORD"] == 1


def test_lint_limits_what_it_shows_and_says_so(say: Said) -> None:
    some = say.value("lint", SLICE, "--limit", 2, exit_code=2)
    every = say.value("lint", SLICE, "--limit", 0, exit_code=2)
    assert some["counts"] == every["counts"] == Counter(f["code"] for f in every["findings"])
    assert some["omitted"] == len(every["findings"]) - len(some["findings"]) > 0
    assert every["omitted"] == 0


def test_plan_begins_with_colour_weight_gradients(say: Said, tmp_path: Path) -> None:
    out = tmp_path / "plan.jsonl"
    value = say.value("plan", SLICE, "--limit", 0, "-o", out)
    reasons = [one["reason"] for one in value["order"]]
    order = ["C=3 weight gradient", "layer of a network", "by cost"]
    assert reasons == sorted(reasons, key=order.index)
    assert set(reasons) == set(order)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows == value["order"]
    first = [one for one in rows if one["reason"] == order[0]]
    assert all("-W" in one["key"] for one in first)
    assert not any("Mlir" in one["solver"] for one in rows)
    dead = [one for one in rows if not one["recorded"]]
    assert len(dead) == split_counts(SLICE)[3]
    less = say.value("plan", SLICE, "--budget", f"{value['seconds'] / 2}s")
    assert 0 < less["planned"] < value["trials"] == len(rows)
    assert less["planned_seconds"] <= value["seconds"] / 2
    assert (
        say.value("plan", SLICE, "--budget", "soon", exit_code=2)["error"]["code"]
        == "BAD_BUDGET"
    )


def test_diff_says_what_became_of_records(say: Said, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    other = CONV1_W.replace("-32-", "-31-")
    a.write_text(f"{CONV1_W}={OCL};{GEMM};{MLIR}\n{other}={GEMM}\n")
    b.write_text(f"{CONV1_W}={GEMM.replace(':2,', ':3,')}\n{other}x\n")
    value = say.value("diff", a, b)
    assert value["lost"] == [other]
    assert value["solvers_removed"] == {"ConvMlirIgemmWrW": 1, "ConvOclBwdWrW2<1>": 1}
    (change,) = value["changed"]
    assert change["measured_anew"] == ["GemmWrwUniversal"]
    assert (change["fastest_before"], change["fastest_after"]) == (
        "ConvMlirIgemmWrW", "GemmWrwUniversal")  # fmt: skip
    assert "ConvOclBwdWrW2<1> removed" in say.lines("diff", a, b)
    assert say.value("diff", a, a)["same"] == 2


def test_merge_refuses_conflicts_unless_the_stricter_wins(say: Said, tmp_path: Path) -> None:
    a, b, out = tmp_path / "a", tmp_path / "b", tmp_path / "out"
    other = CONV1_W.replace("-32-", "-31-")
    a.write_text(f"{CONV1_W}={OCL};{GEMM}\n")
    b.write_text(f"{CONV1_W}={GEMM.replace(':2,7', ':3,9')}\n{other}={OCL}\n")
    error = say.value("merge", a, b, "-o", out, exit_code=2)["error"]
    assert error["code"] == "MERGE_CONFLICT"
    assert "ConvOclBwdWrW2<1>" in error["message"]
    assert not out.exists()
    assert say.value("merge", a, b, "-o", out, "--stricter-wins")["conflicts"] == 1
    stricter = f"{CONV1_W}={GEMM.replace(':2,7', ':3,9')}\n"
    assert out.read_text() == f"{other}={OCL}\n{stricter}"
    b.write_text(f"{CONV1_W}={GEMM}\n{CONV1_W}={GEMM}\n")
    assert say.value("merge", a, b, "-o", out, exit_code=2)["error"]["code"] == "MERGE_FLAWED"
    assert say.value("merge", a, "-o", tmp_path, exit_code=2)["error"]["code"] == "USAGE"
    gone = tmp_path / "none" / "out"
    assert (
        say.value("merge", a, "-o", gone, exit_code=2)["error"]["code"] == "OUTPUT_IN_NO_FOLDER"
    )


def test_a_perf_db_is_counted_as_text_and_as_sqlite(say: Said, tmp_path: Path) -> None:
    text = say.value("perfdb", PERF)
    lines = PERF.read_text().splitlines()
    assert (text["configs"], text["form"]) == (len(lines), "text")
    assert text["items"] == sum(line.count(";") + 1 for line in lines)
    path = tmp_path / "gfx906_60.db"
    make_sqlite(path, lines)
    before = path.read_bytes()
    base = say.value("perfdb", path)
    assert base["form"] == "sqlite"
    assert {key: base[key] for key in ("configs", "items", "solvers", "by_direction")} == {
        key: text[key] for key in ("configs", "items", "solvers", "by_direction")
    }
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def make_sqlite(path: Path, lines: list[str]) -> None:
    base = sqlite3.connect(path)
    columns = ", ".join(f"{name} TEXT" for name in COLUMNS)
    base.execute(f"CREATE TABLE config (id INTEGER PRIMARY KEY, {columns})")
    base.execute("CREATE TABLE perf_db (id INTEGER PRIMARY KEY, solver, config, params)")
    for number, line in enumerate(lines):
        key, _, value = line.partition("=")
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        base.execute(f"INSERT INTO config VALUES ({marks})", (number, *key.split("x")))
        for item in value.split(";"):
            solver, _, params = item.partition(":")
            row = (solver, number, params)
            base.execute("INSERT INTO perf_db (solver, config, params) VALUES (?, ?, ?)", row)
    base.commit()
    base.close()


def test_a_perf_db_with_bad_lines_exits_2(say: Said, tmp_path: Path) -> None:
    line = PERF.read_text().splitlines()[0]
    path = tmp_path / "db.txt"
    path.write_text(f"{line}\n{line}\n{line[1:]}x\n{line.partition('=')[0]}=junk\n")
    value = say.value("perfdb", path, exit_code=2)
    assert [one["line"] for one in value["findings"]] == [2, 3, 4]
    path.write_bytes(b"SQLite format 3\0 and then nothing of the kind")
    assert say.value("perfdb", path, exit_code=2)["error"]["code"] == "PERFDB_FOREIGN"


@pytest.mark.parametrize("word", ["stats", "lint", "plan"])
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("absent", "FINDDB_ABSENT"),
        ("packed", "FINDDB_PACKED"),
        ("binary", "FINDDB_BINARY"),
        ("fifo", "FINDDB_NOT_A_FILE"),
        ("perf", "FINDDB_IS_PERFDB"),
        ("sqlite", "FINDDB_SQLITE"),
        ("long", "FINDDB_LINE_TOO_LONG"),
        ("huge", "FINDDB_TOO_LARGE"),
    ],
)
def test_a_file_that_is_none_is_refused(
    say: Said, tmp_path: Path, word: str, kind: str, code: str
) -> None:
    path = tmp_path / kind
    if kind == "packed":
        path.write_bytes(gzip.compress(SLICE.read_bytes()))
    elif kind == "binary":
        path.write_bytes(b"\x7fELF" + bytes(range(256)) * 9)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "perf":
        path.write_bytes(PERF.read_bytes())
    elif kind == "sqlite":
        path.write_bytes(b"SQLite format 3\0")
    elif kind == "long":
        path.write_bytes(b"a" * (1 << 21))
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(10**9)
    assert say.value(word, path, exit_code=2)["error"]["code"] == code


def test_a_folder_is_refused(say: Said, tmp_path: Path) -> None:
    assert say.value("lint", tmp_path, exit_code=2)["error"]["code"] == "USAGE"
    assert say.value("query", "--db", CURRENT, "c=3")["matches"] >= 0


def test_an_empty_file_has_no_records_and_is_an_error_of_lint(
    say: Said, tmp_path: Path
) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert say.value("stats", path)["records"] == 0
    assert say.value("lint", path, exit_code=2)["counts"] == {"EMPTY_FILE": 1}
