"""Step ids: what changes them, and above all what does not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.factory import MAKERS, RECIPES, SPEC, lock, target
from vega_image.lock import Lock
from vega_image.plan import Step, StepKind, make_plan
from vega_image.spec import Target


def plan(
    spec: Target | None = None, locked: Lock | None = None, **makers: str
) -> tuple[Step, ...]:
    spec = spec or target()
    known = {StepKind(kind): digest for kind, digest in (MAKERS | makers).items()}
    return make_plan(spec, locked or lock(spec), makers=known, recipes=RECIPES)


def changed(after: tuple[Step, ...]) -> list[str]:
    before = {step.name: step.id for step in plan()}
    return [step.name for step in after if before.get(step.name) != step.id]


def test_the_steps_of_the_fixture() -> None:
    assert [step.name for step in plan()] == [
        "root",
        "greet",
        "slim",
        "census",
        "layers",
        "image",
    ]
    assert [step.parent for step in plan()] == [None, *[step.id for step in plan()[:-1]]]


@pytest.mark.parametrize(
    ("old", "new", "rebuilt"),
    [
        ("note: plain", "note: other", ["image"]),
        ("version: 1.0.0", "version: 1.0.1", ["image"]),
        ("{name: base, rest", "{name: first, rest", ["layers", "image"]),
        ("word: hello", "word: bye", ["greet", "slim", "census", "layers", "image"]),
        (
            "exclude: [usr/share/doc/*]",
            "exclude: [usr/share/man/*]",
            ["root", "greet", "slim", "census", "layers", "image"],
        ),
        ("PATH: /usr/bin", "PATH: /bin", ["census", "layers", "image"]),
        ("description: a fixture", "description: another", ["image"]),
        ("uid: 10001, home: /tmp", "uid: 10001, home: /", ["layers", "image"]),
    ],
)
def test_a_change_rebuilds_only_what_reads_it(old: str, new: str, rebuilt: list[str]) -> None:
    assert old in SPEC
    assert changed(plan(target(SPEC.replace(old, new)))) == rebuilt


def test_another_package_version_rebuilds_everything() -> None:
    assert len(changed(plan(locked=lock(version="1.0-2")))) == 6


def test_new_code_of_a_kind_never_reuses_what_the_old_made() -> None:
    assert changed(plan(slim="sha256:" + "9" * 64)) == ["slim", "census", "layers", "image"]


def test_ids_do_not_depend_on_the_hash_seed() -> None:
    code = "from tests.unit.test_plan import plan; print([s.id for s in plan()])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
