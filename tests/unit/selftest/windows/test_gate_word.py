"""The word `gate` over time: a record is written, a run ends, something changes, a crash."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.windowsmachine import DATA, GATHERED, NOW, lay, record
from vega_image.selftest import datafiles
from vega_image.selftest.arguments import parser
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.identity import suite_version
from vega_image.selftest.main import main
from vega_image.selftest.windows.card import card_gathered
from vega_image.selftest.windows.folder import read_folder
from vega_image.selftest.windows.gatewords import parse_gate
from vega_image.selftest.windows.keying import key_of
from vega_image.selftest.windows.word import run_gate

OK = {"required": True, "accepted": True, "verdict": "MATCH"}


class Desk:
    """One machine, its record, a clock that the test moves, and the word's answers."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
        self.machine = lay(name, folder)
        self.facts, self.state = self.machine.facts, self.machine.state
        self.report_file = folder / "report.json"
        self.capsys = capsys
        self.now = NOW

    def ask(self, *words: str) -> dict[str, Any]:
        """Return the verdict, whose exit code is what the word returned."""
        given = [
            "gate",
            "--facts",
            str(self.facts),
            "--state",
            str(self.state),
            "--json",
            *words,
        ]
        code = run_gate(parse_gate(parser().parse_args(given)), lambda: self.now)
        value: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        jsonschema.Draft202012Validator(json.loads(datafiles.raw("gate.schema.json"))).validate(
            value
        )
        assert value["exit"] == code
        return value

    def said(self, *words: str) -> tuple[str, str, int]:
        """Return state, code and exit."""
        value = self.ask(*words)
        return value["state"], value["code"], value["exit"]

    def run(self, **changes: Any) -> tuple[str, str, int]:
        """End a run with a report like the suite's; return what the gate then says."""
        self.now += 60
        self.report_file.write_text(json.dumps(self.report(**changes)))
        return self.said("--finish", "--report", str(self.report_file))

    def report(self, **changes: Any) -> dict[str, Any]:
        """Return a report of the card of the good machine."""
        key = key_of(read_folder(DATA / "good"), suite=suite_version()).to_json()
        names = ("pci", "subsystem", "vbios", "unique_id", "driver")
        started = datetime.fromtimestamp(self.now - 30, timezone.utc)  # noqa: UP017 - as there
        report = {
            "schema": "vega-selftest-report/1",
            "verdict": "pass",
            "exit_code": 0,
            "level": "r2",
            "source": "device",
            "suite": suite_version(),
            "device": {"name": "hip", **{name: key[name] for name in names}},
            "flags": {},
            "started": started.isoformat(timespec="seconds"),
            "results": [OK],
        }
        return {**report, **changes}

    def edit(self, file: str, old: str, new: str) -> None:
        """Change what is gathered."""
        path = self.facts / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys, "unproven")


def test_pending_running_pass(desk: Desk) -> None:
    assert desk.said() == ("pending", "UNPROVEN", 9)
    assert desk.said("--begin") == ("running", "RUNNING", 9)
    assert desk.said() == ("running", "RUNNING", 9)
    assert desk.run() == ("pass", "PROVEN", 0)
    assert desk.said() == ("pass", "PROVEN", 0)
    assert desk.said("--level", "r3") == ("pending", "UNPROVEN", 9)


@pytest.mark.parametrize(
    ("code", "verdict", "said"),
    [
        (8, "fail", ("fail", "WRONG_NUMBERS", 8)),
        (9, "unproven", ("fail", "UNPROVEN", 9)),
        (7, "fail", ("fail", "CARD_LOST", 7)),
    ],
)
def test_a_run_that_proved_nothing_ends_in_fail(
    desk: Desk, code: int, verdict: str, said: tuple[str, str, int]
) -> None:
    desk.ask("--begin")
    assert desk.run(exit_code=code, verdict=verdict, results=[]) == said
    assert desk.said() == said


def test_wrong_once_stays_wrong_until_somebody_says_again(desk: Desk) -> None:
    desk.ask("--begin")
    desk.run(exit_code=8, verdict="fail")
    assert desk.said("--begin") == ("fail", "WRONG_NUMBERS", 8)
    assert desk.said() == ("fail", "WRONG_NUMBERS", 8)
    assert desk.said("--begin", "--again") == ("running", "RUNNING", 9)


