"""The tar reader: agrees with tarfile on honest archives, refuses the others by name."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.errors import StageError
from vega_image.rootfs.tarread import Member, TarStream, safe_path

NAME = st.text(
    st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="/"),
    min_size=1,
    max_size=60,
).filter(lambda name: name not in {".", ".."})
PATH = st.lists(NAME, min_size=1, max_size=6).map("/".join)
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def archive(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def read(data: bytes) -> list[tuple[Member, bytes]]:
    stream = TarStream(io.BytesIO(data), "pkg 1.0")
    return [(one, b"".join(stream.chunks())) for one in stream]


@given(
    st.dictionaries(PATH, st.binary(max_size=3000), max_size=6),
    st.sampled_from(FORMATS[1:]),
    st.integers(0, 2**33),
)
def test_reads_what_tarfile_writes(files: dict[str, bytes], form: int, uid: int) -> None:
    infos = []
    for name, data in files.items():
        info = member(name)
        info.uid, info.mode, info.mtime = uid, 0o4751, 12345
        infos.append((info, data))
    found = read(archive(*infos, form=form))
    assert [(one.path, data) for one, data in found] == list(files.items())
    assert {(one.uid, one.mode, one.mtime) for one, _ in found} <= {(uid, 0o4751, 12345)}


@given(st.binary(max_size=4000), st.integers(0, 9000), st.integers(0, 255))
def test_a_damaged_archive_is_refused_or_read_never_worse(
    data: bytes, place: int, byte: int
) -> None:
    whole = bytearray(archive((member("a" * 120), data), (member("b"), b"bytes of b")))
    whole[place % len(whole)] = byte
    try:
        read(bytes(whole))
    except StageError as error:
        assert error.code in {"BROKEN_TAR", "HOSTILE_TAR"}  # noqa: PT017 - either is right
        assert "pkg 1.0" in error.message  # noqa: PT017


@given(st.integers(0, 20))
def test_an_archive_cut_anywhere_is_broken(blocks: int) -> None:
    whole = archive((member("a"), b"x" * 3000), (member("b"), b"y" * 3000))
    end = whole.rindex(b"y") + 1
    cut = whole[: min(blocks * 512, end - 1)]
    with pytest.raises(StageError, match="ends too early") as caught:
        read(cut)
    assert caught.value.code == "BROKEN_TAR"


def test_a_damaged_header_in_the_middle_is_not_the_end() -> None:
    whole = bytearray(archive((member("a"), b"x"), (member("b"), b"y")))
    whole[1024 + 150] ^= 1
    with pytest.raises(StageError, match="broken tar"):
        read(bytes(whole))


def test_data_after_the_end_mark_is_refused() -> None:
    with pytest.raises(StageError, match="after the end mark"):
        read(archive((member("a"), b"x")) + archive((member("b"), b"y")))


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a/./b",
        "a//b",
        "a/..",
        "a\nb",
        "a\x1b[2Jb",
        "a\x7fb",
    ],
)
def test_hostile_names_are_refused_by_name(name: str) -> None:
    with pytest.raises(StageError) as caught:
        read(archive((member(name), b"")))
    assert caught.value.code == "HOSTILE_TAR"
    assert repr(name) in caught.value.message
    assert "pkg 1.0" in caught.value.message


def test_a_nul_in_a_pax_or_gnu_name_is_refused() -> None:
    info = member("innocent")
    info.pax_headers = {"path": "evil\0hidden"}
    with pytest.raises(StageError, match="control character"):
        read(archive((info, b"")))


def test_bytes_behind_a_nul_in_the_header_are_refused() -> None:
    whole = bytearray(archive((member("a"), b""), form=tarfile.USTAR_FORMAT))
    whole[2:6] = b"evil"
    whole[148:156] = b"        "
    whole[148:156] = b"%06o\0 " % sum(whole[:512])
    with pytest.raises(StageError, match="behind a NUL"):
        read(bytes(whole))


def test_a_name_that_is_not_utf8_is_refused() -> None:
    whole = bytearray(archive((member("a"), b""), form=tarfile.USTAR_FORMAT))
    whole[0] = 0xFF
    whole[148:156] = b"        "
    whole[148:156] = b"%06o\0 " % sum(whole[:512])
    with pytest.raises(StageError) as caught:
        read(bytes(whole))
    assert caught.value.code == "HOSTILE_TAR"


def test_a_link_with_bytes_cannot_smuggle_members() -> None:
    inner = archive((member("smuggled"), b""))[:512]
    whole = bytearray(archive((member("x"), inner)))
    whole[156:157] = b"2"
    whole[148:156] = b"        "
    whole[148:156] = b"%06o\0 " % sum(whole[:512])
    with pytest.raises(StageError, match="no file"):
        read(bytes(whole))


@pytest.mark.parametrize("size", ["-1", "1_0", " 5", "0x10", "9" * 30, ""])
def test_odd_pax_numbers_are_broken(size: str) -> None:
    info = member("a")
    info.pax_headers = {"size": size}
    with pytest.raises(StageError) as caught:
        read(archive((info, b"")))
    assert caught.value.code == "BROKEN_TAR"


def test_a_sparse_file_is_refused() -> None:
    info = member("a")
    info.pax_headers = {"GNU.sparse.major": "1"}
    with pytest.raises(StageError, match="member type"):
        read(archive((info, b"")))


@given(PATH)
def test_safe_path_keeps_honest_names(path: str) -> None:
    def refuse(name: str, why: str) -> StageError:
        return StageError("X", f"{name}: {why}")

    assert safe_path(path, refuse) == path
    assert safe_path(f"./{path}/", refuse) == path
    assert safe_path("./", refuse) == ""
