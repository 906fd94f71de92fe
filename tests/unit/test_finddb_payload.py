"""What a find-db adds to an image, and that nothing in a spec quietly undoes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import factory
from tests.factory import MAKERS, RECIPES
from tests.finddbevidence import DB, curated, evidence, passed
from vega_image.errors import UsageError
from vega_image.finddb.evidence import Terms
from vega_image.finddb.fallback import SOLVERS
from vega_image.finddb.manifest import MANIFEST, folder_of
from vega_image.finddb.payload import FOLDER, Payload, payload, with_payload
from vega_image.finddb.profile import Profile
from vega_image.finddb.rule import shipped_rules
from vega_image.lockfile import encode_lock
from vega_image.plan import StepKind, make_plan
from vega_image.rootfs.content import Contents
from vega_image.rootfs.generated import TARGET_PATH, Provenance, generated
from vega_image.spec import FindDb, FindDbProfile, FindDbSource, Target
from vega_image.store import Store

NAME = "gfx906_60.HIP.fdb.txt"
SOLVER = "ConvOclBwdWrW2<1>"
DATABASE = FindDbSource(package="hello", path="usr/share/hello/db.txt")
LABEL = "io.vega-image.finddb."
NOTHING: Mapping[str, bytes] = {}
NO_VARIABLES: Mapping[str, str] = {}


def spec(
    profile: str = "safe", *, database: bool = False, env: Mapping[str, str] = NO_VARIABLES
) -> Target:
    old = factory.target()
    image = old.config.model_copy(update={"env": {**old.config.env, **env}})
    finddb = FindDb(profile=FindDbProfile(profile), database=DATABASE if database else None)
    return old.model_copy(update={"finddb": finddb, "image": image})


def made(target: Target, baked: Mapping[str, bytes] = NOTHING) -> Payload:
    return payload(target, factory.lock(factory.target()), baked)


def folder(*journals: bytes, profile: str = "safe") -> dict[str, bytes]:
    """Curate as `finddb curate` does."""
    result = curated(*journals, profile=profile)
    terms, found = Terms(), evidence(*journals)
    return folder_of(result, found, rules=shipped_rules(), terms=terms, source=DB)


def refused(target: Target, baked: Mapping[str, bytes] = NOTHING) -> str:
    with pytest.raises(UsageError) as caught:
        made(target, baked)
    return caught.value.code


def test_a_target_without_one_gets_nothing() -> None:
    target = factory.target()
    added = made(target, folder())
    assert (added.env, added.labels, added.baked, added.database) == ({}, {}, {}, None)
    assert with_payload(target, added) == target


def test_safe_leaves_the_fallback_solvers_and_an_ephemeral_user_db() -> None:
    env = made(spec()).env
    assert env["MIOPEN_DEBUG_FIND_ONLY_SOLVER"].split(";") == list(SOLVERS)
    assert env["MIOPEN_SYSTEM_DB_PATH"] == f"/{FOLDER}"
    assert env["MIOPEN_USER_DB_PATH"].startswith("/tmp/")
    off = {name for name, value in env.items() if value == "0"}
    assert {"MIOPEN_DEBUG_CONV_DIRECT_OCL_WRW2", "MIOPEN_DEBUG_CONV_DIRECT_ASM_3X3U"} <= off
    assert not any("NAIVE" in name for name in env)


@pytest.mark.parametrize(
    ("journals", "profile", "status"),
    [
        ((), "safe", "unproven"),
        ((passed(SOLVER),), "safe", "partly-proven"),
        ((passed(SOLVER),), "strict", "proven"),
    ],
)
def test_the_label_is_the_manifests_own_status(
    journals: tuple[bytes, ...], profile: str, status: str
) -> None:
    added = made(spec(profile), folder(*journals, profile=profile))
    assert added.labels == {
        f"{LABEL}profile": profile,
        f"{LABEL}status": status,
        f"{LABEL}origin": "baked",
    }
    served = "MIOPEN_DEBUG_CONV_DIRECT_OCL_WRW2" not in added.env
    assert served == (status != "unproven")


@pytest.mark.parametrize("profile", Profile)
def test_without_records_every_profile_says_unproven(profile: Profile) -> None:
    added = made(spec(profile.value))
    assert added.labels[f"{LABEL}status"] == "unproven"
    assert added.labels[f"{LABEL}origin"] == "none"


def test_the_packages_file_is_taken_unless_one_was_baked() -> None:
    added = made(spec(database=True))
    assert added.database is not None
    assert added.inputs == {"hello": f"sha256:{added.database.sha256}"}
    assert added.labels[f"{LABEL}origin"] == "package"
    other = made(spec(database=True), folder(passed(SOLVER)))
    assert other.database is None
    assert set(other.inputs) == {f"baked:{n}" for n in (NAME, MANIFEST, "evidence.tsv")}
    assert made(spec("strict", database=True)).database is None
    assert made(spec("upstream", database=True)).database is not None


def test_a_package_that_is_not_locked_is_named() -> None:
    lost = FindDb(database=FindDbSource(package="hallo", path="x"))
    assert refused(factory.target().model_copy(update={"finddb": lost})) == "FINDDB_PACKAGE"


def test_what_is_not_whole_or_of_another_profile_is_refused() -> None:
    good = folder(passed(SOLVER))
    assert refused(spec("strict"), good) == "PROFILE_DIFFERS"
    assert refused(spec(), {**good, NAME: good[NAME][:-9]}) == "CURATED_CHANGED"
    assert refused(spec(), {**good, "../x": b""}) == "CURATED_CHANGED"
    assert refused(spec(), {NAME: good[NAME]}) == "MANIFEST_ABSENT"
    claimed = json.loads(good[MANIFEST]) | {"status": "certified"}
    assert refused(spec(), {**good, MANIFEST: json.dumps(claimed).encode()}) == (
        "MANIFEST_INVALID"
    )


@pytest.mark.parametrize("name", ["MIOPEN_USER_DB_PATH", "MIOPEN_FIND_MODE", "MIOPEN_X"])
def test_a_spec_cannot_defeat_the_profile(name: str) -> None:
    target = spec(env={name: "/root"})
    assert refused(target) == "FINDDB_DEFEATED"
    upstream = target.model_copy(update={"finddb": FindDb(profile=FindDbProfile.UPSTREAM)})
    assert made(upstream).env == {}


def test_adding_it_twice_changes_nothing() -> None:
    once = with_payload(spec(), made(spec()))
    assert with_payload(once, made(once)) == once
    assert once.config.env.items() > spec().config.env.items()


def test_other_records_make_another_find_db_and_nothing_before() -> None:
    target = spec()
    makers = {StepKind(kind): digest for kind, digest in MAKERS.items()}

    def ids(**inputs: str) -> dict[str, str]:
        locked = factory.lock(factory.target())
        plan = make_plan(
            target, locked, makers=makers, recipes=RECIPES, made_of={StepKind.FINDDB: inputs}
        )
        return {step.name: step.id for step in plan}

    one, two, none = ids(db="sha256:1"), ids(db="sha256:2"), ids()
    after = ["finddb", "layers", "image"]
    assert list(one)[-3:] == after
    assert [name for name in one if one[name] != two[name]] == after
    assert [name for name in one if one[name] != none[name]] == after


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
