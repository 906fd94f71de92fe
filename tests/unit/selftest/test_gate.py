"""The gate: whatever is in doubt is pending, and pass is only ever a whole, fitting pass."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vega_image.selftest.files import read_verdict, write_whole
from vega_image.selftest.gate import (
    Asked,
    Key,
    Reason,
    Record,
    Standing,
    State,
    begin,
    decode,
    encode,
    finish,
    stand,
)

KEY = Key("sha256:aa", "1002:66af", "1002:081e", "113-D3600200-106", "0123456789abcdef",
          "6.7.0", "6.12.1", "sha256:bb", "1+c0ffee")  # fmt: skip
NOW = 1_800_000_000.0
BEGUN = begin(KEY, "r2", source="device", boot="b1", span=(NOW - 200, NOW + 100))


def after(code: int, **changes: object) -> str:
    record = finish(BEGUN, code, now=NOW - 100)
    return encode(replace(record, **changes))  # type: ignore[arg-type]


def judged(text: str | None, key: Key = KEY, **rest: object) -> tuple[State, Reason]:
    options = {"now": NOW, "boot": "b1", **rest}
    found = stand(text, key, **options)  # type: ignore[arg-type]
    return found.state, found.reason


@pytest.mark.parametrize(
    ("text", "state", "reason"),
    [
        (None, State.PENDING, Reason.NO_VERDICT),
        ("", State.PENDING, Reason.DAMAGED),
        ("{}", State.PENDING, Reason.FOREIGN),
        ("[]", State.PENDING, Reason.FOREIGN),
        ("null", State.PENDING, Reason.FOREIGN),
        (after(0)[:-20], State.PENDING, Reason.DAMAGED),
        (after(0).replace('"pass"', '"fail"'), State.PENDING, Reason.DAMAGED),
        (after(8).replace('"fail"', '"pass"'), State.PENDING, Reason.DAMAGED),
        (after(8, state=State.PASS), State.PENDING, Reason.DAMAGED),
        (after(0, level="r9"), State.PENDING, Reason.DAMAGED),
        (after(0), State.PASS, Reason.PROVEN),
        (after(8), State.FAIL, Reason.WRONG),
        (after(7), State.FAIL, Reason.HOST),
        (after(9), State.FAIL, Reason.UNPROVEN),
        (after(130), State.PENDING, Reason.STOPPED),
        (after(0, written=NOW + 301), State.PENDING, Reason.FUTURE),
        (after(0, written=NOW + 299), State.PASS, Reason.PROVEN),
        (after(0, level="r1"), State.PENDING, Reason.LEVEL),
        (after(0, level="r4"), State.PASS, Reason.PROVEN),
        (after(0, source="cpu"), State.PENDING, Reason.SOURCE),
        (after(0, source="replay"), State.PENDING, Reason.SOURCE),
        (encode(BEGUN), State.RUNNING, Reason.RUNNING),
    ],
)
def test_a_verdict_file_stands_for(text: str | None, state: State, reason: Reason) -> None:
    assert judged(text) == (state, reason)


def bent(**changes: object) -> str:
    """A record whose digest fits what somebody changed in it."""
    value = {**json.loads(after(0)), **changes}
    value.pop("sha256")
    body = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return json.dumps({**value, "sha256": hashlib.sha256(body.encode()).hexdigest()})


@pytest.mark.parametrize(
    "text",
    [
        after(0).replace('"state": "pass"', '"state": "fail", "state": "pass"'),
        after(0).replace('"exit_code": 0', '"exit_code": 8, "exit_code": 0'),
        after(0).replace('"exit_code": 0', f'"exit_code": {"9" * 5000}'),
        bent(written=math.nan),
        bent(until=math.inf),
        bent(written=10**400),
        bent(written=True),
        bent(written="1"),
        bent(exit_code=False),
        bent(exit_code=0.0),
        bent(exit_code="0"),
        bent(state=["pass"]),
        bent(state={}),
        bent(level=["r2"]),
        bent(source=None),
        bent(boot=1),
        bent(key=[1]),
        bent(key={**KEY.to_json(), "more": ""}),
        bent(key={**KEY.to_json(), "image": 1}),
        bent(more=1),
        bent(state="running"),
        bent(state="running", exit_code=8),
        bent(state="pending", exit_code=8),
        bent(state="fail", exit_code=130),
        "[" * 100_000,
        "\ufeff" + after(0),
        after(0) + "x",
        "\0" * 4096,
    ],
    ids=lambda text: str(text)[:20],
)
def test_what_was_tampered_with_is_damaged_and_nothing_is_raised(text: str) -> None:
    assert judged(text) == (State.PENDING, Reason.DAMAGED)


def test_a_fitting_digest_over_right_fields_is_read() -> None:
    assert judged(bent()) == (State.PASS, Reason.PROVEN)


def test_a_clock_that_is_no_number_is_pending() -> None:
    assert judged(after(0), now=math.nan)[0] == State.PENDING


def test_only_a_plain_file_of_fitting_size_is_read(tmp_path: Path) -> None:
    file = tmp_path / "verdict"
    assert read_verdict(file) is None
    write_whole(file, after(0).encode())
    assert read_verdict(file) == after(0)
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "loose").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "huge").write_bytes(after(0).encode() + b" " * (1 << 20))
    for name in ("link", "loose", "pipe", "folder", "huge"):
        assert judged(read_verdict(tmp_path / name)) == (State.PENDING, Reason.DAMAGED)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe" * 9)
    assert judged(read_verdict(tmp_path / "bytes")) == (State.PENDING, Reason.DAMAGED)


def test_writing_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "verdict").symlink_to(precious)
    write_whole(tmp_path / "verdict", after(0).encode())
    assert precious.read_text() == "mine"
    assert read_verdict(tmp_path / "verdict") == after(0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "verdict"]


def test_a_run_that_never_ended_is_pending() -> None:
    assert judged(encode(BEGUN), boot="b2") == (State.PENDING, Reason.STOPPED)
    assert judged(encode(BEGUN), now=NOW + 101) == (State.PENDING, Reason.STOPPED)


@pytest.mark.parametrize("name", [item.name for item in fields(Key)])
def test_any_change_of_the_key_is_pending_and_named(name: str) -> None:
    changed = replace(KEY, **{name: "other"})
    found = stand(after(0), changed, now=NOW, boot="b1")
    assert found.state == State.PENDING
    foreign = name in {"pci", "subsystem", "unique_id"}
    assert found.reason == (Reason.FOREIGN if foreign else Reason.STALE)
    assert found.detail == name


@pytest.mark.parametrize("name", [item.name for item in fields(Key)])
@pytest.mark.parametrize("value", ["not available", ""])
def test_a_field_nobody_can_read_is_pending(name: str, value: str) -> None:
    unread = replace(KEY, **{name: value})
    record = encode(replace(finish(BEGUN, 0, now=NOW), key=unread))
    state, reason = judged(record, unread)
    if name == "unique_id":
        assert (state, reason) == (State.PASS, Reason.PROVEN)
    else:
        assert (state, reason) == (State.PENDING, Reason.KEY_UNREADABLE)


def test_other_sources_count_only_for_who_asks() -> None:
    text = after(0, source="cpu")
    asked = Asked(sources=frozenset({"device", "cpu"}))
    assert judged(text, asked=asked) == (State.PASS, Reason.PROVEN)


def test_records_survive_writing() -> None:
    assert decode(encode(BEGUN)) == BEGUN


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=3))
def test_a_damaged_pass_never_passes(at: int, junk: bytes) -> None:
    text = after(0).encode()
    at %= len(text)
    bent = (text[:at] + junk + text[at + len(junk) :]).decode("utf-8", "replace")
    try:
        same = json.loads(bent) == json.loads(text)
    except ValueError:
        same = False
    assert same or judged(bent)[0] == State.PENDING


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from([*json.loads(encode(BEGUN)), "x"]), JSON))
def test_no_json_at_all_is_a_pass(value: dict[str, object]) -> None:
    value = {**cast("dict[str, object]", json.loads(after(0))), **value}
    if value != json.loads(after(0)):
        found = decode(json.dumps(value))
        assert isinstance(found, Standing | Record)
        assert judged(json.dumps(value))[0] == State.PENDING
