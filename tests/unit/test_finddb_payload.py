"""What a find-db adds to an image, and that nothing in a spec quietly undoes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import factory
from tests.factory import MAKERS, RECIPES
from vega_image.errors import UsageError
from vega_image.finddb.payload import FALLBACK, FOLDER, MANIFEST, payload, with_payload
from vega_image.lockfile import encode_lock
from vega_image.plan import StepKind, make_plan
from vega_image.rootfs.content import Contents
from vega_image.rootfs.generated import TARGET_PATH, Provenance, generated
from vega_image.spec import FindDb, FindDbProfile, Target
from vega_image.store import Store

RECORDS = b"1-2-3=GemmFwdRest:1,0,miopenConvolutionFwdAlgoGEMM\n"


def spec(profile: str = "safe", **env: str) -> Target:
    old = factory.target()
    image = old.image.model_copy(update={"env": {**old.image.env, **env}})
    finddb = FindDb(profile=FindDbProfile(profile))
    return old.model_copy(update={"finddb": finddb, "image": image})


def refused(target: Target, baked: dict[str, bytes]) -> str:
    with pytest.raises(UsageError) as caught:
        payload(target, baked)
    return caught.value.code


def test_a_target_without_one_gets_nothing() -> None:
    target = factory.target()
    added = payload(target, {"x.fdb.txt": RECORDS})
    assert (added.files, added.env, added.labels) == ({}, {}, {})
    assert with_payload(target, added) == target


def test_safe_leaves_the_fallback_solvers_and_an_ephemeral_user_db() -> None:
    env = payload(spec(), {}).env
    assert env["MIOPEN_DEBUG_FIND_ONLY_SOLVER"].split(";") == list(FALLBACK)
    assert env["MIOPEN_SYSTEM_DB_PATH"] == f"/{FOLDER}"
    assert env["MIOPEN_USER_DB_PATH"].startswith("/tmp/")
    assert env["MIOPEN_DEBUG_ENABLE_AI_IMMED_MODE_FALLBACK"] == "0"
    off = {name for name, value in env.items() if value == "0"}
    assert {"MIOPEN_DEBUG_CONV_WINOGRAD", "MIOPEN_DEBUG_CONV_DIRECT_OCL_WRW2"} <= off
    assert "MIOPEN_DEBUG_CONV_GEMM" not in env
    assert "MIOPEN_DEBUG_GCN_ASM_KERNELS" not in env, "it switches the naive solvers off too"
    assert not any("NAIVE" in name for name in env)


def test_without_records_the_image_says_unproven() -> None:
    added = payload(spec(), {})
    manifest = json.loads(added.files[MANIFEST])
    assert (manifest["status"], manifest["records"]) == ("unproven", 0)
    assert added.labels == {
        "io.vega-image.finddb.profile": "safe",
        "io.vega-image.finddb.status": "unproven",
    }


def test_baked_files_are_taken_as_they_are() -> None:
    baked = {"manifest.json": b'{"status": "unproven"}', "gfx906_60.HIP.fdb.txt": RECORDS}
    added = payload(spec(), baked)
    assert added.files == {f"{FOLDER}/{name}": data for name, data in baked.items()}
    assert added.labels["io.vega-image.finddb.status"] == "unproven"


@pytest.mark.parametrize("manifest", [b'{"status": "proven"}', b"{}", b'["unproven"]', b"{"])
def test_a_manifest_cannot_claim_more_than_unproven(manifest: bytes) -> None:
    assert refused(spec(), {"manifest.json": manifest}) == "FINDDB_BAKED"


@pytest.mark.parametrize("name", ["MIOPEN_USER_DB_PATH", "MIOPEN_FIND_MODE", "MIOPEN_X"])
def test_a_spec_cannot_defeat_the_profile(name: str) -> None:
    assert refused(spec(**{name: "/root"}), {}) == "FINDDB_DEFEATED"


def test_adding_it_twice_changes_nothing() -> None:
    once = with_payload(spec(), payload(spec(), {}))
    assert with_payload(once, payload(once, {})) == once
    assert once.image.env.items() > spec().image.env.items()


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "a b", "x\n"])
def test_a_baked_file_has_a_plain_name(name: str) -> None:
    assert refused(spec(), {name: b""}) == "FINDDB_BAKED"


@pytest.mark.parametrize("profile", ["strict", "upstream"])
def test_a_profile_that_does_not_exist_yet_is_refused(profile: str) -> None:
    assert refused(spec(profile), {}) == "FINDDB_PROFILE"


def test_other_records_make_other_layers_and_nothing_before() -> None:
    target = factory.target()
    makers = {StepKind(kind): digest for kind, digest in MAKERS.items()}

    def ids(**files: str) -> dict[str, str]:
        plan = make_plan(
            target, factory.lock(target), makers=makers, recipes=RECIPES, files=files
        )
        return {step.name: step.id for step in plan}

    one, two, none = ids(db="sha256:1"), ids(db="sha256:2"), ids()
    assert [name for name in one if one[name] != two[name]] == ["layers", "image"]
    assert [name for name in one if one[name] != none[name]] == ["layers", "image"]


def test_the_files_are_in_the_tree_byte_for_byte(tmp_path: Path) -> None:
    store = Store(tmp_path)
    target = spec()
    lock = encode_lock(factory.lock(factory.target()))
    files = payload(target, {"gfx906_60.HIP.fdb.txt": b"\xff\0" + RECORDS}).files
    tree = generated(Provenance(target=target, lock=lock, files=files), store).by_path()
    content = tree[f"{FOLDER}/gfx906_60.HIP.fdb.txt"].content
    assert content is not None
    assert bytes(Contents(store).view(content)) == b"\xff\0" + RECORDS
    assert tree[MANIFEST].owner == "vega-image"


def test_an_image_without_one_says_nothing_about_it(tmp_path: Path) -> None:
    """Or the digests of all images built before would change."""
    store = Store(tmp_path)
    target = factory.target()
    lock = encode_lock(factory.lock(target))
    content = (
        generated(Provenance(target=target, lock=lock), store).by_path()[TARGET_PATH].content
    )
    assert content is not None
    assert b"finddb" not in bytes(Contents(store).view(content))
