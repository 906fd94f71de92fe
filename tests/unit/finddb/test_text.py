"""Find-dbs as text: both forms of items, byte for byte; every flaw has a place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from tests.finddbfiles import CONV1_W, CURRENT, SLICE, db, records
from vega_image.finddb.problem import FormError
from vega_image.finddb.record import CURRENT as FORM_2
from vega_image.finddb.record import LEGACY, Record, parse_item
from vega_image.finddb.text import Flaw, as_read, parse_line, write

OLD = "miopenConvolutionFwdAlgoGEMM:GemmFwdRest,0.50,12,miopenConvolutionFwdAlgoGEMM,<unused>"
NEW = "GemmFwdRest:0.50,12,miopenConvolutionFwdAlgoGEMM"
KEY = "3-9-9-1x1-4-9-9-1-0x0-1x1-1x1-0-NCHW-FP32-F"


@pytest.mark.parametrize("path", [SLICE, CURRENT], ids=["1.0", "2.0"])
def test_the_real_text_comes_back_byte_for_byte(path: Path) -> None:
    one = db(path.read_bytes())
    found = list(one.records())
    assert as_read(found) == one.data
    assert not list(one.flaws())
    assert len(one) == len(found) == path.read_bytes().count(b"\n")


def test_the_other_form_says_the_same() -> None:
    assert parse_item(OLD) == parse_item(NEW)
    assert parse_item(OLD).written(FORM_2) == NEW
    assert parse_item(NEW).written(LEGACY) == OLD
    assert parse_item(OLD).form == LEGACY
    assert parse_item(NEW).form == FORM_2
    assert (parse_item(OLD).time, parse_item(OLD).workspace) == (0.5, 12)


def test_a_cache_key_as_fourth_field_is_kept() -> None:
    text = OLD.replace("12,miopenConvolutionFwdAlgoGEMM", "12,some.key/1")
    assert parse_item(text).written() == text
    assert parse_item(text).written(FORM_2) == NEW


def test_both_forms_may_stand_in_one_record() -> None:
    line = f"{KEY}={OLD};{NEW}"
    assert parse_line(line.encode()).written() == line


@given(records())
def test_every_record_comes_back_in_either_form(record: Record) -> None:
    for form in (LEGACY, FORM_2):
        text = write([record], form)
        again = list(db(text).records())
        assert again == [record]
        assert as_read(again) == text


def test_the_2_0_form_is_sorted_and_ends_in_lf() -> None:
    found = list(db(SLICE.read_bytes()).records())
    text = write(reversed(found))
    assert text.splitlines() == sorted(text.splitlines())
    assert text.endswith(b"\n")
    assert b"<unused>" not in text
    assert list(db(text).records()) == found


def test_the_first_of_equal_keys_is_found_and_the_other_is_a_flaw() -> None:
    one = db(f"{KEY}={NEW}\nnothing\n\n{KEY}={OLD}\n")
    assert len(one) == 1
    assert one[KEY].line == 1
    assert list(one.flaws()) == [
        Flaw(2, 8, "expected '=' after the key"),
        Flaw(4, 1, "this key is in line 1, which MIOpen takes"),
    ]


def test_a_key_without_equals_does_not_hide_the_record() -> None:
    one = db(f"{KEY}\n{KEY}={NEW}\n")
    assert one[KEY].line == 2
    assert KEY in one
    assert one.get("nothing") is None
    assert CONV1_W not in one


@pytest.mark.parametrize(
    ("line", "column"),
    [
        (f"{KEY}=", len(KEY) + 2),
        (f"{KEY}={NEW};", len(KEY) + len(NEW) + 3),
        (f"{KEY}=GemmFwdRest", len(KEY) + 2),
        (f"{KEY}=GemmFwdRest:-1,0,a", len(KEY) + 14),
        (f"{KEY}=GemmFwdRest:1,x,a", len(KEY) + 15),
        (f"{KEY}=GemmFwdRest:nan,0,a", len(KEY) + 14),
        (f"{KEY}=GemmFwdRest:1e999,0,a", len(KEY) + 14),
        (f"{KEY}={OLD[:-1]}", len(KEY) + OLD.index(",<unused>") + 2),
        (f"{KEY}= {NEW}", len(KEY) + 2),
        ("\xef\xbb\xbf" + f"{KEY}={NEW}", 1),
        (f"{KEY}={NEW}\xe9", len(KEY) + len(NEW) + 2),
    ],
)
def test_what_is_no_record_is_refused_with_its_column(line: str, column: int) -> None:
    with pytest.raises(FormError) as caught:
        parse_line(line.encode("latin-1"))
    assert caught.value.column == column
    assert [flaw.column for flaw in db(f"{line}\n").flaws()] == [column]
