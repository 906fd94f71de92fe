"""Offload bundles: what is read, and that nothing else comes out than StageError."""

from __future__ import annotations

import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fatfiles import bundle, code_object, compressed, fat_objects
from vega_image.codeobjects.bundle import Bundle, read_bundles
from vega_image.codeobjects.window import Window
from vega_image.errors import StageError

PLAIN = fat_objects(0)


def read(data: bytes) -> list[Bundle]:
    return list(read_bundles(Window(data, "lib.so"), 0, len(data)))


def refused(data: bytes) -> str:
    with pytest.raises(StageError) as caught:
        read(data)
    assert caught.value.at is not None
    assert caught.value.at.startswith("lib.so")
    return f"{caught.value.code}: {caught.value.message}"


def outcome(data: bytes) -> tuple[list[Bundle], str]:
    try:
        return read(data), ""
    except StageError as error:
        return [], error.code


def contents(found: Bundle) -> dict[str, bytes]:
    return {
        str(entry.target): found.data.take(entry.offset, entry.size)
        for entry in found.entries
        if entry.target
    }


def test_a_plain_bundle_gives_back_its_code_objects() -> None:
    objects = {"gfx906": code_object("gfx906", 5000), "gfx906:xnack+": b"x" * 9}
    (found,) = read(bundle(list(objects.items())))
    assert contents(found) == objects
    assert found.entries[0].id == "host-x86_64-unknown-linux-gnu-"
    assert found.entries[0].target is None
    assert found.compressed is None


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_a_compressed_bundle_reads_like_the_plain_one(version: int, method: int) -> None:
    (plain,) = read(PLAIN)
    (found,) = read(compressed(PLAIN, version=version, method=method))
    assert contents(found) == contents(plain)
    assert found.compressed is not None
    assert (found.compressed.version, found.compressed.method) == (version, method)


@pytest.mark.parametrize("gap", [0, 1, 4095])
def test_bundles_of_both_kinds_follow_one_another(gap: int) -> None:
    parts = [PLAIN, *(compressed(PLAIN, version=v) for v in (1, 2, 3)), PLAIN]
    data = b"".join(part + bytes(gap) for part in parts)
    found = read(data)
    assert [b.compressed.version if b.compressed else 0 for b in found] == [0, 1, 2, 3, 0]
    assert [b.end - b.start for b in found] == [len(part) for part in parts]


def test_a_magic_inside_compressed_data_starts_no_bundle() -> None:
    inner = bundle([("gfx906", b"CCOB" * 3 + b"__CLANG_OFFLOAD_BUNDLE__")])
    assert len(read(compressed(inner) + compressed(inner, version=2))) == 2


def patched(data: bytes, offset: int, layout: str, value: int) -> bytes:
    return data[:offset] + struct.pack(layout, value) + data[offset + struct.calcsize(layout) :]


MUTANTS = {
    "junk before": b"\0\0x" + PLAIN,
    "junk after": PLAIN + b"\0x",
    "no entries": patched(PLAIN, 24, "<Q", 0),
    "a million entries": patched(PLAIN, 24, "<Q", 1 << 20),
    "2^63 entries": patched(PLAIN, 24, "<Q", 1 << 63),
    "an entry past the end": patched(PLAIN, 32 + 24 + 30, "<Q", len(PLAIN)),
    "an entry over the table": patched(PLAIN, 32 + 24 + 30, "<Q", 40),
    "a size past the end": patched(PLAIN, 32 + 24 + 30 + 8, "<Q", len(PLAIN)),
    "a size of 2^64-1": patched(PLAIN, 32 + 24 + 30 + 8, "<Q", (1 << 64) - 1),
    "an id of 2^40 bytes": patched(PLAIN, 32 + 16, "<Q", 1 << 40),
    "an id with a newline": PLAIN.replace(b"host-", b"host\n"),
    "an id not in ascii": PLAIN.replace(b"host-", b"h\xc3\xb6s-"),
    "two entries of one name": PLAIN.replace(b"-gfx900", b"-gfx906"),
    "entries over each other": bundle([("gfx906", b"a" * 900), ("gfx900", b"b" * 900)]).replace(
        struct.pack("<QQ", 8192, 900), struct.pack("<QQ", 4096, 900)
    ),
    "cut in the header": PLAIN[:28],
    "cut in the table": PLAIN[:60],
    "cut in a code object": PLAIN[:-1],
    "an unknown version": patched(compressed(PLAIN), 4, "<H", 4),
    "an unknown method": patched(compressed(PLAIN), 6, "<H", 2),
    "a total past the end": patched(compressed(PLAIN), 8, "<Q", 1 << 50),
    "a total of nothing": patched(compressed(PLAIN), 8, "<Q", 32),
    "a total too short": patched(compressed(PLAIN), 8, "<Q", len(compressed(PLAIN)) - 1),
    "a total with more inside": patched(compressed(PLAIN), 8, "<Q", len(compressed(PLAIN)) + 4)
    + bytes(4),
    "a promise too small": patched(compressed(PLAIN), 16, "<Q", len(PLAIN) - 1),
    "a promise too large": patched(compressed(PLAIN), 16, "<Q", len(PLAIN) + 1),
    "a promise of 2^60": patched(compressed(PLAIN), 16, "<Q", 1 << 60),
    "another hash": patched(compressed(PLAIN), 24, "<Q", 1),
    "damaged zstd": compressed(PLAIN)[:-9] + b"damaged!!",
    "damaged zlib": compressed(PLAIN, method=0)[:-9] + b"damaged!!",
    "no bundle inside": compressed(b"ELF" * 100),
    "a compressed bundle inside": compressed(compressed(PLAIN)),
    "cut in a compressed header": compressed(PLAIN)[:20],
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_not_a_sound_bundle_is_refused(name: str) -> None:
    assert refused(MUTANTS[name]).startswith("MALFORMED_BUNDLE: lib.so: bundle at 0x")


def test_a_bomb_stops_at_what_its_header_promised() -> None:
    bomb = compressed(bytes(1 << 28))
    assert len(bomb) < 1 << 16
    promise = patched(bomb, 16, "<Q", 1000)
    told = re.search(r"1000 bytes promised, (\d+) unpacked", refused(promise))
    assert told is not None
    assert int(told[1]) < 1 << 27


@given(
    seed=st.binary(min_size=1, max_size=40),
    place=st.integers(min_value=0, max_value=400),
    method=st.sampled_from([None, 0, 1]),
    version=st.sampled_from([1, 2, 3]),
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_bundle_gives_a_bundle_or_a_refusal(
    seed: bytes, place: int, method: int | None, version: int
) -> None:
    data = PLAIN if method is None else compressed(PLAIN, version=version, method=method)
    data = data[:place] + seed + data[place + len(seed) :]
    found, code = outcome(data)
    assert code in {"", "MALFORMED_BUNDLE", "TRUNCATED"}
    for one in found:
        assert 0 <= one.start < one.end <= len(data)
        for entry in one.entries:
            assert not entry.size or entry.offset + entry.size <= one.data.size


@given(data=st.binary(max_size=200), magic=st.sampled_from([b"CCOB", PLAIN[:24], b""]))
@settings(max_examples=300, deadline=None)
def test_noise_is_refused(data: bytes, magic: bytes) -> None:
    if not (magic + data).strip(b"\0"):
        assert read(magic + data) == []
        return
    assert refused(magic + data)
