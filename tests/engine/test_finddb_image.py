"""A find-db in an image that a user builds: made, baked, defeated, rebuilt from the image."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.finddbevidence import C3W, DB, passed
from tests.minidebian import MiniDebian, Package, gpg_home
from tests.tampering import documents
from tests.tiny import FIXTURE, Tiny, new_user, tiny_archive
from vega_image.finddb.registry import registry

pytestmark = pytest.mark.needs("busybox")
FOLDER = "usr/share/vega-image/finddb"
NAME = "gfx906_60.HIP.fdb.txt"
UPSTREAM = f"usr/share/miopen/db/{NAME}"
LIBRARY = "usr/lib/x86_64-linux-gnu/libMIOpen.so.1"
CONTENT = "".join(f"{name}\n" for name in registry())
SOLVER = "ConvOclBwdWrW2<1>"
STAGES = 'stages:\n  - {name: greet, recipe: greet, options: {word: hello, seconds: "0"}}\n'
FINDDB = "{profile: safe, database: {package: tiny-finddb, path: " + UPSTREAM + "}}"
STEPS = ["root", "finddb", "layers", "image"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniDebian]:
    """The tiny archive, and a library with its upstream find-db."""
    with gpg_home() as home:
        made = tiny_archive(tmp_path_factory.mktemp("archive"), home)
        files = {UPSTREAM: DB.decode()}
        made.add(Package("tiny-finddb", files=files))
        links = {LIBRARY: "libMIOpen.so.1.0"}
        made.add(Package("tiny-miopen", files={f"{LIBRARY}.0": CONTENT}, links=links))
        made.publish()
        yield made


@pytest.fixture
def user(archive: MiniDebian, tmp_path: Path) -> Tiny:
    """A user whose tiny target needs no engine and makes a find-db from a package."""
    made = new_user(tmp_path / "user", archive=archive, factory=FIXTURE)
    made.edit(STAGES, f"finddb: {FINDDB}\n")
    made.edit(', "stage:*"', "")
    made.edit("[tiny-app, tiny-base]", "[tiny-app, tiny-base, tiny-miopen, tiny-finddb]")
    made.edit("  omit:\n", "  omit:\n    tiny-finddb: only its find-db is taken\n")
    made.done("lock", "tiny")
    return made


def bake(user: Tiny, tmp_path: Path, *, library: str = "", profile: str = "safe") -> None:
    """Curate the package's find-db with evidence of a card, and bake it."""
    digest = library or hashlib.sha256(CONTENT.encode()).hexdigest()
    db, journal, out = tmp_path / "db", tmp_path / "journal", tmp_path / f"out-{profile}"
    db.write_bytes(DB)
    journal.write_bytes(passed(SOLVER, lib_sha256=digest))
    words = ("--evidence", str(journal), "--profile", profile, "-o", str(out))
    user.done("finddb", "curate", str(db), *words)
    user.done("finddb", "bake", "tiny", "--from", str(out))


def test_it_is_made_from_the_package_and_rebuilt_from_the_image_alone(
    user: Tiny, tmp_path: Path
) -> None:
    layout = tmp_path / "layout"
    value = user.build("-o", str(layout))
    assert [step["name"] for step in value["steps"]] == STEPS
    found = files(layout)
    assert set(found) == {
        f"{FOLDER}/{name}" for name in (NAME, "manifest.json", "evidence.tsv", "environment")
    }
    manifest = json.loads(found[f"{FOLDER}/manifest.json"])
    assert (manifest["status"], manifest["evidence"]) == ("unproven", [])
    assert manifest["source"] == {"records": 2, "sha256": hashlib.sha256(DB).hexdigest()}
    assert (manifest["counts"]["fallback_records"], manifest["serves"]) == (2, [])
    assert f"{C3W}=GemmWrwUniversal:2.77,".encode() in found[f"{FOLDER}/{NAME}"]
    config = config_of(layout)
    assert labels(config) == {"profile": "safe", "status": "unproven", "origin": "package"}
    assert f"MIOPEN_SYSTEM_DB_PATH=/{FOLDER}" in config["Env"]
    bake(user, tmp_path)
    assert user.done("reproduce", f"oci:{layout}")["digest"] == value["digest"]


def test_a_baked_one_goes_before_and_is_rebuilt_from_the_image_alone(
    user: Tiny, tmp_path: Path
) -> None:
    first = user.build()
    bake(user, tmp_path)
    layout = tmp_path / "layout"
    value = user.build("-o", str(layout))
    states = {step["name"]: step["state"] for step in value["steps"]}
    assert states == {"root": "cached", "finddb": "built", "layers": "built", "image": "built"}
    assert value["digest"] != first["digest"]
    found, config = files(layout), config_of(layout)
    assert labels(config) == {"profile": "safe", "status": "partly-proven", "origin": "baked"}
    assert f"{C3W}={SOLVER}:2,".encode() in found[f"{FOLDER}/{NAME}"]
    assert not [
        row for row in config["Env"] if row.startswith("MIOPEN_DEBUG_CONV_DIRECT_OCL_WRW2=")
    ]
    user.done("finddb", "effective", "tiny")
    for path in user.spec.with_name("tiny.finddb").iterdir():
        path.unlink()
    assert user.done("reproduce", f"oci:{layout}")["digest"] == value["digest"]


