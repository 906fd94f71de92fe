"""The native build as values: what changes which inputs, and what stage.json says."""

from __future__ import annotations

import builtins
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windowsstages import FILES, PREBUILT, locked, parts, target, tree
from vega_image.errors import BytesError, UsageError
from vega_image.lock import LockedFile, LockedIso, LockedSource
from vega_image.windows.forecasts import forecast, forecast_stages
from vega_image.windows.recipes import windows_recipe
from vega_image.windows.references import MAKING, STAGES
from vega_image.windows.spec import Strategy, WindowsTarget
from vega_image.windows.stages import NativeStage, StageParts, native_stages, windows_text

PARTS = parts()


def made(
    spec: WindowsTarget | None = None,
    texts: StageParts = PARTS,
    sources: Mapping[str, LockedSource] | None = None,
) -> dict[str, NativeStage]:
    wanted = spec or target()
    found = native_stages(wanted, sources or locked(wanted), parts=texts)
    return {stage.name: stage for stage in found}


def changed(one: Mapping[str, NativeStage], two: Mapping[str, NativeStage]) -> list[str]:
    return [name for name in STAGES if one[name].inputs != two[name].inputs]


def manifest(stage: NativeStage) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(stage.manifest)
    return value


def test_every_stage_stands_in_a_numbered_folder_and_needs_the_one_before() -> None:
    stages = list(made().values())
    assert [stage.folder for stage in stages] == [
        f"{10 * number}-{name}" for number, name in enumerate(STAGES, 1)
    ]
    assert [stage.needs for stage in stages] == [(), *((name,) for name in STAGES[:-1])]


def test_what_does_not_decide_bytes_changes_nothing() -> None:
    same = target(title="another", description="another", version="9", licenses="ISC")
    assert changed(made(), made(same)) == []


# What each kind of file of a recipe can be given without saying anything else.
MORE = {".j2": b"# more\n", ".ps1": b"# more\n", ".json": b"\n", "cmd.j2": b"rem more\n"}
EVERY_FILE = [
    (recipe, name)
    for recipe, files in PARTS.recipes.items()
    for name in files
    if name != "recipe.yaml"
]


def edited(recipe: str, name: str = "stage.ps1.j2") -> StageParts:
    files = PARTS.recipes[recipe]
    more = next(more for end, more in reversed(MORE.items()) if name.endswith(end))
    changed = {**files, name: files[name] + more}
    return replace(PARTS, recipes={**PARTS.recipes, recipe: changed})


@pytest.mark.parametrize("name", STAGES)
def test_a_recipe_changes_its_stage_and_all_after_it(name: str) -> None:
    wanted = list(STAGES[STAGES.index(name) :])
    assert changed(made(), made(texts=edited(f"win-{name}"))) == wanted


@pytest.mark.parametrize(("recipe", "name"), EVERY_FILE)
def test_so_does_every_file_of_a_recipe(recipe: str, name: str) -> None:
    stage = recipe.removeprefix("win-")
    wanted = list(STAGES[STAGES.index(stage) :])
    assert changed(made(), made(texts=edited(recipe, name))) == wanted


def test_recipe_yaml_changes_the_stage_only_by_what_decides_bytes() -> None:
    files = PARTS.recipes["win-wheels"]
    for old, new, wanted in (
        (b"description: ", b"description: another ", []),
        (b"rocm_sdk_devel-*", b"rocm_sdk_other-*", ["wheels", "pytorch", "seal"]),
    ):
        assert old in files["recipe.yaml"]
        text = files["recipe.yaml"].replace(old, new)
        recipes = {**PARTS.recipes, "win-wheels": {**files, "recipe.yaml": text}}
        assert changed(made(), made(texts=replace(PARTS, recipes=recipes))) == wanted


