"""Reports: the verdict in words first, every number where a machine finds it."""

from __future__ import annotations

import json
import math
import re
import string
import subprocess
import sys
import zipfile
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
from vega_image.selftest.pack import pack
from vega_image.selftest.record import TrialRecord
from vega_image.selftest.report import Report, Run
from vega_image.selftest.report_html import page
from vega_image.selftest.report_junit import junit
from vega_image.selftest.report_text import block
from vega_image.selftest.result import Result, counts, exit_code
from vega_image.selftest.texts import Texts, load_texts
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


def test_where_nothing_was_computed_no_numbers_are_called_wrong() -> None:
    silent = report(result("CRASHED"), result("TIMED_OUT"), result("UNPROVEN"))
    assert silent.words(TEXTS).startswith("Failed: no answers")
    mixed = report(result("CRASHED"), result("MISMATCH"))
    assert mixed.words(TEXTS).startswith("Failed: wrong numbers")


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
    for name in ("report.py", "report_html.py", "report_text.py", "session.py", "out.py"):
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


def test_a_planted_fault_is_nobodys_reason_to_swap_a_card() -> None:
    made = report(result("MISMATCH"), planted="bit-flip")
    assert made.actions == ()
    assert made.todo(TEXTS) == (TEXTS.say("action.planted"),)
    assert TEXTS.say("mark.planted") in made.headline(TEXTS)
    assert report(result("MISMATCH"), source="device").actions == ("ISOLATE",)


@pytest.mark.parametrize("source", ["cpu", "replay"])
def test_the_verdicts_own_line_says_that_no_card_gave_it(source: str) -> None:
    made = report(result("MATCH"), source=source)
    mark = TEXTS.say(f"mark.{source}")
    assert mark in made.headline(TEXTS)
    assert mark in block(made, TEXTS, "page")[0].text
    assert f"[{mark}]</h1>" in page(made, TEXTS).decode()
    assert "[" not in report(result("MATCH"), source="device").words(TEXTS)


def test_a_short_time_asks_for_more_time_and_a_cpu_for_a_card() -> None:
    cut = report(result("MATCH"), result("UNPROVEN"), budget="6")
    assert (cut.exit_code, cut.actions) == (9, ("RERUN",))
    assert report(result("UNPROVEN")).actions == ("TRIAGE",)
    good = report(result("MATCH"))
    assert good.todo(TEXTS) == (TEXTS.say("action.reference"),)
    assert report(result("MATCH"), source="device").todo(TEXTS) == (TEXTS.say("action.none"),)


def test_what_an_oracle_says_of_a_case_is_not_said_twice() -> None:
    made = report(result("MISMATCH", detail="case-MISMATCH is wrong"))
    line = next(item.text for item in block(made, TEXTS, "p") if "MISMATCH case" in item.text)
    assert line.count("case-MISMATCH") == 1


def test_what_must_be_exact_and_is_not_is_above_its_bound() -> None:
    (family,) = reports.families([result("MISMATCH", error=3.0, bound=0.0)])
    assert family.histogram == (0, 0, 0, 0, 0, 0, 1)


def test_chosen_cases_are_not_the_whole_level() -> None:
    whole, part = report(result("MATCH")), report(result("MATCH"), cases="mm")
    assert "everything" in whole.sentence(TEXTS)
    assert "not all of level" in part.sentence(TEXTS)


PSEUDO = {key: f"\u27e6{text}\u27e7" for key, text in TEXTS.table.items()}
FACT = re.compile(r"case-[A-Z_]+|[0-9.\s&;a-z]*[0-9;]")


