"""What `render` writes, byte for byte. `pytest --update-golden` rewrites tests/golden/tiny."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factory import SERVE, SPEC, lock, target
from vega_image.factory import Factory
from vega_image.finddb.payload import Payload
from vega_image.prepare import Prepared, rendered_files

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "tiny"
SERVED = SPEC + SERVE


def rendered(text: str = SERVED) -> dict[str, bytes]:
    spec = target(text)
    stage = {"Dockerfile": b"ARG BASE\nFROM ${BASE}\nRUN greet hello\n"}
    prepared = Prepared(
        target=spec, lock=lock(spec), plan=(), stages={"greet": stage}, payload=Payload()
    )
    return rendered_files(Factory(ROOT), prepared)


def golden() -> dict[str, bytes]:
    files = (path for path in GOLDEN.rglob("*") if path.is_file())
    return {path.relative_to(GOLDEN).as_posix(): path.read_bytes() for path in files}


def test_the_rendered_tree_is_the_golden_one(*, update_golden: bool) -> None:
    files = rendered()
    if update_golden:
        for name, data in files.items():
            path = GOLDEN / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    assert files == golden()


def test_an_image_that_serves_nothing_gets_no_unit() -> None:
    assert [path for path in rendered() if path.startswith("units/")]
    assert not [path for path in rendered(SPEC) if path.startswith("units/")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('user: "10001:10001"', 'user: "0:0"'),
        ("entrypoint: [/usr/bin/hello]", "entrypoint: [/bin/sh]"),
        ("env: {PATH: /usr/bin}", "env: {HSA_OVERRIDE_GFX_VERSION: 9.0.6}"),
        ("gpu: gfx906", "gpu: gfx908"),
    ],
)
def test_a_mutant_does_not_pass_for_the_golden(old: str, new: str) -> None:
    spec = SERVED if old in SERVED else SERVED.replace("kind: oci\n", f"kind: oci\n{old}\n")
    assert old in spec
    assert rendered(spec.replace(old, new)) != golden()