def other_patch() -> StageParts:
    name = "0001-paldevice-vega20.edits.json"
    data = PARTS.patches[name] + b"\n"
    table = json.loads(PARTS.patches["patches.json"])
    table["patches"][0]["sha256"] = hashlib.sha256(data).hexdigest()
    patches = {**PARTS.patches, name: data, "patches.json": json.dumps(table).encode()}
    return replace(PARTS, patches=patches)


@pytest.mark.parametrize("clr", ["pal-patch", "rocr", "old-clr"])
def test_a_patch_changes_the_runtime_where_it_is_applied(clr: str) -> None:
    spec = target(clr=clr)
    wanted = list(STAGES[1:]) if clr == "pal-patch" else []
    assert changed(made(spec), made(spec, other_patch())) == wanted


def test_a_patch_that_is_not_what_the_table_says_stops_the_rendering() -> None:
    name = "0002-palsettings-vega20.edits.json"
    patches = {**PARTS.patches, name: PARTS.patches[name] + b"\n"}
    with pytest.raises(BytesError) as caught:
        made(texts=replace(PARTS, patches=patches))
    assert (caught.value.code, caught.value.exit_code) == ("PATCH_CHANGED", 4)


def with_steps() -> StageParts:
    scripts = {**PARTS.scripts, "steps.ps1": PARTS.scripts["steps.ps1"] + b"# more\n"}
    return replace(PARTS, scripts=scripts)


def with_runner() -> StageParts:
    scripts = {**PARTS.scripts, "run-stage.ps1": b"# another\n"}
    return replace(PARTS, scripts=scripts)


@pytest.mark.parametrize(
    ("first", "what"),
    [
        ("compiler-runtime", lambda: made(target(clr="rocr"))),
        ("compiler-runtime", lambda: made(target(prebuilt=frozenset(PREBUILT)))),
        ("enumeration", lambda: made(target(first_boot={"cards": ["66A1"]}))),
        ("seal", lambda: made(target(finddb="strict"))),
        ("seal", lambda: made(texts=replace(PARTS, finddb={"environment": b"B=1\n"}))),
        ("pytorch", lambda: made(target(prebuilt=frozenset({"pytorch"})))),
        ("prerequisites", lambda: made(target(stack={"rocm": "10.2.0", "pytorch": "2.12"}))),
        ("prerequisites", lambda: made(target(gpu="gfx900"))),
        ("prerequisites", lambda: made(texts=with_steps())),
        ("prerequisites", lambda: made(sources=locked(target(), known=True))),
        (None, lambda: made(texts=with_runner())),
    ],
)
def test_the_first_stage_that_a_change_reaches(
    first: str | None, what: Callable[[], dict[str, NativeStage]]
) -> None:
    wanted = [] if first is None else list(STAGES[STAGES.index(first) :])
    assert changed(made(), what()) == wanted


@given(
    st.sampled_from(sorted(locked(target()))), st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
)
@settings(max_examples=20, deadline=None)
def test_a_locked_source_changes_the_first_stage_that_has_it(name: str, sha256: str) -> None:
    spec = target()
    before = locked(spec)
    source = before[name]
    if source.kind == "file":
        change: dict[str, Any] = {"sha256": sha256, "size": 5}
    else:
        change = {"commit": sha256[:40]}
    if source.model_copy(update=change) == source:
        return
    after = {**before, name: source.model_copy(update=change)}
    users = [stage.name for stage in spec.stages if name in stage.sources]
    wanted = list(STAGES[STAGES.index(users[0]) :]) if users else []
    assert changed(made(spec, sources=before), made(spec, sources=after)) == wanted


def test_what_is_unresolved_has_no_digest_anywhere() -> None:
    for stage in made().values():
        for row in manifest(stage)["sources"]:
            unknown = row["name"] in FILES or row["name"] == "pytorch"
            assert row["unresolved"] is unknown
            pinned = row["commit"] if row["kind"] == "git" else row["sha256"]
            assert (pinned is None) is unknown
            assert row["kind"] == "git" or (row["size"] is None) is unknown


