"""The CLR patch set: its table, its digests, and that a patch can quote nothing but names."""

from __future__ import annotations

import hashlib
import json
import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.windowsstages import TEMPLATES, parts
from vega_image.errors import BytesError, UsageError
from vega_image.windows.clrpatches import Clr, edits_of, patch_set

FILES = parts().patches
TABLE = patch_set(FILES)
PATCHES = {patch.file: edits_of(patch.file, FILES[patch.file]) for patch in TABLE.patches}
PINNED = "d134b7823f61f46816022525b98f128f5128ded9"
NAME = "0001-paldevice-vega20.edits.json"
GOOD: dict[str, Any] = {
    "schema": 1,
    "file": "projects/clr/a.cpp",
    "present": ["there"],
    "absent": ["ours"],
    "edits": [{"where": "after", "anchor": "Pal::table[]", "lines": ["int ours = 1;"]}],
}
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
# At least one character that no name has, wherever it stands.
no_names = st.text(string.printable + "äß€\u2028\x00", max_size=12).filter(
    lambda text: not re.fullmatch(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*(\[\])?", text, re.ASCII)
)


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def with_edit(**change: object) -> dict[str, Any]:
    return {**GOOD, "edits": [{**GOOD["edits"][0], **change}]}


def with_patch(patch: dict[str, Any], name: str = NAME) -> dict[str, bytes]:
    """Return the set with one patch replaced, and a table that names its digest."""
    data = encoded(patch)
    table = json.loads(FILES["patches.json"])
    for row in table["patches"]:
        if row["file"] == name:
            row["sha256"] = hashlib.sha256(data).hexdigest()
    return {**FILES, name: data, "patches.json": encoded(table)}


def test_the_table_is_honest() -> None:
    assert TABLE.status == "unproven"
    assert [patch.applies_to for patch in TABLE.patches] == [PINNED, PINNED]
    assert not any(patch.names_from.pinned for patch in TABLE.patches)
    assert {Clr.PAL_PATCH, *(item.id for item in TABLE.alternatives)} == set(Clr)
    doubts = " ".join(TABLE.doubts)
    for said in ("palLib.h", "below 888", "954", "995", "Pal::AsicRevision::Vega20", "exit 4"):
        assert said in doubts
    assert "GPU_ENABLE_PAL=0" in TABLE.alternatives[0].description


def test_two_files_are_changed_and_no_revision_is_named_that_the_header_lacks() -> None:
    place = "projects/clr/rocclr/device/pal"
    assert [patch.file for patch in PATCHES.values()] == [
        f"{place}/paldevice.cpp",
        f"{place}/palsettings.cpp",
    ]
    lines = "\n".join(
        line for patch in PATCHES.values() for edit in patch.edits for line in edit.lines
    )
    assert set(re.findall(r"AsicRevision::(\w+)", lines)) == {"Unknown"}
    assert '{9, 0, 6, "gfx906", ' in lines
    for pair in ("{}", "()"):
        assert lines.count(pair[0]) == lines.count(pair[1])


def test_a_second_run_is_noticed_by_every_patch() -> None:
    for name, patch in PATCHES.items():
        words = {
            word
            for edit in patch.edits
            for line in edit.lines
            for word in re.findall(r"[A-Za-z_]\w*", line)
        }
        assert words & set(patch.absent), name
        assert not words & {edit.anchor for edit in patch.edits}, name


def test_no_diff_is_left() -> None:
    assert not list((TEMPLATES / "windows/patches").rglob("*.patch"))
    assert not any(re.search(rb"(?m)^(@@|\+\+\+|---) ", data) for data in FILES.values())


def test_the_smallest_patch_is_read() -> None:
    patch = edits_of("x", encoded(GOOD))
    assert patch.edits[0].lines == ("int ours = 1;",)
    assert patch_set(with_patch({**GOOD})).status == "unproven"


@pytest.mark.parametrize(
    "file",
    [
        "",
        "/projects/clr/a.cpp",
        "projects/clr/../a.cpp",
        "projects/clr/a.txt",
        "projects/clr\\a.cpp",
        "projects/hip/a.cpp",
        "projects/clr/\u00e4.cpp",
        "projects/clr/a.cpp\n",
    ],
)
def test_a_file_outside_of_clr_is_refused(file: str) -> None:
    with pytest.raises(UsageError, match="file: "):
        edits_of("x", encoded({**GOOD, "file": file}))


@given(no_names)
def test_an_anchor_is_a_name_and_no_line_of_code(anchor: str) -> None:
    with pytest.raises(UsageError) as caught:
        edits_of(NAME, encoded(with_edit(anchor=anchor)))
    assert caught.value.code == "PATCHES_INVALID"
    assert f"{NAME}: edits.0.anchor: " in caught.value.message


@given(names, names, st.sampled_from(["", "[]"]))
def test_every_name_can_be_an_anchor(one: str, two: str, end: str) -> None:
    anchor = f"{one}::{two}{end}"
    assert edits_of("x", encoded(with_edit(anchor=anchor))).edits[0].anchor == anchor


@given(
    st.text(max_size=12),
    st.characters(codec="utf-8", min_codepoint=127) | st.sampled_from("\n\r\t\0"),
)
def test_a_line_is_one_line_of_printable_ascii(text: str, other: str) -> None:
    with pytest.raises(UsageError, match=r"edits\.0\.lines\.0: "):
        edits_of("x", encoded(with_edit(lines=[f"{text}{other} ours"])))


@given(st.lists(st.from_regex(r"[ -~]{0,80}", fullmatch=True), max_size=4))
def test_lines_come_back_as_they_are(lines: list[str]) -> None:
    said = [line.replace("Pal", "Lap") for line in lines] + ["// ours"]
    assert edits_of("x", encoded(with_edit(lines=said))).edits[0].lines == tuple(said)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (with_edit(lines=[]), "edits.0.lines"),
        (with_edit(anchor=""), "edits.0.anchor"),
        (with_edit(where="instead"), "edits.0.where"),
        (with_edit(more=1), "edits.0.more"),
        ({**GOOD, "edits": []}, "edits"),
        ({**GOOD, "absent": []}, "absent"),
        ({**GOOD, "absent": ["ours mine"]}, "absent.0"),
        ({**GOOD, "present": [""]}, "present.0"),
        ({**GOOD, "schema": 2}, "schema"),
        ({**GOOD, "more": 1}, "more"),
        ({**GOOD, "absent": ["our"]}, "no word of `absent` stands in its lines"),
        ({**GOOD, "present": ["ours"]}, "ours cannot be both present and absent"),
        (with_edit(anchor="ours"), "its own lines hold the anchor ours"),
    ],
)
def test_a_patch_that_cannot_be_applied_safely_is_refused(
    patch: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        patch_set(with_patch(patch))
    assert caught.value.code == "PATCHES_INVALID"
    assert f"{NAME}: {said}" in caught.value.message
    assert str(caught.value.at).endswith(f"clr/{NAME}")


@given(st.binary(max_size=40))
def test_what_is_no_patch_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        edits_of("x", data)


def test_two_patches_of_one_file_are_refused() -> None:
    other = json.loads(FILES["0002-palsettings-vega20.edits.json"])["file"]
    with pytest.raises(UsageError, match=rf"{NAME} changes {re.escape(other)} already"):
        patch_set(with_patch({**GOOD, "file": other}))


@pytest.mark.parametrize("name", sorted(PATCHES))
def test_a_changed_patch_is_refused(name: str) -> None:
    changed = FILES[name].replace(b"Vega20", b"Vega21")
    assert changed != FILES[name]
    with pytest.raises(BytesError) as caught:
        patch_set({**FILES, name: changed})
    assert caught.value.code == "PATCH_CHANGED"
    assert hashlib.sha256(changed).hexdigest() in caught.value.message
    assert name in str(caught.value.at)


def test_a_patch_nobody_named_is_refused() -> None:
    with pytest.raises(UsageError, match=r"0003-more\.edits\.json"):
        patch_set({**FILES, "0003-more.edits.json": encoded(GOOD)})


def test_an_absent_patch_is_refused() -> None:
    with pytest.raises(UsageError, match="there are"):
        patch_set({name: data for name, data in FILES.items() if name != NAME})


def test_a_patch_named_twice_is_refused() -> None:
    table = json.loads(FILES["patches.json"])
    table["patches"].append(table["patches"][0])
    with pytest.raises(UsageError, match="it names"):
        patch_set({**FILES, "patches.json": encoded(table)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": "proven"}, "status"),
        ({"patches": []}, "patches"),
        ({"doubts": []}, "doubts"),
        ({"more": 1}, "more"),
    ],
)
def test_a_table_that_says_too_much_is_refused(change: dict[str, object], said: str) -> None:
    table = json.loads(FILES["patches.json"]) | change
    with pytest.raises(UsageError) as caught:
        patch_set({**FILES, "patches.json": encoded(table)})
    assert caught.value.code == "PATCHES_INVALID"
    assert f"patches.json: {said}" in caught.value.message


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff"])
def test_what_is_no_table_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        patch_set({**FILES, "patches.json": data})


def test_no_table_is_refused() -> None:
    with pytest.raises(UsageError, match="there is none"):
        patch_set({})
