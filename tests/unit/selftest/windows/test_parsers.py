"""The parsers: whatever bytes come, a value or the name of the file at fault."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windowsmachine import DATA, NOW, record
from vega_image.selftest import datafiles
from vega_image.selftest.gate import State
from vega_image.selftest.identity import suite_version
from vega_image.selftest.reading import NotAvailable
from vega_image.selftest.windows import hipinfo
from vega_image.selftest.windows.folder import FIELDS, read_folder
from vega_image.selftest.windows.text import UnreadableError, decode_json, decode_text
from vega_image.selftest.windows.verdict import Question, decide

SCHEMA = json.loads(datafiles.raw("windows-facts.schema.json"))
GOOD = {name: (DATA / "good" / name).read_bytes() for name in [*FIELDS, "hipinfo.txt"]}
PROOF = record({"exit": 0})
ENCODINGS: list[Callable[[str], bytes]] = [
    lambda text: text.encode(),
    lambda text: text.encode("utf-8-sig"),
    lambda text: text.encode("utf-16"),
    lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    lambda text: text.encode("utf-16-le"),
    lambda text: text.encode("utf-16-be"),
    lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    lambda text: text.replace("\n", "\r\n").encode("utf-16"),
]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("encode", ENCODINGS)
def test_every_encoding_of_windows_reads_alike(encode: Callable[[str], bytes]) -> None:
    for name in FIELDS:
        text = GOOD[name].decode()
        assert decode_json(name, encode(text)) == json.loads(text)


@given(st.text(st.characters(codec="ascii", exclude_characters="\r\0"), min_size=2))
def test_ascii_text_survives_every_encoding(text: str) -> None:
    for encode in ENCODINGS[:6]:
        assert decode_text(encode(text)) == text


@given(st.binary(max_size=200))
def test_any_bytes_are_a_text_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert "\r" not in decode_text(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_unreadable(data: bytes) -> None:
    with contextlib.suppress(UnreadableError):
        assert isinstance(decode_json("x.json", data), dict)


@given(st.text(max_size=300))
def test_any_text_is_a_hipinfo_print_or_a_value_error(text: str) -> None:
    hipinfo.parse_error(text)
    try:
        devices = hipinfo.parse_devices(text)
    except ValueError:
        return
    assert len({device.index for device in devices}) == len(devices)


@given(st.text(max_size=40))
def test_any_text_is_an_arch_or_none(text: str) -> None:
    parts = hipinfo.arch_parts(text)
    assert parts is None or text.startswith(parts[0])


def spoilt(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for other, content in GOOD.items():
        (folder / other).write_bytes(data if other == name else content)
    return folder


def mutated(value: Any, draw: st.DataObject) -> Any:
    """Change one thing somewhere in a value."""
    if isinstance(value, dict) and value and draw.draw(st.booleans()):
        key = draw.draw(st.sampled_from(sorted(value)))
        return {**value, key: mutated(value[key], draw)}
    if isinstance(value, list) and value and draw.draw(st.booleans()):
        return [mutated(value[0], draw), *value[1:]]
    return draw.draw(values)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(FIELDS)), st.data())
def test_what_the_schema_refuses_is_never_a_pass(
    tmp_path_factory: pytest.TempPathFactory, name: str, draw: st.DataObject
) -> None:
    value = mutated(json.loads(GOOD[name]), draw)
    folder = spoilt(tmp_path_factory.getbasetemp() / "spoilt", name, json.dumps(value).encode())
    fits = jsonschema.Draft202012Validator(
        {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    ).is_valid(value)
    gathered = read_folder(folder)
    read = not any(isinstance(one, NotAvailable) for one in vars(gathered).values())
    # Python's reader takes 1.0 for no whole number, the schema does: stricter is well.
    assert fits or not read
    verdict = decide(gathered, PROOF, Question(suite_version(), NOW))
    assert fits or verdict.state is not State.PASS


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.binary(max_size=60))
def test_any_bytes_in_any_file_are_never_a_pass(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes
) -> None:
    gathered = read_folder(spoilt(tmp_path_factory.getbasetemp() / "spoilt", name, data))
    verdict = decide(gathered, PROOF, Question(suite_version(), NOW))
    assert verdict.state is not State.PASS
    assert name in verdict.detail


def test_a_folder_where_a_file_belongs(tmp_path: Path) -> None:
    folder = spoilt(tmp_path / "facts", "os.json", b"")
    (folder / "os.json").unlink()
    (folder / "os.json").mkdir()
    assert isinstance(read_folder(folder).system, NotAvailable)


def test_a_file_too_long_is_not_read(tmp_path: Path) -> None:
    folder = spoilt(tmp_path / "facts", "tdr.json", b" " * (1 << 20) + GOOD["tdr.json"])
    found = read_folder(folder).tdr
    assert isinstance(found, NotAvailable)
    assert "1 MiB" in found.why


def test_nested_beyond_reason_is_unreadable() -> None:
    with pytest.raises(UnreadableError):
        decode_json("x.json", b"[" * 100_000)