def test_a_size_alone_is_no_digest() -> None:
    spec = target()
    half = LockedFile(kind="file", file="ninja.bin", size=7, sha256=None)
    rows = manifest(made(spec, sources={**locked(spec), "ninja": half})["prerequisites"])
    row = next(item for item in rows["sources"] if item["name"] == "ninja")
    assert (row["unresolved"], row["sha256"], row["size"]) == (True, None, 7)


def test_what_is_locked_stands_in_the_manifest() -> None:
    spec = target()
    rows = manifest(made(spec, sources=locked(spec, known=True))["pytorch"])["sources"]
    assert [(row["name"], row["commit"], row["unresolved"]) for row in rows[:2]] == [
        ("therock", f"{1:040x}", False),
        ("pytorch", "d" * 40, False),
    ]
    assert rows[2] == {
        "name": "python-wheels",
        "kind": "file",
        "file": "python-wheels.bin",
        "version": None,
        "sha256": "e" * 64,
        "size": 7,
        "url": None,
        "commit": None,
        "branch": None,
        "unresolved": False,
    }


def test_the_manifest_has_the_agreed_fields() -> None:
    found = manifest(made()["compiler-runtime"])
    agreed = {"schema", "stage", "recipe", "strategy", "status", "inputs", "needs", "minutes",
              "disk_gib", "memory_gib", "sources"}  # fmt: skip
    assert agreed < found.keys()
    assert (found["schema"], found["status"], found["strategy"]) == (1, "rendered", "source")
    assert (found["needs"], found["options"]) == (["prerequisites"], {"clr": "pal-patch"})
    assert found["inputs"].startswith("sha256:")
    assert [row["status"] for row in found["patches"]] == ["unproven", "unproven"]


@pytest.mark.parametrize("clr", ["rocr", "old-clr"])
def test_only_the_patch_route_applies_patches(clr: str) -> None:
    assert manifest(made(target(clr=clr))["compiler-runtime"])["patches"] == []
    prebuilt = target(prebuilt=frozenset(PREBUILT))
    assert manifest(made(prebuilt)["compiler-runtime"])["patches"] == []


def test_cards_and_profile_stand_only_where_they_are_read() -> None:
    found = {name: manifest(stage) for name, stage in made().items()}
    assert [name for name in STAGES if "cards" in found[name]] == ["enumeration", "seal"]
    assert [name for name in STAGES if "profile" in found[name]] == ["seal"]
    assert found["seal"]["cards"] == ["1002:66af"]


def test_the_rendered_tree() -> None:
    files = tree(target())
    assert all(
        path.startswith(("media/vega/stages/", "media/vega/patches/clr/")) for path in files
    )
    assert "media/vega/stages/70-seal/finddb/environment" in files
    assert not any(path.endswith((".j2", "recipe.yaml")) for path in files)
    for path, data in files.items():
        if path.endswith((".ps1", ".cmd")) and "/finddb/" not in path:
            assert data.isascii()
            assert data.count(b"\n") == data.count(b"\r\n") > 0
        else:
            assert b"\r" not in data or "/finddb/" in path
    assert tree(target()) == files


