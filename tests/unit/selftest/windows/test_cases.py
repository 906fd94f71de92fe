"""Every folder of tests/data/windows gets the answer that its case.json wants."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.windowsmachine import CASES, DATA, NOW, good_key, lay
from vega_image.selftest import datafiles
from vega_image.selftest.files import read_verdict
from vega_image.selftest.gate import State
from vega_image.selftest.identity import suite_version
from vega_image.selftest.windows.cause import CODES
from vega_image.selftest.windows.folder import FIELDS, ITEMS, read_folder
from vega_image.selftest.windows.verdict import Question, Verdict, decide

ELSEWHERE = {"REPORT_UNFIT"}  # said by --finish only: test_gate_word.py
SCHEMA = json.loads(datafiles.raw("gate.schema.json"))
FACTS = json.loads(datafiles.raw("windows-facts.schema.json"))


def verdict_of(name: str, folder: Path) -> Verdict:
    machine = lay(name, folder)
    question = Question(suite_version(), NOW)
    return decide(read_folder(machine.facts), read_verdict(machine.state), question)


@pytest.mark.parametrize("name", CASES)
def test_a_machine_gets_the_answer_of_its_case(name: str, tmp_path: Path) -> None:
    case = json.loads((DATA / name / "case.json").read_text())
    verdict = verdict_of(name, tmp_path)
    value = verdict.to_json()
    assert {word: value[word] for word in case["expect"]} == case["expect"], verdict
    for word in case["mentions"]:
        assert word in f"{verdict.detail} {verdict.hint}"
    assert verdict.code in CODES
    assert bool(verdict.hint) == (verdict.state is not State.PASS)
    jsonschema.Draft202012Validator(SCHEMA).validate(value)


def test_every_code_has_a_case() -> None:
    cases = [json.loads((DATA / name / "case.json").read_text()) for name in CASES]
    assert {case["expect"]["code"] for case in cases} == set(CODES) - ELSEWHERE
    assert set(SCHEMA["properties"]["code"]["enum"]) == set(CODES)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("igpu-first", "1002:164e is present too"),
        ("igpu-first", "number 1"),
        ("hip-sdk-note", "HIP SDK 6.4.2"),
        ("sramecc-on", "gfx906:sramecc+:xnack-, 60 compute units"),
        ("tdr-changed", "TdrDelay is 60"),
        ("tdr-reset-before", "event 4101"),
        ("second-card-disabled", "is disabled"),
    ],
)
def test_what_decides_nothing_is_a_note(name: str, note: str, tmp_path: Path) -> None:
    assert any(note in one for one in verdict_of(name, tmp_path).notes)


@pytest.mark.parametrize("name", ["igpu-first", "mi50-first"])
def test_the_card_keeps_hips_number(name: str, tmp_path: Path) -> None:
    assert verdict_of(name, tmp_path).device == "hip:1"


def test_the_key_is_written_as_on_linux() -> None:
    key = good_key().to_json()
    assert (key["pci"], key["subsystem"]) == ("1002:66af", "1002:081e")
    assert key["driver"].startswith("31.0.21925.1001 dlls sha256:")
    assert (key["kernel"], key["vbios"]) == ("10.0.26100.4061", "113-D3600200-106")


@pytest.mark.parametrize("file", sorted(FIELDS))
def test_the_good_machine_fits_the_published_schema_of_facts(file: str) -> None:
    schema = {"$ref": f"#/$defs/{file}", "$defs": FACTS["$defs"]}
    validator = jsonschema.Draft202012Validator(schema)
    value = json.loads((DATA / "good" / file).read_bytes())
    validator.validate(value)
    assert not validator.is_valid({**value, "surprise": 1})
    shape = FACTS["$defs"][file]
    assert (
        set(shape["required"]) == set(shape["properties"]) == {"schema", "set", *FIELDS[file]}
    )
    for name in FIELDS[file]:
        items = shape["properties"][name].get("items", {}).get("properties")
        if items is not None:
            assert set(items) == set(ITEMS[name])


@pytest.mark.parametrize("name", ["unreadable-pnp", "unreadable-image", "mixed-sets"])
def test_a_machine_nobody_can_read_is_never_a_pass(name: str, tmp_path: Path) -> None:
    assert verdict_of(name, tmp_path).state is not State.PASS


@pytest.mark.parametrize("file", sorted([*FIELDS, "hipinfo.txt"]))
def test_a_missing_file_is_unreadable_and_named(file: str, tmp_path: Path) -> None:
    machine = lay("good", tmp_path)
    (machine.facts / file).unlink()
    text = read_verdict(machine.state)
    verdict = decide(read_folder(machine.facts), text, Question(suite_version(), NOW))
    assert (verdict.state, verdict.code, verdict.exit_code) == (
        State.PENDING, "FACTS_UNREADABLE", 9,
    )  # fmt: skip
    assert file in verdict.detail


def test_no_folder_at_all(tmp_path: Path) -> None:
    verdict = decide(read_folder(tmp_path / "none"), None, Question(suite_version(), NOW))
    assert (verdict.code, verdict.exit_code) == ("FACTS_UNREADABLE", 9)


def test_the_cheapest_true_cause_is_said_first(tmp_path: Path) -> None:
    """All faults at once, then each one mended: the order in which a person mends them."""
    order = ["card-absent", "problem-43", "driver-rdna", "vc-runtime-missing",
             "dll-shadowed-system32", "hip-pal-gap", "wrong-numbers"]  # fmt: skip
    codes = []
    for first in range(len(order)):
        machine = lay("good", tmp_path / str(first))
        for name in reversed(order[first:]):
            for path in (DATA / name).iterdir():
                (machine.facts / path.name).write_bytes(path.read_bytes())
        wrong = lay("wrong-numbers", tmp_path / f"w{first}").state.read_text()
        found = decide(read_folder(machine.facts), wrong, Question(suite_version(), NOW))
        codes.append(found.code)
    assert codes == ["CARD_ABSENT", "CARD_PROBLEM", "DRIVER_BRANCH", "VC_RUNTIME_MISSING",
                     "DLL_SHADOWED", "HIP_PAL_GAP", "WRONG_NUMBERS"]  # fmt: skip
