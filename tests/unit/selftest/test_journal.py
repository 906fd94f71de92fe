"""The journal survives kills and says what it does not know."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.journal import Entry, Journal, device_of, read_entries
from vega_image.selftest.spawn import fork

ROOT = Path(__file__).resolve().parents[3]
ENTRY = Entry(
    key="3-224-224-7x7-64-112-112-1-3x3-2x2-1x1-0-NCHW-FP32-F", trial="conv0000:fp32:F:int:0",
    case="conv0000", direction="F", dtype="fp32", verdict="MATCH", source="cpu", suite="1",
    device=device_of({"arch": "gfx906", "cu": 60}), error=0.0, bound=0.0,
)  # fmt: skip


def schema() -> dict[str, object]:
    file = resources.files("vega_image.selftest") / "data" / "journal.schema.json"
    value = json.loads(file.read_text())
    assert isinstance(value, dict)
    return value


def test_lines_fit_the_schema_and_come_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.add(ENTRY)
    journal.add(Entry(**{**vars(ENTRY), "error": math.inf}))
    journal.close()
    data = (tmp_path / "j").read_bytes()
    first, second = read_entries(data)
    assert first == ENTRY
    assert second.error is None
    for line in data.splitlines():
        jsonschema.validate(json.loads(line), schema())


def test_a_line_cut_by_a_kill_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(ENTRY.to_line() + ENTRY.to_line()[:50])
    journal = Journal(path)
    journal.add(ENTRY)
    journal.close()
    assert list(read_entries(path.read_bytes())) == [ENTRY, ENTRY]


def test_foreign_lines_are_refused() -> None:
    with pytest.raises(SelftestError, match="line 1"):
        list(read_entries(b'{"schema": "other"}\n'))


def test_a_journal_nobody_can_write_says_so(tmp_path: Path) -> None:
    with pytest.raises(SelftestError, match="cannot write"):
        Journal(tmp_path / "absent" / "j")


def test_a_second_run_appends_and_two_at_once_are_refused(tmp_path: Path) -> None:
    first = Journal(tmp_path / "j")
    first.add(ENTRY)
    with pytest.raises(SelftestError) as caught:
        Journal(tmp_path / "j")
    assert (caught.value.code, caught.value.exit_code) == ("REPORT_BUSY", 2)
    assert "--report" in caught.value.hint
    first.close()
    second = Journal(tmp_path / "j")
    second.add(ENTRY)
    second.close()
    assert list(read_entries((tmp_path / "j").read_bytes())) == [ENTRY, ENTRY]


def test_a_forked_child_has_neither_the_journal_nor_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)

    def body(pipe: int) -> None:
        there = path in {link.resolve() for link in Path("/proc/self/fd").iterdir()}
        os.write(pipe, b"held" if there else b"free")

    child = fork(body)
    try:
        assert child.read(30) == b"free"
    finally:
        child.stop(1)
    with pytest.raises(SelftestError):
        Journal(path)
    journal.close()


def test_a_full_disk_is_exit_5() -> None:
    with pytest.raises(SelftestError) as caught:
        Journal(Path("/dev/full")).add(ENTRY)
    assert (caught.value.code, caught.value.exit_code) == ("JOURNAL", 5)


def test_a_killed_run_leaves_whole_lines_only(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.unit.selftest.test_journal import *\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "while True: journal.add(ENTRY)"
    )
    path = tmp_path / "j"
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT)
    until = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 1 << 20):
        assert time.monotonic() < until
    process.kill()
    process.wait()
    data = path.read_bytes()
    assert data.endswith(b"\n")
    assert set(data.splitlines(keepends=True)) == {ENTRY.to_line()}


@given(st.binary(max_size=200))
def test_reading_anything_gives_entries_or_our_error(data: bytes) -> None:
    try:
        found = list(read_entries(data))
    except SelftestError:
        return
    assert all(isinstance(entry, Entry) for entry in found)