def test_the_strategy_decides_what_a_script_does() -> None:
    source, other = tree(target()), tree(target(prebuilt=frozenset(PREBUILT)))
    differ = {path for path in source if source[path] != other.get(path)}
    scripts = {path.split("/")[-2] for path in differ if path.endswith("stage.ps1")}
    assert scripts == {"20-compiler-runtime", "40-math-libs", "50-wheels", "60-pytorch"}
    for path, data in other.items():
        if path.split("/")[-2].partition("-")[2] in MAKING and path.endswith("stage.ps1"):
            assert b"Expand-Office" in data
            assert b"Invoke-Native" not in data


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (target(clr="magic"), "stages.1.options.clr: no choice 'magic'; there are pal-patch"),
        (target(prebuilt=frozenset({"compiler-runtime"})), "stages.3.strategy: math-libs"),
        (target(prebuilt=frozenset({"math-libs"})), "stages.4.strategy: wheels from source"),
    ],
)
def test_what_cannot_be_built_is_refused(spec: WindowsTarget, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(spec)
    assert caught.value.code == "STAGES_UNFIT"
    assert f"images/windows-ltsc.yaml: {said}" in caught.value.message


def test_a_recipe_says_which_sources_it_wants() -> None:
    spec = target(clr="old-clr")
    rows = list(spec.stages)
    rows[1] = rows[1].model_copy(update={"sources": ("rocm-systems",)})
    sources = {**spec.sources, "rocm-systems": spec.sources["ninja"]}
    with pytest.raises(UsageError) as caught:
        made(spec.model_copy(update={"stages": tuple(rows), "sources": sources}))
    recipe = "recipe win-compiler-runtime wants"
    for said in (
        f"stages.1.sources: {recipe} therock (git)",
        f"sources.rocm-systems.kind: {recipe} rocm-systems as git",
        "stages.1.sources: old-clr wants a git source `clr`",
    ):
        assert said in caught.value.message


def test_a_source_that_is_no_file_and_no_commit_is_refused() -> None:
    spec = target()
    iso = LockedIso(kind="iso", iso="x", size=1, sha256="a" * 64, editions={})
    with pytest.raises(UsageError, match="git and file sources, not iso"):
        made(spec, sources={**locked(spec), "ninja": iso})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"description: x\nstatus: proven\noutputs: [a]\n", "status"),
        (b"description: x\nstatus: rendered\noutputs: []\n", "outputs"),
        (b"description: x\nstatus: rendered\noutputs: [a]\nreads: [moon]\n", "reads"),
        (b"{", "not YAML"),
        (b"\xff", "not YAML"),
    ],
)
def test_a_bad_recipe_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        windows_recipe("win-x", {"recipe.yaml": text})
    assert caught.value.code == "RECIPE_INVALID"
    assert f"templates/stages/win-x/recipe.yaml: {said}" in caught.value.message


def test_a_recipe_without_recipe_yaml_is_refused() -> None:
    with pytest.raises(UsageError, match="there is none"):
        windows_recipe("win-x", {})


def test_a_script_that_is_not_ascii_is_refused() -> None:
    files = {**PARTS.recipes["win-seal"], "stage.ps1.j2": "# \u00e9\n".encode()}
    texts = replace(PARTS, recipes={**PARTS.recipes, "win-seal": files})
    with pytest.raises(UsageError, match="plain ASCII"):
        made(texts=texts)


@given(st.binary())
def test_line_ends_of_scripts(data: bytes) -> None:
    found = windows_text("x.ps1", data)
    assert found.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n")
    assert windows_text("x.ps1", found) == found
    assert windows_text("x.json", data) == data


def test_every_stage_has_bounds_with_a_source() -> None:
    assert forecast_stages() == set(STAGES)
    for name in STAGES:
        for strategy in (None, Strategy.SOURCE, Strategy.PREBUILT):
            found = forecast(name, strategy)
            assert all(
                bound.source for bound in (found.minutes, found.disk_gib, found.memory_gib)
            )
    assert forecast("math-libs", Strategy.SOURCE).minutes.value == 480
    assert forecast("math-libs", Strategy.PREBUILT).minutes.value < 480


def test_nothing_is_read_or_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def bomb(*_args: object, **_kwargs: object) -> NoReturn:
        msg = "a pure module touched the world"
        raise AssertionError(msg)

    spec = target()
    sources, before = locked(spec), tree(spec)
    with monkeypatch.context() as world:
        world.setattr(builtins, "open", bomb)
        stages = native_stages(spec, sources, parts=PARTS)
    assert stages[0].manifest == before["media/vega/stages/10-prerequisites/stage.json"]
