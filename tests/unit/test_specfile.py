"""Specs: every complaint at once, each with file, line, path and a guess."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factory import SPEC, target
from vega_image.errors import UsageError
from vega_image.spec import Target
from vega_image.specfile import check_references, decode_target

ROOT = Path(__file__).resolve().parents[2]


def refusal(text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        decode_target(text, at="images/tiny.yaml")
    assert caught.value.exit_code == 2
    return caught.value


def test_the_fixture_and_every_shipped_spec_decode() -> None:
    assert target().name == "tiny"
    for path in (ROOT / "images").glob("*.yaml"):
        assert decode_target(path.read_text(), at=path.name).name == path.stem


def test_all_errors_come_at_once_with_line_path_and_guess() -> None:
    text = SPEC.replace("title:", "titel:").replace("exclude:", "exclud:")
    message = refusal(text.replace('user: "10001:10001"', "user: 3")).message
    assert "images/tiny.yaml:5: titel: no such key; did you mean 'title'?" in message
    assert "images/tiny.yaml:12: root.exclud: no such key; did you mean 'exclude'?" in message
    assert "image.user: Input should be a valid string" in message
    assert "title: missing" in message


def test_a_key_inside_a_union_gets_the_guess_of_its_member() -> None:
    message = refusal(SPEC.replace("packages: [hello", "pakages: [hello")).message
    assert "sources.debian.pakages: no such key; did you mean 'packages'?" in message


def test_a_key_given_twice_is_refused_with_its_line() -> None:
    message = refusal(SPEC + "version: 2.0.0\n").message
    assert "version: this key is there twice" in message


@pytest.mark.parametrize("text", ["", "- a\n", "a: [", "a: !!python/object:os.system x", "\t"])
def test_what_is_no_spec_is_refused_without_a_traceback(text: str) -> None:
    assert refusal(text).code in {"SPEC_NOT_YAML", "SPEC_INVALID"}


@pytest.mark.parametrize("path", ["../etc", "/etc/x", "a//b", "a/./b", "a/.."])
def test_a_path_out_of_the_image_is_refused(path: str) -> None:
    message = refusal(SPEC.replace("links: {bin:", f"links: {{{path}:")).message
    assert "a path inside the image is relative" in message


def test_names_that_point_nowhere_are_refused_together() -> None:
    text = SPEC.replace("recipe: greet", "recipe: gret").replace("rest: true", "rest: false")
    with pytest.raises(UsageError) as caught:
        check_references(target(text), at="images/tiny.yaml", recipes={"greet": ["word"]})
    assert "no recipe 'gret' in templates/stages; did you mean 'greet'?" in caught.value.message
    assert "exactly one layer must say `rest: true`; 0 do" in caught.value.message


def test_a_slim_that_drops_the_gpu_of_the_image_is_refused() -> None:
    with pytest.raises(UsageError, match="does not keep 'gfx906'"):
        check_references(
            target(SPEC.replace("keep: [gfx906]", "keep: [gfx908]")),
            at="images/tiny.yaml",
            recipes={"greet": ["word"]},
        )


def test_the_exported_schema_accepts_what_the_decoder_accepts() -> None:
    import jsonschema

    schema = Target.model_json_schema(by_alias=True)
    jsonschema.validate(yaml.safe_load(SPEC), schema)
    broken = yaml.safe_load(SPEC) | {"titel": "x"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_mutated_spec_decodes_or_is_refused(data: st.DataObject) -> None:
    lines = SPEC.splitlines()
    index = data.draw(st.integers(0, len(lines) - 1))
    change = data.draw(st.text(max_size=12) | st.sampled_from(["", "  - x", "null", "{}", "]"]))
    where = data.draw(st.integers(0, len(lines[index])))
    lines[index] = lines[index][:where] + change
    with contextlib.suppress(UsageError):
        decode_target("\n".join(lines), at="images/tiny.yaml")
