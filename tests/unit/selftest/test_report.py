"""Reports: the verdict in words first, every number where a machine finds it."""

from __future__ import annotations

import json
import math
import re
import string
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import selftestfakes as fakes
from vega_image.selftest import report as reports
from vega_image.selftest.case import Trial
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.files import write_all
from vega_image.selftest.out import encode_json
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.report import Report, Run
from vega_image.selftest.report_html import page
from vega_image.selftest.report_junit import junit
from vega_image.selftest.result import Result, counts, exit_code
from vega_image.selftest.texts import load_texts
from vega_image.selftest.verdict import Verdict

TEXTS = load_texts()
NASTY = "</td><script>alert(1)</script> & \x00\x1b\ud800 \uffff 'x' \"y\""


def result(word: str, dtype: str = "fp32", *, allowed: bool = False, **rest: object) -> Result:
    case = fakes.case(f"case-{word}", allowed=allowed)
    trial = Trial(case.id, "fwd", dtype, "int")
    values = {"error": 1.0, "bound": 4.0, **rest}
    return Result(case, trial, TrialRecord(trial.key, Verdict(word), **values))  # type: ignore[arg-type]


def report(*results: Result, source: str = "cpu", **flags: str) -> Report:
    run = Run(
        "r2", "cpu", source, {"arch": "x"}, "1+ab", "2026-12-01T00:00:00", 1.5, flags=flags
    )
    return Report(run, results)


@pytest.mark.parametrize(
    ("results", "code", "actions"),
    [
        ([result("MATCH")], 0, ()),
        ([result("MATCH"), result("DEGRADED", "fp16")], 0, ("MONITOR",)),
        ([result("MATCH"), result("DEGRADED")], 8, ("ISOLATE",)),
        ([result("MISMATCH"), result("UNPROVEN")], 8, ("ISOLATE", "TRIAGE")),
        ([result("CRASHED")], 8, ("RESET",)),
        ([result("TIMED_OUT"), result("NOT_FINITE")], 8, ("ISOLATE", "RESET")),
        ([result("MATCH"), result("UNSUPPORTED")], 9, ("CONFIG",)),
        ([result("MATCH"), result("UNSUPPORTED", allowed=True)], 0, ()),
        ([result("UNSUPPORTED", allowed=True)], 9, ()),
        ([result("MATCH"), result("SUBSTITUTED")], 9, ("CONFIG",)),
        ([result("MATCH"), result("INVALID")], 9, ("TRIAGE",)),
        ([result("MATCH"), result("UPSTREAM_OK")], 0, ()),
        ([result("UPSTREAM_OK")], 9, ()),
        ([], 9, ()),
    ],
)
def test_results_add_up(results: list[Result], code: int, actions: tuple[str, ...]) -> None:
    made = report(*results)
    assert (exit_code(results), made.exit_code) == (code, code)
    assert made.actions == actions
    assert sum(counts(results).values()) == len(results)


def schema(name: str) -> dict[str, object]:
    file = resources.files("vega_image.selftest") / "data" / f"{name}.schema.json"
    value = json.loads(file.read_text())
    assert isinstance(value, dict)
    return value


EVERY = [result(word.value, detail=NASTY) for word in Verdict]


def test_json_fits_its_schemas_whatever_the_numbers() -> None:
    made = report(*EVERY, result("MISMATCH", error=math.inf), result("MATCH", error=math.nan))
    whole = json.loads(encode_json(reports.to_json(made, TEXTS)))
    jsonschema.validate(whole, schema("report"))
    summary = json.loads(encode_json(reports.summary_json(made, "folder")))
    jsonschema.validate(summary, schema("summary"))
    assert summary["exit_code"] == 8
    assert len(summary["failures"]) == len(Verdict) - 1


def test_junit_tells_wrong_from_broken_from_unproven() -> None:
    root = ET.fromstring(junit(report(*EVERY)))
    by_case = {
        item.get("classname"): [child.tag for child in item] for item in root.iter("testcase")
    }
    assert by_case["case-MATCH"] == []
    assert by_case["case-MISMATCH"] == ["failure"]
    assert by_case["case-CRASHED"] == ["error"]
    assert by_case["case-UNPROVEN"] == ["skipped"]
    suite = root.find("testsuite")
    assert suite is not None
    assert suite.get("tests") == str(len(EVERY))


@given(st.text(max_size=60))
def test_junit_is_xml_whatever_a_device_says(text: str) -> None:
    ET.fromstring(junit(report(result("MISMATCH", detail=text))))


def test_the_page_says_the_verdict_first_and_needs_nothing_else() -> None:
    made = page(report(*EVERY, planted="bit-flip"), TEXTS).decode("utf-8", "surrogatepass")
    body = re.sub(r"<style>.*?</style>", "", made, flags=re.DOTALL)
    assert "<script" not in body
    assert not re.search(r"(src|href)=|url\(|https?:|@import", made)
    order = [body.index(TEXTS.say(key)) for key in
             ("verdict.fail", "source.cpu", "heading.todo", "heading.failures")]  # fmt: skip
    assert order == sorted(order)
    assert "bit-flip" in body
    assert "MISMATCH" in body


@pytest.mark.parametrize("source", ["cpu", "replay", "device"])
def test_where_numbers_come_from_is_always_said(source: str) -> None:
    made = report(result("MATCH"), source=source)
    assert made.labels(TEXTS)[0] == TEXTS.say(f"source.{source}")
    assert TEXTS.say(f"source.{source}") in page(made, TEXTS).decode()


def test_every_text_that_code_asks_for_is_in_the_table() -> None:
    folder = resources.files("vega_image.selftest")
    used = set()
    for name in ("report.py", "report_html.py", "session.py", "out.py"):
        used |= set(re.findall(r'say\(\s*"([a-z.A-Z]+)"', (folder / name).read_text()))
    assert used
    assert used <= set(TEXTS.table)
    for text in TEXTS.table.values():
        assert all(field != "" for _, field, _, _ in string.Formatter().parse(text))


def test_a_language_that_is_not_there_is_an_error() -> None:
    for name in ("xx", "../en", "english"):
        with pytest.raises(SelftestError, match="no texts"):
            load_texts(name)


def test_no_partial_report_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "report.xml").mkdir()
    (tmp_path / "report.xml" / "x").touch()
    with pytest.raises(SelftestError, match="cannot write"):
        write_all(tmp_path, {"report.json": b"1", "report.xml": b"2", "report.html": b"3"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.xml"]