def test_evidence_of_another_library_than_the_images_is_void(
    user: Tiny, tmp_path: Path
) -> None:
    bake(user, tmp_path, library="cd" * 32)
    assert user.refused("build", "tiny") == (9, "EVIDENCE_VOID")


def test_what_defeats_or_breaks_it_is_refused_before_building(
    user: Tiny, tmp_path: Path
) -> None:
    user.edit("env: {PATH: /usr/bin}", "env: {PATH: /usr/bin, MIOPEN_FIND_MODE: NORMAL}")
    for words in (("build", "tiny"), ("plan", "tiny"), ("check", "tiny")):
        assert user.refused(*words) == (2, "FINDDB_DEFEATED")
    user.edit(", MIOPEN_FIND_MODE: NORMAL", "")
    user.edit("path: usr/share", "path: usr/shore")
    assert user.refused("build", "tiny") == (6, "FINDDB_ABSENT")
    user.edit("path: usr/shore", "path: usr/share")
    user.edit("package: tiny-finddb", "package: tiny-findbd")
    assert user.refused("plan", "tiny") == (2, "FINDDB_PACKAGE")
    user.edit("package: tiny-findbd", "package: tiny-finddb")
    bake(user, tmp_path)
    path = user.spec.with_name("tiny.finddb") / NAME
    path.write_bytes(path.read_bytes().replace(b":2,", b":1,"))
    assert user.refused("plan", "tiny") == (2, "CURATED_CHANGED")
    user.edit("profile: safe", "profile: saef")
    assert user.refused("plan", "tiny") == (2, "SPEC_INVALID")


@pytest.mark.parametrize("profile", ["strict", "upstream"])
def test_the_other_profiles_are_built_too(user: Tiny, tmp_path: Path, profile: str) -> None:
    user.edit("profile: safe", f"profile: {profile}")
    layout = tmp_path / "layout"
    value = user.build("-o", str(layout))
    found, config = files(layout), config_of(layout)
    assert labels(config)["status"] == "unproven"
    assert f"{FOLDER}/{NAME}" not in found
    if profile == "upstream":
        assert found[UPSTREAM] == DB
        assert not [row for row in config["Env"] if row.startswith("MIOPEN_")]
        assert user.done("finddb", "effective", "tiny")["findings"][0]["code"] == "UPSTREAM"
    else:
        assert UPSTREAM not in found
        assert "MIOPEN_DEBUG_FIND_ONLY_SOLVER=ConvMlirIgemmFwd" in config["Env"]
        bake(user, tmp_path, profile="strict")
        proven = user.build()
        assert proven["digest"] != value["digest"]
        assert user.done("finddb", "effective", "tiny")["status"] == "proven"
    assert user.done("reproduce", f"oci:{layout}")["digest"] == value["digest"]


def test_effective_sees_what_a_later_layer_or_a_variable_does(user: Tiny) -> None:
    """The user db and the environment of an image come from whoever builds upon it."""
    value = user.build()
    seen = user.done("finddb", "effective", "tiny")
    assert (seen["profile"], seen["status"], seen["records"]) == ("safe", "unproven", 2)
    assert seen["findings"] == []
    assert seen["holds"]
    assert seen["system_db"] == f"/{FOLDER}/{NAME}"
    lacking = "MIOPEN_DEBUG_CONV_WINOGRAD=1"
    assert codes(user, "tiny", "--env", lacking) == {"VARIABLE_ADDED"}
    mode = "MIOPEN_FIND_MODE=NORMAL"
    assert codes(user, f"tiny@{value['digest']}", "--env", mode) == {"VARIABLE_DIFFERS"}
    assert codes(user, "tiny", "--env", "MIOPEN_LOG_LEVEL=5") == set()
    record = f"{C3W}={SOLVER}:0.1,0,miopenConvolutionBwdWeightsAlgoDirect\n"
    user.edit("  files:\n", f"  files:\n    {USER}: |\n      {record}")
    user.build()
    assert codes(user, "tiny") == {"USER_DB"}


USER = f"tmp/vega-miopen-user-db/{NAME[:-8]}.3_5_1_.ufdb.txt"


def codes(user: Tiny, ref: str, *words: str) -> set[str]:
    """The findings that defeat the profile; exit 9 exactly if there are any."""
    answer = user.json("finddb", "effective", ref, *words)
    found = {one["code"] for one in answer.value["findings"] if one["defeats"]}
    assert answer.code == (9 if found else 0)
    return found


def labels(config: dict[str, Any]) -> dict[str, str]:
    """The image's labels about its find-db."""
    mark = "io.vega-image.finddb."
    return {k.removeprefix(mark): v for k, v in config["Labels"].items() if k.startswith(mark)}


def files(layout: Path) -> dict[str, bytes]:
    """All find-dbs, ours and upstream's, from the layers' tars."""
    found: dict[str, bytes] = {}
    manifest, _config = documents(layout)
    for layer in manifest["layers"]:
        blob = (layout / "blobs/sha256" / layer["digest"][7:]).read_bytes()
        plain = zstandard.ZstdDecompressor().decompressobj().decompress(blob)
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            for info in tar:
                if info.name.startswith((FOLDER, UPSTREAM)) and info.isfile():
                    file = tar.extractfile(info)
                    assert file is not None
                    found[info.name] = file.read()
    return found


def config_of(layout: Path) -> dict[str, Any]:
    """The image's process configuration."""
    _manifest, config = documents(layout)
    value: dict[str, Any] = config["config"]
    return value