def test_a_second_language_is_data_only() -> None:
    """Every word of the page that is no fact of the run comes out of the table."""
    made = report(*EVERY, result("DEGRADED", "fp16"), planted="x", cases="y", budget="z")
    text = page(made, Texts("fr", PSEUDO)).decode("utf-8", "surrogatepass")
    assert '<html lang="fr">' in text
    body = text[text.index("<body>") :]
    nodes = re.findall(r">([^<]+)<", re.sub(r"<code.*?</code>", "", body, flags=re.DOTALL))
    left = {re.sub("\u27e6[^\u27e7]*\u27e7", "", node).strip(" :\n") for node in nodes}
    facts = {
        "", "cpu", "r2", "8", "i32", "fp32", "fp16", "op/fake", "a test", "x", "arch",
        "2026-12-01 00:00:00", "[", "]", "[]", "[; ]", *(word.value for word in Verdict),
    }  # fmt: skip
    words = {
        node for node in left if not re.fullmatch(r"case-[A-Z_]+|[0-9.\s&;a-z]*[0-9;]", node)
    }
    assert words <= facts


def test_a_language_with_a_hole_is_refused_before_the_run(tmp_path: Path) -> None:
    pyz = tmp_path / "selftest.pyz"
    pack(pyz)
    words = ["--level", "r1", "--language", "fr", "--report", str(tmp_path / "r"), "--dry-run"]
    good = {**TEXTS.table, "title": "Rapport"}
    bad = {key: text for key, text in good.items() if key != "title"}
    other = {**good, "flag.budget": "{autre}"}
    for table, code in ((good, 0), (bad, 4), (other, 4), (None, 2)):
        copy = tmp_path / f"{code}.pyz"
        copy.write_bytes(pyz.read_bytes())
        with zipfile.ZipFile(copy, "a") as archive:
            if table is not None:
                name = "vega_image/selftest/data/texts.fr.json"
                archive.writestr(name, json.dumps(table))
        argv = [sys.executable, str(copy), *words, "--device", "cpu", "--case", "mm"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert ("LANGUAGE" in done.stderr) == (code != 0)


def wrong_in(family: str, number: int) -> Result:
    case = fakes.case(f"{family}-{number}", family)
    trial = Trial(case.id, "fwd", "i32", "int")
    return Result(case, trial, TrialRecord(trial.key, Verdict.MISMATCH))


def test_what_is_rare_is_on_the_page_though_much_else_is_wrong() -> None:
    families = [f"family{number}" for number in range(20)]
    many = [wrong_in(family, number) for family in families for number in range(50)]
    made = page(report(*many, wrong_in("rare", 1)), TEXTS).decode()
    assert "rare-1" in made
    assert len(made) < 60_000
    assert TEXTS.say("failures.more", count=1001 - 40) in made


def test_the_page_is_dark_on_light_in_print_and_says_nothing_unseen() -> None:
    hostile = report(result("MISMATCH", detail="a\u202eb\x1b[2Jc" + NASTY))
    made = page(hostile, TEXTS).decode("utf-8", "surrogatepass")
    assert not re.search("[\u202e\x1b\x00]", made)
    assert "<script" not in made
    dark = re.findall(r"@media([^{]*)prefers-color-scheme:dark", made)
    assert [rule.strip(" (") for rule in dark] == ["screen and"]


SHAPE = {
    "testsuites": ({"name"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
                  {"properties", "testcase"}),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"classname", "name", "time"}, {"failure", "error", "skipped", "system-out"}),
    "failure": ({"message"}, set()), "error": ({"message"}, set()),
    "skipped": ({"message"}, set()), "system-out": (set(), set()),
}  # fmt: skip
"""Attributes and children of the schema that Jenkins publishes for these files; all that we
write is there required or allowed."""


def test_junit_has_the_shape_its_readers_expect() -> None:
    root = ET.fromstring(junit(report(*EVERY, result("DEGRADED", "fp16"), planted=NASTY)))
    for element in root.iter():
        attributes, children = SHAPE[element.tag]
        assert set(element.attrib) == attributes
        assert {child.tag for child in element} <= children
    for suite in root.iter("testsuite"):
        tags = [child.tag for case in suite.iter("testcase") for child in case]
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == tags.count(tag)
        assert float(suite.attrib["time"]) >= 0
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