def test_unproven_may_be_tried_again(desk: Desk) -> None:
    desk.ask("--begin")
    desk.run(exit_code=9, verdict="unproven")
    assert desk.said("--begin") == ("running", "RUNNING", 9)
    assert desk.run() == ("pass", "PROVEN", 0)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("driver.json", "31.0.21925.1001", "31.0.21924.61"),
        ("dlls.json", "c3c3c3c3", "c3c3c3c4"),
        ("os.json", "26100.4061", "26100.4062"),
        ("image.json", "d4d4d4d4", "d4d4d4d5"),
        ("image.json", "e5e5e5e5", "e5e5e5e6"),
        ("vbios.json", "D3600200", "D3600201"),
    ],
)
def test_whatever_changes_takes_a_pass_back(desk: Desk, file: str, old: str, new: str) -> None:
    desk.ask("--begin")
    desk.run()
    desk.edit(file, old, new)
    assert desk.said() == ("pending", "STALE", 9)
    assert desk.said("--begin") == ("running", "RUNNING", 9)


def test_another_card_takes_a_pass_back(desk: Desk) -> None:
    desk.ask("--begin")
    desk.run()
    for file in ("pnp.json", "driver.json", "vbios.json"):
        desk.edit(file, "SUBSYS_081E1002", "SUBSYS_E4101DA2")
    assert desk.said() == ("pending", "STALE", 9)


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "cpu"},
        {"source": "replay"},
        {"level": "r1"},
        {"suite": "0+older"},
        {"schema": "other"},
        {"verdict": "fail"},
        {"exit_code": 130},
        {"exit_code": False},
        {"exit_code": "0"},
        {"results": []},
        {"results": [OK, {**OK, "accepted": False}]},
        {"results": [{**OK, "required": False}]},
        {"device": {"name": "hip"}},
        {"flags": None},
        {"started": "2026-11-30T23:00:00+00:00"},
        {"started": "2126-11-30T23:00:00+00:00"},
        {"started": "nonsense"},
        {"started": None},
    ],
)
def test_a_report_of_another_run_is_no_pass(desk: Desk, changes: dict[str, Any]) -> None:
    desk.ask("--begin")
    assert desk.run(**changes) == ("fail", "REPORT_UNFIT", 9)
    assert desk.said() == ("fail", "UNPROVEN", 9)


@pytest.mark.parametrize("name", ["pci", "subsystem", "vbios", "driver", "unique_id"])
def test_a_report_of_another_card_is_no_pass(desk: Desk, name: str) -> None:
    desk.ask("--begin")
    device = {**desk.report()["device"], name: "other"}
    assert desk.run(device=device) == ("fail", "REPORT_UNFIT", 9)


@pytest.mark.parametrize("flag", ["planted", "cases"])
def test_a_part_of_the_suite_is_no_proof_of_the_whole(desk: Desk, flag: str) -> None:
    desk.ask("--begin")
    assert desk.run(flags={flag: "x"}) == ("fail", "UNPROVEN", 9)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\xfe", b"{}" * 9])
def test_a_report_that_is_none_is_no_pass(desk: Desk, content: bytes | None) -> None:
    desk.ask("--begin")
    if content is not None:
        desk.report_file.write_bytes(content)
    words = ("--finish", "--report", str(desk.report_file))
    assert desk.said(*words) == ("fail", "REPORT_UNFIT", 9)
    assert desk.said() == ("fail", "UNPROVEN", 9)


def test_a_report_without_a_run_changes_nothing(desk: Desk) -> None:
    assert desk.run() == ("fail", "REPORT_UNFIT", 9)
    assert not desk.state.exists()
    desk.ask("--begin")
    desk.run()
    assert desk.run() == ("fail", "REPORT_UNFIT", 9)
    assert desk.said() == ("pass", "PROVEN", 0)


def test_a_crash_half_way_is_never_a_pass(desk: Desk) -> None:
    desk.ask("--begin")
    desk.edit("os.json", '"57"', '"58"')
    assert desk.said() == ("pending", "STOPPED", 9)
    assert desk.run() == ("pending", "STOPPED", 9)
    assert desk.said() == ("pending", "STOPPED", 9)
    assert desk.said("--begin") == ("running", "RUNNING", 9)


def test_a_run_that_never_ends_is_stopped_by_the_clock(desk: Desk) -> None:
    desk.ask("--begin", "--span", "100")
    desk.now += 101
    assert desk.said() == ("pending", "STOPPED", 9)
    assert desk.run() == ("pending", "STOPPED", 9)


def test_a_run_does_not_begin_beside_another(desk: Desk) -> None:
    desk.ask("--begin")
    before = desk.state.read_text()
    desk.now += 10
    assert desk.said("--begin") == ("running", "RUNNING", 9)
    assert desk.state.read_text() == before


def test_a_driver_that_changes_during_the_run_is_no_pass(desk: Desk) -> None:
    desk.ask("--begin")
    desk.edit("driver.json", "31.0.21925.1001", "31.0.21924.61")
    assert desk.run() == ("pending", "STALE", 9)
    desk.edit("driver.json", "31.0.21924.61", "31.0.21925.1001")
    assert desk.said() == ("pending", "STOPPED", 9)


