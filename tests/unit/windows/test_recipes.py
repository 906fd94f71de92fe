"""The seven recipes: what each wants, which specs they refuse, and what they render."""

from __future__ import annotations

import json
import re
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windowsstages import PREBUILT, locked, parts, target, tree
from vega_image.windows.clrpatches import Clr
from vega_image.windows.recipes import unbuildable, windows_recipe
from vega_image.windows.references import MAKING, STAGES
from vega_image.windows.spec import Strategy, WindowsTarget
from vega_image.windows.stages import native_stages

PARTS = parts()
RECIPES = {name: windows_recipe(name, files) for name, files in PARTS.recipes.items()}
SUBSETS = [frozenset(some) for n in range(5) for some in combinations(PREBUILT, n)]
CHOICES = [choice.value for choice in Clr]
subsets = st.sampled_from(SUBSETS)


def refused(spec: WindowsTarget) -> list[tuple[str, str]]:
    return list(unbuildable(spec, RECIPES))


def breaks_the_chain(prebuilt: frozenset[str]) -> set[str]:
    """Return the stages that would go on in a build tree that is not there."""
    pairs = (("compiler-runtime", "math-libs"), ("math-libs", "wheels"))
    return {after for before, after in pairs if before in prebuilt and after not in prebuilt}


def with_stage(spec: WindowsTarget, index: int, **change: object) -> WindowsTarget:
    stages = list(spec.stages)
    stages[index] = stages[index].model_copy(update=change)
    return spec.model_copy(update={"stages": tuple(stages)})


def test_there_is_one_recipe_for_every_stage_and_none_ever_ran() -> None:
    assert set(RECIPES) == {f"win-{name}" for name in STAGES}
    for name, recipe in RECIPES.items():
        assert recipe.status == "rendered"
        assert recipe.description.strip()
        # Only a stage that makes something has two ways to its result.
        making = name.removeprefix("win-") in MAKING
        assert bool(recipe.wants.source) is bool(recipe.wants.prebuilt) is making


@pytest.mark.parametrize(("prebuilt", "clr"), list(product(SUBSETS, CHOICES)))
def test_a_spec_is_buildable_unless_a_build_tree_is_missing(
    prebuilt: frozenset[str], clr: str
) -> None:
    spec = target(clr=clr, prebuilt=prebuilt)
    found = refused(spec)
    wanted = breaks_the_chain(prebuilt)
    assert {message.split()[0] for _, message in found} == wanted
    for path, message in found:
        index = [stage.name for stage in spec.stages].index(message.split()[0])
        assert path == f"stages.{index}.strategy"


@pytest.mark.parametrize(
    ("prebuilt", "clr"),
    [(some, clr) for some in SUBSETS if not breaks_the_chain(some) for clr in CHOICES],
)
def test_every_buildable_spec_renders_every_stage(prebuilt: frozenset[str], clr: str) -> None:
    spec = target(clr=clr, prebuilt=prebuilt)
    stages = native_stages(spec, locked(spec), parts=PARTS)
    assert [stage.name for stage in stages] == list(STAGES)
    for stage in stages:
        said = json.loads(stage.manifest)
        made = {"source", "prebuilt"} if stage.name in MAKING else {""}
        assert said["strategy"] in made
        assert (said["strategy"] == "prebuilt") is (stage.name in prebuilt)
        script = stage.files["stage.ps1"]
        assert script.isascii()
        assert b"{{" not in script
        assert b"{%" not in script
    assert len({stage.inputs for stage in stages}) == len(STAGES)


@given(subsets, st.data())
@settings(max_examples=60, deadline=None)
def test_a_stage_without_a_source_that_its_recipe_wants_is_refused(
    prebuilt: frozenset[str], data: st.DataObject
) -> None:
    spec = target(prebuilt=prebuilt)
    index = data.draw(st.sampled_from([i for i, s in enumerate(spec.stages) if s.sources]))
    stage = spec.stages[index]
    gone = data.draw(st.sampled_from(stage.sources))
    wants = RECIPES[stage.recipe].wants
    more = {Strategy.SOURCE: wants.source, Strategy.PREBUILT: wants.prebuilt, None: {}}
    wanted = {**wants.always, **more[stage.strategy]}
    kept = tuple(name for name in stage.sources if name != gone)
    found = set(refused(with_stage(spec, index, sources=kept))) - set(refused(spec))
    said = f"recipe {stage.recipe} wants {gone} ({wanted[gone]})"
    assert found == {(f"stages.{index}.sources", said)}


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_source_of_another_kind_is_refused_wherever_it_is_wanted(data: st.DataObject) -> None:
    spec = target()
    named = sorted({name for stage in spec.stages for name in stage.sources})
    name = data.draw(st.sampled_from(named))
    kind = spec.sources[name].kind
    other = spec.sources["ninja" if kind == "git" else "therock"]
    found = refused(spec.model_copy(update={"sources": {**spec.sources, name: other}}))
    users = [stage.recipe for stage in spec.stages if name in stage.sources]
    said = {(f"sources.{name}.kind", f"recipe {user} wants {name} as {kind}") for user in users}
    assert set(found) == said


