"""The find-db of linux-miopen for real: what it holds, what MIOpen offers, what defeats it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.finddbevidence import passed
from tests.finddbfiles import CONV1_W, WHOLE, WHOLE_SHA256
from tests.realimage import VEGA_IMAGE, build_real
from vega_image.finddb.fallback import SOLVERS
from vega_image.finddb.profile import Profile, System, apply
from vega_image.finddb.registry import registry
from vega_image.finddb.text import FindDb
from vega_image.oci.layout import Layout, read_layout
from vega_image.oci.unpack import image_files
from vega_image.rootfs.content import Contents
from vega_image.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.needs("gcc", "network")]

TARGET = "linux-miopen"
FOLDER = "usr/share/vega-image/finddb"
DB = f"{FOLDER}/gfx906_60.HIP.fdb.txt"
ALL, WITHOUT_KERNELS, REGISTERED = 120_454, 30, 102
SUSPECT = "ConvOclBwdWrW2<1>"


@pytest.fixture(scope="module")
def layout(real_factory: Path) -> Layout:
    return read_layout(Path(build_real(real_factory, "--level", "3", target=TARGET)["layout"]))


@pytest.fixture(scope="module")
def files(layout: Layout) -> dict[str, bytes]:
    """The find-db's folder, and every other file's name."""
    store = Store(layout.folder.parent.parent)
    contents = Contents(store)
    return {
        file.path: bytes(contents.view(file.content))
        if file.content and file.path.startswith(FOLDER)
        else b""
        for file in image_files(layout, store)
    }


def finddb(factory: Path, *words: str) -> tuple[int, Any]:
    """Run a word about the find-db on the built image."""
    argv = [str(VEGA_IMAGE), "-C", str(factory), "finddb", *words, "--json", "-q"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    return done.returncode, json.loads(done.stdout)


def test_every_upstream_problem_is_served_by_the_fallback_and_called_unproven(
    files: dict[str, bytes], layout: Layout
) -> None:
    manifest = json.loads(files[f"{FOLDER}/manifest.json"])
    assert manifest["source"] == {"records": ALL, "sha256": WHOLE_SHA256}
    assert (manifest["profile"], manifest["status"]) == ("safe", "unproven")
    counts = manifest["counts"]
    assert (counts["fallback_records"], counts["proven_records"]) == (ALL, 0)
    assert (counts["lost_records"], manifest["evidence"]) == (0, [])
    db = FindDb(files[DB], "db")
    assert len(db) == ALL
    assert {item.solver for record in db.records() for item in record.items} == set(SOLVERS)
    assert WHOLE not in files
    assert layout.labels["io.vega-image.finddb.status"] == "unproven"
    assert layout.labels["io.vega-image.finddb.origin"] == "package"


def test_the_profile_holds_in_the_image_as_built(real_factory: Path) -> None:
    code, seen = finddb(real_factory, "effective", TARGET)
    assert (code, seen["holds"], seen["findings"]) == (0, True, [])
    assert (seen["records"], seen["status"]) == (ALL, "unproven")


@pytest.mark.parametrize(
    ("variable", "code"),
    [
        ("MIOPEN_USER_DB_PATH=/home/me", "VARIABLE_DIFFERS"),
        ("MIOPEN_SYSTEM_DB_PATH=/usr/share/miopen/db", "VARIABLE_DIFFERS"),
        ("MIOPEN_DEBUG_CONV_WINOGRAD=1", "VARIABLE_ADDED"),
        ("HSA_OVERRIDE_GFX_VERSION=9.0.8", "VARIABLE_ADDED"),
    ],
)
def test_a_variable_defeats_it(real_factory: Path, variable: str, code: str) -> None:
    exit_code, seen = finddb(real_factory, "effective", TARGET, "--env", variable)
    assert exit_code == 9
    assert code in {one["code"] for one in seen["findings"] if one["defeats"]}


def test_the_audit_finds_debians_gap_and_that_the_profile_closes_it(
    real_factory: Path,
) -> None:
    code, found = finddb(real_factory, "audit", TARGET, "--sample", "400")
    assert code == 0
    assert found["usable"] == found["served"] == found["problems"] == 400
    assert (found["dead_records"], found["broken_picks"]) == (0, {})
    assert set(found["applicable_solvers"]) == set(SOLVERS)
    assert len(found["registered_solvers"]) == REGISTERED
    missing = found["missing_kernels"]
    assert len(missing) == WITHOUT_KERNELS
    assert all(row["off"] for row in missing)
    assert {kernel[-2:] for row in missing for kernel in row["kernels"]} == {".s"}


def test_the_audit_of_every_record(
    real_factory: Path, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()
    code, found = finddb(real_factory, "audit", TARGET)
    record_property("seconds", time.monotonic() - began)
    assert (code, found["usable"], found["problems"]) == (0, ALL, ALL)
    assert found["c3_usable"] == found["c3_problems"] == 7_676


def test_a_proven_record_is_baked_in_only_for_this_very_library(
    real_factory: Path, files: dict[str, bytes], tmp_path: Path
) -> None:
    factory = tmp_path / "factory"
    shutil.copytree(real_factory, factory)
    _code, seen = finddb(factory, "effective", TARGET)
    library = seen["library_digest"]
    db, journal, out = tmp_path / "db", tmp_path / "journal", tmp_path / "out"
    db.write_bytes(files[DB])
    journal.write_bytes(passed(SUSPECT, key=CONV1_W, lib_sha256=library))
    words = ("--evidence", str(journal), "-o", str(out))
    assert finddb(factory, "curate", str(db), *words)[0] == 0
    assert finddb(factory, "bake", TARGET, "--from", str(out), "--library", library)[0] == 0
    value = build_real(factory, "--level", "3", target=TARGET)
    ref = f"{TARGET}@{value['digest']}"
    code, seen = finddb(factory, "effective", ref)
    assert (code, seen["status"]) == (0, "partly-proven")
    code, found = finddb(factory, "audit", ref, "--sample", "200")
    assert code == 0
    assert SUSPECT in found["applicable_solvers"]
    applied = apply(Profile.SAFE, registry(), System.IMAGE, serves={SUSPECT})
    assert not set(found["applicable_solvers"]) - {SUSPECT, *SOLVERS, *applied.open}
    notes = {one["code"]: one["message"] for one in seen["findings"]}
    assert "ConvOclBwdWrW2NonTunable" in notes["OPEN_SOLVERS"]
    journal.write_bytes(passed(SUSPECT, key=CONV1_W, lib_sha256="cd" * 32))
    assert finddb(factory, "curate", str(db), *words)[0] == 0
    code, error = finddb(factory, "bake", TARGET, "--from", str(out), "--library", library)
    assert (code, error["error"]["code"]) == (9, "EVIDENCE_VOID")