def test_a_reset_during_the_run_is_no_pass(desk: Desk) -> None:
    desk.ask("--begin")
    desk.edit("events.json", "[]", f"[{int(NOW) + 30}]")
    assert desk.run() == ("pending", "TDR_RESET", 9)
    assert desk.said() == ("fail", "UNPROVEN", 9)


def test_a_card_lost_during_the_run_is_no_pass_when_it_comes_back(desk: Desk) -> None:
    desk.ask("--begin")
    desk.edit("pnp.json", '"problem": 0', '"problem": 43')
    assert desk.run() == ("fail", "CARD_PROBLEM", 7)
    desk.edit("pnp.json", '"problem": 43', '"problem": 0')
    assert desk.said() == ("fail", "UNPROVEN", 9)


@pytest.mark.parametrize("name", ["card-absent", "hip-pal-gap", "unreadable-vbios-value"])
def test_nothing_begins_on_a_machine_that_must_not_compute(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(tmp_path, capsys, name)
    before = desk.state.read_text()
    assert desk.said("--begin") != ("running", "RUNNING", 9)
    assert desk.state.read_text() == before


def test_a_clock_set_back_is_no_pass(desk: Desk) -> None:
    desk.ask("--begin")
    desk.run()
    desk.now = GATHERED
    assert desk.said() == ("pending", "FUTURE_DATED", 9)


def test_old_facts_need_a_word_that_the_verdict_repeats(desk: Desk) -> None:
    desk.ask("--begin")
    desk.run()
    desk.now += 86400
    assert desk.said() == ("pending", "FACTS_OLD", 9)
    assert desk.said("--begin") == ("pending", "FACTS_OLD", 9)
    value = desk.ask("--recorded")
    assert (value["state"], value["recorded"]) == ("pass", True)


@pytest.mark.parametrize(
    "words", [["--finish"], ["--report", "x"], ["--again"], ["--begin", "--report", "x"]]
)
def test_words_that_do_not_go_together(desk: Desk, words: list[str]) -> None:
    with pytest.raises(SelftestError) as caught:
        desk.ask(*words)
    assert (caught.value.code, caught.value.exit_code) == ("USAGE", 2)


def test_a_record_nobody_can_write_is_said(desk: Desk) -> None:
    desk.state = desk.state.parent / "absent" / "state.json"
    with pytest.raises(SelftestError) as caught:
        desk.ask("--begin")
    assert (caught.value.code, caught.value.exit_code) == ("VERDICT_FILE", 5)


def test_the_run_knows_the_card_as_the_gate_does() -> None:
    folder = DATA / "good"
    known = card_gathered(read_folder(folder), "hip", folder=folder, now=NOW)
    key = key_of(read_folder(folder), suite=suite_version()).to_json()
    names = ("pci", "subsystem", "vbios", "unique_id", "driver")
    assert {name: known.identity[name] for name in names} == {name: key[name] for name in names}
    assert (known.source, known.identity["cu"]) == ("device", 60)


@pytest.mark.parametrize(
    ("spec", "late", "code", "exit_code"),
    [("hip:1", 0, "NO_SUCH_CARD", 7), ("cpu", 0, "USAGE", 2), ("hip", 7200, "FACTS_OLD", 9)],
)
def test_the_run_refuses_what_is_not_the_card(
    spec: str, late: int, code: str, exit_code: int
) -> None:
    folder = DATA / "good"
    with pytest.raises(SelftestError) as caught:
        card_gathered(read_folder(folder), spec, folder=folder, now=NOW + late)
    assert (caught.value.code, caught.value.exit_code) == (code, exit_code)


def test_a_record_of_the_case_files_is_one_of_ours() -> None:
    assert json.loads(record({"exit": 0}))["state"] == "pass"


@pytest.mark.parametrize("act", [["--begin"], ["--finish", "--report", "report.json"]])
def test_no_run_begins_or_ends_on_recorded_facts(tmp_path: Path, act: list[str]) -> None:
    words = ["gate", "--facts", str(tmp_path), "--state", str(tmp_path / "s.json"), *act]
    with pytest.raises(SelftestError) as caught:
        parse_gate(parser().parse_args([*words, "--recorded"]))
    assert (caught.value.exit_code, caught.value.code) == (2, "USAGE")


def test_a_folder_of_facts_makes_no_card_outside_windows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--level", "r1", "--device", "hip", "--facts", str(tmp_path), "--json"]
    assert main(words) == 2
    value = json.loads(capsys.readouterr().out)
    assert (value["error"]["code"], value["error"]["at"]) == ("USAGE", "--facts")