@given(st.text(max_size=12).filter(lambda text: text not in CHOICES))
def test_a_choice_of_clr_that_there_is_not_is_refused(text: str) -> None:
    [(path, message)] = refused(with_stage(target(), 1, options={"clr": text}))
    assert path == "stages.1.options.clr"
    assert all(choice in message for choice in CHOICES)


@pytest.mark.parametrize("change", ["not listed", "not there", "a file"])
def test_old_clr_wants_its_source(change: str) -> None:
    spec = target(clr="old-clr")
    assert refused(spec) == []
    sources: dict[str, Any] = dict(spec.sources)
    if change == "not listed":
        kept = tuple(name for name in spec.stages[1].sources if name != "clr")
        spec = with_stage(spec, 1, sources=kept)
    elif change == "not there":
        del sources["clr"]
    else:
        sources["clr"] = sources["ninja"]
    [(path, message)] = refused(spec.model_copy(update={"sources": sources}))
    assert path == "stages.1.sources"
    assert "old-clr wants a git source `clr`" in message


def test_a_recipe_that_is_not_there_is_not_judged() -> None:
    spec = with_stage(target(), 0, recipe="win-other", sources=())
    assert refused(spec) == []


@pytest.mark.parametrize("clr", CHOICES)
def test_the_manifest_carries_the_choice_that_the_script_makes(clr: str) -> None:
    files = tree(target(clr=clr))
    folder = "media/vega/stages/20-compiler-runtime"
    said = json.loads(files[f"{folder}/stage.json"])
    assert said["options"] == {"clr": clr}
    assert [row["name"] for row in said["sources"]].count("clr") == (clr == "old-clr")
    # GPU_ENABLE_PAL=0 for rocr, and no variable at all for the others.
    script = files[f"{folder}/clr.ps1"].decode()
    assert "$BackendName = 'GPU_ENABLE_PAL'" in script
    assert re.search(r"-ceq 'rocr'\) \{\r\n +\$value = '0'", script)
    assert f"-{'cne' if clr == 'rocr' else 'ceq'} '{clr}'" in script


# What TheRock leaves out on Windows; hipSPARSELt stands with the card's exclusions.
ON_WINDOWS = (
    *("rocm_smi", "amdsmi", "ROCR-Runtime", "rocminfo", "profilers", "rccl", "rocroller"),
    *("mxDataGenerator", "rocgdb", "hipFile", "media libraries"),
)
# The smallest set that PyTorch needs.
FLAGS = {
    "20-compiler-runtime": ("COMPILER", "HIP_RUNTIME", "CORE_HIPINFO"),
    "40-math-libs": ("BLAS", "SOLVER", "SPARSE", "PRIM", "RAND", "FFT", "MIOPEN"),
}


@pytest.mark.parametrize("folder", FLAGS)
def test_the_minimal_set_is_asked_for_and_nothing_else(folder: str) -> None:
    text = tree(target())[f"media/vega/stages/{folder}/stage.ps1"].decode()
    on = set(re.findall(r"'-DTHEROCK_ENABLE_(\w+)=ON'", text))
    below = set(FLAGS["20-compiler-runtime"])
    assert on == below | set(FLAGS[folder])
    assert re.findall(r"'-DTHEROCK_ENABLE_(\w+)=OFF'", text) == ["ALL"]
    assert re.findall(r"'-DTHEROCK_AMDGPU_FAMILIES=(\w+)'", text) == ["gfx906"]
    for word in ("'--preset', 'windows-release'", "'-DBUILD_TESTING=OFF'", "'Ninja'"):
        assert word in text


def test_another_card_is_another_build() -> None:
    for path, data in tree(target(gpu="gfx900")).items():
        if path.endswith(("stage.ps1", "build.cmd", "stage.json")):
            assert b"gfx906" not in data, path


def test_what_windows_and_the_card_exclude_is_looked_for_in_the_result() -> None:
    files = tree(target())
    folder = "media/vega/stages/40-math-libs"
    table = json.loads(files[f"{folder}/exclusions.json"])
    said = " ".join(row["project"] for row in table["on_windows"])
    for name in ON_WINDOWS:
        assert name in said
    placeholder = table["placeholder"][0]
    assert (placeholder["project"], placeholder["issue"]) == ("hipBLASLt", "ROCm/TheRock#1062")
    assert "gfx1100" in placeholder["why"]
    # A library that is built as a placeholder must not be refused as an excluded one.
    patterns = [
        p for kind in ("on_gfx906", "on_windows") for r in table[kind] for p in r["absent"]
    ]
    assert {"hipsparselt*.dll", "hiptensor*.dll", "rccl*.dll"} <= set(patterns)
    assert not any(p.startswith(("hipblaslt", "rocblas", "MIOpen")) for p in patterns)
    # The other strategy's result is held against the same table.
    other = tree(target(prebuilt=frozenset(PREBUILT)))
    script = other[f"{folder}/libraries.ps1"].decode()
    assert "Assert-Excluded -Folder" in script.split("function Install-Library")[1]
    assert b"Install-Library -From" in other[f"{folder}/stage.ps1"]
    assert b"Assert-MIOpen -Folder" in files[f"{folder}/stage.ps1"]
