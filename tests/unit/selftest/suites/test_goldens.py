"""The shipped hashes, and what is done with damaged ones."""

from __future__ import annotations

import hashlib
import json
import shutil
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from vega_image.selftest import datafiles
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.seam import Computed
from vega_image.selftest.suites import golden_table
from vega_image.selftest.suites.golden_table import parse, shipped, tables_sha256

pytest.importorskip("torch")
SAMPLE = range(0, 2400, 150)


@pytest.mark.parametrize("number", SAMPLE)
def test_two_implementations_still_agree_on_what_is_shipped(number: int) -> None:
    from vega_image.selftest.suites.golden import one

    name, value = one(number)
    assert b64decode(value).hex() == shipped()[name]


def test_every_geometry_and_product_has_a_hash() -> None:
    from vega_image.selftest.suites.golden import entries

    names = {entry.name for entry in entries()}
    assert names == set(shipped())


def test_a_right_hash_is_enough_and_a_wrong_bit_is_not() -> None:
    from vega_image.selftest.case import Trial
    from vega_image.selftest.suites.registry import judge, plant, prepare

    prepared = prepare(Trial("conv0562", "W", "fp32", "int"))
    right = prepared.oracle.reference()
    assert judge(prepared, Computed(right, 1.0)).verdict == "MATCH"
    wrong = plant("bit-flip", prepared, right)
    assert judge(prepared, Computed(wrong, 1.0)).verdict == "MISMATCH"


def document(**changes: object) -> str:
    body = {"schema": golden_table.SCHEMA, "tables": tables_sha256(), "sha256": {}}
    return json.dumps({**body, **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        document(schema="vega-selftest-golden/0"),
        document(tables="0" * 64),
        document(sha256=[]),
        document(sha256={"x": "AAAA"}),
        document(sha256={"x": "not base64!"}),
        document(sha256={"x": 7}),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(text: str) -> None:
    with pytest.raises(SelftestError) as caught:
        parse(text, tables_sha256())
    assert caught.value.exit_code == 4
    assert caught.value.hint


def test_a_disagreement_writes_nothing() -> None:
    from vega_image.selftest.suites.golden import DisagreementError, entries, hashed

    prepared = entries()[0].prepare()
    inputs = dict(prepared.request.inputs)
    inputs["x0"] = replace(inputs["x0"], data=bytes(len(inputs["x0"].data)))
    spoiled = replace(prepared, request=replace(prepared.request, inputs=inputs))
    with pytest.raises(DisagreementError):
        hashed(spoiled)


@pytest.mark.parametrize(
    ("values", "images", "expected"),
    [
        (np.zeros((1, 1)), False, True),
        (np.ones((4, 4)), False, True),
        (np.eye(4), False, False),
        (np.ones((1, 1)), False, False),
        (np.eye(64).reshape(1, 2, 32, 64), True, False),
        (np.concatenate([np.eye(64), np.zeros((64, 64))]).reshape(1, 2, 64, 64), True, True),
    ],
)
def test_no_hash_is_written_of_what_a_dead_kernel_would_give(
    values: npt.NDArray[np.float64], *, images: bool, expected: bool
) -> None:
    from vega_image.selftest.suites.arrays import encode
    from vega_image.selftest.suites.golden import dull

    assert dull(encode(values, "fp32"), images=images) is expected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shipped_folder = Path(datafiles.__file__).parent / "data"
    return Path(shutil.copytree(shipped_folder, tmp_path / "data"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_planted_disagreement_leaves_every_file_as_it_was(folder: Path) -> None:
    from vega_image.selftest.suites.golden import entries, hashed
    from vega_image.selftest.suites.golden_word import make

    prepared = entries()[0].prepare()
    given = prepared.request.inputs["x0"]
    bit = bytes([given.data[0] ^ 1]) + given.data[1:]
    inputs = {**prepared.request.inputs, "x0": replace(given, data=bit)}
    spoilt = replace(prepared, request=replace(prepared.request, inputs=inputs))
    # An edited table counts only once hashes were made for it.
    with (folder / "linalg.jsonl").open("ab") as table:
        table.write(b"\n")
    before = contents(folder)
    with pytest.raises(SelftestError) as caught:
        make(folder, lambda _: hashed(spoilt))
    assert (caught.value.code, caught.value.exit_code) == ("GOLDEN_DISAGREEMENT", 4)
    assert contents(folder) == before


def test_what_is_written_is_whole_and_the_manifest_knows_it(folder: Path) -> None:
    from vega_image.selftest.suites.golden import text
    from vega_image.selftest.suites.golden_word import make

    fresh = text({"a": "A" * 43 + "="})
    assert "1 hashes" in make(folder, lambda _: fresh)
    written = contents(folder)
    assert written["golden.json"] == fresh.encode()
    noted = datafiles.digests(written[datafiles.MANIFEST])
    assert set(noted) == set(datafiles.TABLES)
    for name, digest in noted.items():
        assert hashlib.sha256(written[name]).hexdigest() == digest


def test_a_hash_that_is_no_longer_computed_is_named() -> None:
    from vega_image.selftest.suites.golden_word import check

    right = datafiles.table("golden.json").decode()
    assert check(lambda _: right) == f"as shipped: {len(shipped())} hashes"
    hashes = json.loads(right)["sha256"]
    name = min(hashes)
    with pytest.raises(SelftestError, match=name) as caught:
        check(lambda _: right.replace(hashes[name], "A" * 43 + "="))
    assert (caught.value.code, caught.value.exit_code) == ("GOLDEN_DIFFERS", 4)
