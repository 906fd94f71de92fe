"""--json: what every word prints is what its exported schema says, and nothing less strict."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from tests.minidebian import MiniDebian
from tests.tiny import Tiny, new_user

pytestmark = pytest.mark.needs("busybox")
SCHEMAS = (
    *("build", "check", "clean", "doctor", "error", "inspect", "lock", "plan", "pool"),
    *("render", "reproduce", "run", "selftest", "targets", "version"),
)
BUILD = {
    *("target", "kind", "digest", "layout", "compressed_bytes", "uncompressed_bytes"),
    *("duration_s", "steps"),
}


@pytest.fixture(scope="module")
def user(
    mini: MiniDebian, locked_factory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Tiny:
    """A user whom all tests here share; the steps are built where docker is."""
    folder = tmp_path_factory.mktemp("json") / "user"
    return new_user(folder, archive=mini, factory=locked_factory)


@pytest.fixture(scope="module")
def schemas(user: Tiny) -> dict[str, Any]:
    """Every exported schema, as `targets --schema` prints it."""
    found = {word: user.done("targets", "--schema", word) for word in SCHEMAS}
    for schema in found.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    return found


def check(schema: Any, value: Any) -> None:
    """A value fits, and stops fitting when a key is lost, added or of another type."""
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(value)
    assert not validator.is_valid({**value, "surprise": 1})
    for key in value:
        changed = copy.deepcopy(value)
        changed[key] = [[None]]
        assert not validator.is_valid(changed), f"{key} may be anything"
        if key in schema.get("required", ()):
            del changed[key]
            assert not validator.is_valid(changed)


def test_every_word_has_a_schema(schemas: dict[str, Any], user: Tiny) -> None:
    from vega_image.cli import cli

    finddb = cli.commands["finddb"]
    assert isinstance(finddb, click.Group)
    assert set(cli.commands) - {"completion", "finddb"} <= set(schemas)
    for word in finddb.commands:
        assert user.done("targets", "--schema", f"finddb-{word}")
    assert user.refused("targets", "--schema", "bild") == (2, "UNKNOWN_SCHEMA")
    assert (
        jsonschema.Draft202012Validator(user.done("targets", "--schema")).is_valid(1) is False
    )


def test_words_that_need_no_engine(schemas: dict[str, Any], user: Tiny, tmp_path: Path) -> None:
    check(schemas["targets"], user.done("targets"))
    check(schemas["lock"], user.done("lock", "tiny"))
    check(schemas["plan"], user.done("plan", "tiny"))
    check(schemas["version"], user.done("version"))
    check(schemas["render"], user.done("render", "tiny", "-o", str(tmp_path / "rendered")))
    pool = str(tmp_path / "pool")
    check(schemas["pool"], user.done("pool", "export", "tiny", "-o", pool))
    check(schemas["pool"], user.done("pool", "import", pool))
    dry = user.done("build", "tiny", "--dry-run")
    check(schemas["build"], dry)
    assert dry["digest"] is None


@pytest.mark.needs("hadolint")
def test_check(schemas: dict[str, Any], user: Tiny) -> None:
    check(schemas["check"], user.done("check", "tiny"))


@pytest.mark.parametrize("sysroot", [None, "kfd-radeon-vii/sysroot"])
def test_doctor_prints_its_verdict_whatever_it_is(
    schemas: dict[str, Any], user: Tiny, sysroot: str | None, project: Path
) -> None:
    words = () if sysroot is None else ("--sysroot", str(project / "tests/data/gpu" / sysroot))
    answer = user.json("doctor", *words)
    check(schemas["doctor"], answer.value)
    assert answer.value["exit"] == answer.code
    assert answer.code == (7 if sysroot is None else 0)


@pytest.mark.needs("docker")
def test_words_about_images(schemas: dict[str, Any], user: Tiny, tmp_path: Path) -> None:
    first = user.build()
    check(schemas["build"], first)
    assert first.keys() >= BUILD
    assert [step["state"] for step in first["steps"]].count("built") > 0
    assert Path(first["layout"], "index.json").is_file()
    check(schemas["build"], user.build("--until", "layers"))
    check(schemas["plan"], user.done("plan", "tiny"))
    for words in (("tiny",), ("tiny", "--device-code")):
        value = user.done("inspect", *words)
        check(schemas["inspect"], value)
        assert value["digest"] == first["digest"]
    check(schemas["reproduce"], user.done("reproduce", "tiny"))
    context = user.done("render", "tiny", "--context", "-o", str(tmp_path / "context"))
    check(schemas["render"], context)
    check(schemas["targets"], user.done("targets"))
    check(schemas["clean"], user.done("clean", "tiny", "--yes"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("plan", "none"), 2),
        (("plan",), 2),
        (("inspect", "none"), 2),
        (("build", "tiny", "--offline", "--store", "/dev/null/store"), 5),
        (("clean", "tiny"), 2),
        (("run", "none", "--model", "/none"), 2),
        (("check", "tiny", "-C", "/none"), 2),
    ],
    ids=lambda value: value if isinstance(value, int) else "-".join(value),
)
def test_errors(schemas: dict[str, Any], user: Tiny, words: tuple[str, ...], code: int) -> None:
    answer = user.json(*words)
    check(schemas["error"], answer.value)
    assert answer.error[0] == code
    assert answer.err == ""


def test_the_exported_spec_schema_takes_the_spec(user: Tiny) -> None:
    import yaml

    schema = user.done("targets", "--schema")
    spec = yaml.safe_load(user.spec.read_text())
    jsonschema.Draft202012Validator(schema).validate(spec)
    assert not jsonschema.Draft202012Validator(schema).is_valid({**spec, "titel": "x"})


def test_interrupts_are_told_too(schemas: dict[str, Any], user: Tiny) -> None:
    import signal

    with user.start("build", "tiny", "--json", "--progress", "json") as child:
        assert child.stderr is not None
        child.stderr.readline()
        child.send_signal(signal.SIGINT)
        out, _err = child.communicate(timeout=60)
    assert child.returncode == 130
    check(schemas["error"], json.loads(out))
    assert json.loads(out)["error"]["code"] == "INTERRUPTED"
