"""The table of ISOs, and the ISO source."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from vega_image.errors import BytesError, UsageError
from vega_image.sources.iso import verify_iso
from vega_image.windows.isofacts import image_of, iso_fact, iso_facts

IOT = "windows-11-iot-enterprise-ltsc-eval"
BOTH = "windows-11-enterprise-ltsc-eval"


def test_ids_digests_and_indexes_are_unique() -> None:
    facts = iso_facts()
    assert len({fact.id for fact in facts}) == len({fact.sha256 for fact in facts}) == 2
    for fact in facts:
        assert len({image.index for image in fact.images}) == len(fact.images)


def test_the_facts_of_the_iot_edition() -> None:
    fact = iso_fact(IOT)
    assert (fact.size, fact.sha256[:8]) == (5060020224, "2cee70bd")
    assert image_of(fact).name == "Windows 11 IoT Enterprise LTSC Evaluation"


def test_an_unknown_iso_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        iso_fact("windows-11-iot-enterprise-ltsc")
    assert caught.value.code == "UNKNOWN_ISO"
    assert caught.value.hint == f"did you mean {IOT}?"
    assert BOTH in caught.value.message


def test_an_edition_is_chosen_by_index_or_name() -> None:
    fact = iso_fact(BOTH)
    wanted = "windows 11 enterprise n ltsc evaluation"
    assert image_of(fact, index=2) == image_of(fact, name=wanted)
    assert image_of(fact, index=2, name=wanted).index == 2


@pytest.mark.parametrize(
    ("index", "name", "said"),
    [
        (3, None, "no edition with index 3"),
        (None, "Windows 11 Pro", "no edition with name 'Windows 11 Pro'"),
        (1, "Windows 11 Enterprise N LTSC Evaluation", "index 1 and name"),
        (None, None, "several editions"),
    ],
)
def test_an_unknown_edition_is_refused_with_the_known_ones(
    index: int | None, name: str | None, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        image_of(iso_fact(BOTH), index=index, name=name)
    assert caught.value.code == "UNKNOWN_EDITION"
    assert said in caught.value.message
    assert "2 = Windows 11 Enterprise N LTSC Evaluation" in caught.value.message


DATA = b"an iso" * 300_000
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def iso(tmp_path: Path) -> Path:
    path = tmp_path / "a disk é.iso"
    path.write_bytes(DATA)
    return path


def test_the_right_file_passes_and_progress_is_heard(iso: Path) -> None:
    heard: list[tuple[int, int]] = []
    verify_iso(
        iso,
        size=len(DATA),
        sha256=SHA.upper(),
        progress=lambda done, total: heard.append((done, total)),
    )
    assert len(heard) == 2
    assert heard[-1] == (len(DATA), len(DATA))


def test_a_wrong_size_is_refused_without_reading(iso: Path) -> None:
    def read(_done: int, _total: int) -> None:
        pytest.fail("the file was read")

    with pytest.raises(BytesError) as caught:
        verify_iso(iso, size=len(DATA) + 1, sha256=SHA, progress=read)
    assert (caught.value.exit_code, caught.value.code) == (4, "ISO_WRONG_SIZE")
    assert f"{len(DATA)} bytes" in caught.value.message
    assert str(len(DATA) + 1) in caught.value.message


def test_one_wrong_bit_is_refused_with_both_digests(iso: Path) -> None:
    damaged = bytearray(DATA)
    damaged[-1] ^= 1
    iso.write_bytes(damaged)
    with pytest.raises(BytesError) as caught:
        verify_iso(iso, size=len(DATA), sha256=SHA)
    assert (caught.value.exit_code, caught.value.code) == (4, "ISO_WRONG_DIGEST")
    assert SHA in caught.value.message
    assert hashlib.sha256(damaged).hexdigest() in caught.value.message


def test_a_missing_file_and_a_folder_are_usage_errors(iso: Path) -> None:
    for path, code in (
        (iso.with_name("nope.iso"), "ISO_ABSENT"),
        (iso / "below", "ISO_ABSENT"),
        (iso.parent, "ISO_NOT_A_FILE"),
        (Path("/dev/null"), "ISO_NOT_A_FILE"),
    ):
        with pytest.raises(UsageError) as caught:
            verify_iso(path, size=1, sha256=SHA)
        assert caught.value.code == code


def test_a_link_to_the_file_is_the_file(iso: Path) -> None:
    link = iso.with_name("link.iso")
    link.symlink_to(iso)
    verify_iso(link, size=len(DATA), sha256=SHA)
