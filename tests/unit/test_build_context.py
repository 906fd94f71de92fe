from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.engines.context import Reader, context_tar
from vega_image.errors import UsageError

NAMES = st.from_regex(r"[a-zé]{1,9}(/[a-z.]{0,3}[a-z]){0,40}", fullmatch=True)


@given(st.dictionaries(NAMES, st.binary(max_size=1500), max_size=6))
def test_a_tar_reader_finds_exactly_the_files(files: dict[str, bytes]) -> None:
    data = b"".join(context_tar(files, {}, epoch=7))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        found = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
        assert found == files
        assert {m.mtime for m in tar.getmembers()} <= {7}
        assert {(m.uid, m.gid, m.uname) for m in tar.getmembers()} <= {(0, 0, "")}


def test_the_order_files_are_given_in_does_not_matter() -> None:
    one = context_tar({"a": b"1", "b": b"2"}, {}, epoch=0)
    other = context_tar({"b": b"2", "a": b"1"}, {}, epoch=0)
    assert b"".join(one) == b"".join(other)


def test_scripts_are_executable(tmp_path: Path) -> None:
    (tmp_path / "o").write_bytes(b"x" * 700)
    data = b"".join(
        context_tar({"s": b"#!/bin/sh\n", "t": b"text"}, {"d/o": tmp_path / "o"}, epoch=0)
    )
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert {m.name: m.mode for m in tar} == {"s": 0o755, "t": 0o644, "d/o": 0o644}


@pytest.mark.parametrize(
    "path", ["", ".", "..", "/a", "a/..", "../a", "a//b", "a/", "./a", "a\0", "a\n"]
)
def test_a_hostile_path_is_refused(path: str) -> None:
    with pytest.raises(UsageError) as caught:
        list(context_tar({path: b""}, {}, epoch=0))
    assert caught.value.code == "CONTEXT_PATH"


def test_a_path_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        list(context_tar({"a": b""}, {"a": tmp_path}, epoch=0))
    assert "given twice" in caught.value.message


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(1, 12))
def test_a_reader_gives_back_the_chunks_bytes(chunks: list[bytes], size: int) -> None:
    reader = Reader(iter(chunks))
    found = b""
    while data := reader.read(size):
        assert len(data) <= size
        found += data
    assert found == b"".join(chunks)
