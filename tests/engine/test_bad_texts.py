"""Specs, locks and command lines as people get them wrong: code, place and way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tiny import Tiny

pytestmark = pytest.mark.needs("busybox")


def test_an_unknown_target_is_guessed(tiny: Tiny) -> None:
    for word in ("build", "plan", "lock", "check"):
        answer = tiny.json(word, "tinny")
        assert answer.error == (2, "UNKNOWN_TARGET")
        assert "did you mean 'tiny'?" in answer.value["error"]["message"]
        assert answer.value["error"]["hint"] == "vega-image targets"


@pytest.mark.parametrize("name", ["../images/tiny", "tiny\n", "x" * 5000])
def test_a_target_is_a_name_not_a_path(tiny: Tiny, name: str) -> None:
    assert tiny("plan", "--json", "--", name).error == (2, "UNKNOWN_TARGET")
    assert tiny("inspect", "--json", "--", name).error == (2, "IMAGE_UNKNOWN")


def test_all_unknown_keys_at_once_with_file_and_line(tiny: Tiny) -> None:
    tiny.edit("licenses:", "licences:")
    tiny.edit("exclude:", "exclud:")
    tiny.edit("{codec: zstd, level: 1}", "{codec: zstd, levl: 1}")
    answer = tiny.json("build", "tiny")
    assert answer.error == (2, "SPEC_INVALID")
    message = answer.value["error"]["message"]
    lines = tiny.spec.read_text().splitlines()
    for wrong, guess in (("licences", "licenses"), ("exclud", "exclude"), ("levl", "level")):
        number = next(i for i, line in enumerate(lines, 1) if f"{wrong}:" in line)
        (found,) = [row for row in message.splitlines() if f"{wrong}: no such key" in row]
        assert found.startswith(f"images/tiny.yaml:{number}: ")
        assert f"did you mean '{guess}'?" in found


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "SPEC_NOT_YAML"),
        ("a: [1\n", "SPEC_NOT_YAML"),
        ("a: !!python/object:os.system x\n", "SPEC_NOT_YAML"),
        ("schema: 1\nschema: 1\n", "SPEC_INVALID"),
        ("a: &a {b: *a}\n", "SPEC_NOT_YAML"),
        ("[" * 3000, "SPEC_NOT_YAML"),
    ],
)
def test_what_is_no_spec_is_refused(tiny: Tiny, text: str, code: str) -> None:
    tiny.spec.write_text(text)
    assert tiny.refused("plan", "tiny") == (2, code)


def test_binary_and_folders_are_no_specs(tiny: Tiny) -> None:
    tiny.spec.write_bytes(b"\xff\xfe\0")
    assert tiny.refused("plan", "tiny") == (2, "SPEC_NOT_YAML")
    tiny.spec.unlink()
    tiny.spec.mkdir()
    assert tiny.refused("plan", "tiny") == (2, "UNREADABLE")


def test_a_spec_under_another_name_is_refused(tiny: Tiny) -> None:
    tiny.edit("name: tiny\n", "name: huge\n")
    assert tiny.refused("plan", "tiny") == (2, "SPEC_INVALID")


def test_a_recipe_that_is_not_there_is_guessed(tiny: Tiny) -> None:
    tiny.edit("recipe: greet", "recipe: great")
    answer = tiny.json("plan", "tiny")
    assert answer.error == (2, "SPEC_INVALID")
    assert "did you mean 'greet'?" in answer.value["error"]["message"]


def test_options_are_those_of_the_recipe(tiny: Tiny) -> None:
    tiny.edit('word: hello, seconds: "0"', "wrd: hello")
    answer = tiny.json("plan", "tiny")
    assert answer.error == (2, "SPEC_INVALID")
    message = answer.value["error"]["message"]
    assert "recipe greet has no option 'wrd'; did you mean 'word'?" in message
    assert "recipe greet wants the option 'seconds' too" in message


@pytest.mark.parametrize(
    "text",
    [
        "{{ option.wrd | json }}",
        "{{ wrd }}",
        "{{ 1 / 0 }}",
        "{{ gpu + 1 }}",
        "{% if %}",
        "\xff",
    ],
)
def test_a_template_that_goes_wrong_is_named(tiny: Tiny, text: str) -> None:
    template = tiny.factory / "templates/stages/greet/Dockerfile.j2"
    template.write_bytes(template.read_bytes() + text.encode("latin-1"))
    answer = tiny.json("plan", "tiny")
    assert answer.error == (2, "TEMPLATE_INVALID")
    assert answer.value["error"]["at"].startswith("templates/stages/greet/Dockerfile.j2")


@pytest.mark.parametrize("text", ["[", "- a\n", "options: [a]\n"])
def test_what_is_no_recipe_is_named(tiny: Tiny, text: str) -> None:
    (tiny.factory / "templates/stages/greet/recipe.yaml").write_text(text)
    answer = tiny.json("plan", "tiny")
    assert answer.error == (2, "RECIPE_INVALID")
    assert answer.value["error"]["at"] == "templates/stages/greet/recipe.yaml"


def test_a_recipe_nobody_ever_ran_needs_consent(tiny: Tiny) -> None:
    recipe = tiny.factory / "templates/stages/greet/recipe.yaml"
    recipe.write_text(recipe.read_text() + "status: rendered\n")
    assert tiny.refused("build", "tiny") == (2, "RECIPE_UNPROVEN")
    assert tiny.json("build", "tiny", "--accept-unproven", "--dry-run").code == 0


LOCKS: dict[str, tuple[Callable[[str], str | None], str]] = {
    "missing": (lambda _text: None, "LOCK_MISSING"),
    "empty": (lambda _text: "", "LOCK_MALFORMED"),
    "cut": (lambda text: text[: len(text) // 2], "LOCK_MALFORMED"),
    "list": (lambda _text: "[]", "LOCK_MALFORMED"),
    "deep": (lambda _text: "[" * 100_000, "LOCK_MALFORMED"),
    "climbing": (lambda text: text.replace('"pool/', '"pool/../'), "LOCK_MALFORMED"),
    "unknown-key": (lambda text: text.replace('"epoch"', '"epok"'), "LOCK_MALFORMED"),
    "twice": (
        lambda text: text.replace('{\n "asked"', '{\n "epoch": 1,\n "asked"', 1),
        "LOCK_",
    ),
    "version": (
        lambda text: text.replace('"version":"1.0-1"', '"version":"1.0-2"'),
        "LOCK_EDITED",
    ),
    "epoch": (lambda text: text.replace('"epoch": 17', '"epoch": 18'), "LOCK_EDITED"),
    "digest": (
        lambda text: text.replace('"digest": "sha256:', '"digest": "sha256:0')[:-1],
        "LOCK_",
    ),
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_is_not_what_lock_wrote(tiny: Tiny, name: str) -> None:
    change, word = LOCKS[name]
    before = tiny.lock.read_text()
    after = change(before)
    assert after != before
    tiny.lock.unlink()
    if after is not None:
        tiny.lock.write_text(after)
    answer = tiny.json("build", "tiny", "--relock", "if-gone")
    code, said = answer.error
    assert code == 3
    assert said.startswith(word)
    assert answer.value["error"]["hint"] == "vega-image lock tiny"
    assert not list((tiny.store / "objects").rglob("*/*/*")), "nothing was fetched"
    tiny.done("lock", "tiny")
    assert tiny.lock.read_text() == before


def test_a_stale_lock_says_what_changed(tiny: Tiny) -> None:
    tiny.edit("packages: [tiny-app, tiny-base]", "packages: [tiny-app, tiny-unused]")
    answer = tiny.json("build", "tiny")
    assert answer.error == (3, "LOCK_STALE")
    for sign in ("+tiny-unused", "-tiny-base"):
        assert sign in answer.value["error"]["message"]
    (row,) = tiny.done("targets")["targets"]
    assert row["lock"] == "stale"
    changes = tiny.done("lock", "tiny")["changes"]
    assert any("tiny-unused" in line for line in changes)


def test_locking_what_is_not_there_is_guessed_and_keeps_the_old_lock(tiny: Tiny) -> None:
    before = tiny.lock.read_bytes()
    tiny.edit("packages: [tiny-app, tiny-base]", "packages: [tiny-ap, tiny-base]")
    answer = tiny.json("lock", "tiny")
    assert answer.error == (3, "PACKAGE_UNKNOWN")
    assert "did you mean 'tiny-app'?" in answer.value["error"]["message"]
    assert tiny.lock.read_bytes() == before
    assert [path.name for path in tiny.lock.parent.iterdir() if "lock" in path.name] == [
        "tiny.lock.json"
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("bild", "tiny"),
        ("build",),
        ("build", "tiny", "--levl", "3"),
        ("build", "tiny", "--level", "99"),
        ("build", "tiny", "--target", "other"),
        ("run", "tiny"),
        ("plan", "tiny", "--progress", "loud"),
        ("pool", "carry"),
    ],
    ids=" ".join,
)
def test_wrong_words_and_options(tiny: Tiny, words: tuple[str, ...]) -> None:
    answer = tiny.json(*words)
    assert answer.error == (2, "USAGE")
    assert answer.value["error"]["hint"].endswith("--help")


def test_without_json_an_error_is_two_lines_on_stderr(tiny: Tiny) -> None:
    plain = tiny("build", "tiny", "--levl", "3")
    assert (plain.code, plain.out) == (2, "")
    assert [line.partition(":")[0] for line in plain.err.splitlines()] == ["error", "hint"]


def test_an_unknown_step_lists_the_known_ones(tiny: Tiny) -> None:
    answer = tiny.json("build", "tiny", "--until", "slim")
    assert answer.error == (2, "UNKNOWN_STEP")
    assert "root, greet, layers, image" in answer.value["error"]["message"]


@pytest.mark.parametrize("variable", ["VEGA_IMAGE_ENGINE", "VEGA_IMAGE_PROGRESS"])
def test_a_wrong_variable_is_named(tiny: Tiny, variable: str) -> None:
    answer = tiny.having(**{variable: "loud"}).json("build", "tiny", "--dry-run")
    assert answer.error == (2, "USAGE")
    assert "loud" in answer.value["error"]["message"]


@pytest.mark.parametrize("text", ["ngine: podman\n", "\xff\n"])
def test_a_wrong_configuration_file_is_named(tiny: Tiny, text: str) -> None:
    path = Path(tiny.env()["XDG_CONFIG_HOME"]) / "vega-image/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    answer = tiny.json("targets")
    assert answer.error == (2, "CONFIG_INVALID")
    assert answer.value["error"]["at"] == str(path)


def test_a_folder_without_images_is_no_factory(tiny: Tiny, tmp_path: Path) -> None:
    assert tiny.refused("-C", str(tmp_path / "none"), "targets") == (2, "NO_FACTORY")
    inside = replace(tiny, before=("env", "--chdir", str(tiny.factory / "templates")))
    argv = [word for word in inside.argv("targets", "--json") if word != "-C"]
    argv.remove(str(tiny.factory))
    import subprocess

    done = subprocess.run(argv, env=inside.env(), capture_output=True, text=True, check=False)
    assert [row["name"] for row in json.loads(done.stdout)["targets"]] == ["tiny"]
