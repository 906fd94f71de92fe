"""A store somebody tampered with: never a wrong image, and the next run heals."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.minidebian import MiniDebian
from tests.tiny import STEPS, Result, Tiny, new_user, rehash

pytestmark = pytest.mark.needs("docker", "busybox")
CODES = {"STORE_TAMPERED", "OBJECT_GONE", "BLOB_DIFFERS", "BLOB_GONE"}


def flip(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


SPOILS: dict[str, Callable[[bytes], bytes | None]] = {
    "flip": flip,
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda _data: b"",
    "gone": lambda _data: None,
}


@pytest.fixture(scope="module")
def built(
    mini: MiniDebian, locked_factory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Tiny:
    """A user who has built the tiny target; tests spoil the store and must heal it."""
    folder = tmp_path_factory.mktemp("spoilt") / "user"
    user = new_user(folder, archive=mini, factory=locked_factory)
    user.build()
    return user


def records(user: Tiny) -> list[Any]:
    """The records of built steps."""
    return [json.loads(path.read_text()) for path in (user.store / "refs/steps").glob("*.json")]


def object_path(user: Tiny, name: str) -> Path:
    """Where an object lies."""
    hexes = name.removeprefix("sha256:")
    return user.store / "objects/sha256" / hexes[:2] / hexes


def spoil(path: Path, how: str) -> None:
    data = SPOILS[how](path.read_bytes())
    if data is None:
        path.unlink()
        return
    path.chmod(0o644)
    path.write_bytes(data)


def forget(user: Tiny, names: list[str]) -> None:
    """Make steps unbuilt."""
    for path in (user.store / "refs/steps").glob("*.json"):
        if json.loads(path.read_text())["name"] in names:
            path.unlink()


@pytest.mark.parametrize("step", STEPS[:-1])
def test_no_step_works_on_spoilt_bytes(built: Tiny, reference: Result, step: str) -> None:
    """Objects that a step left are spoilt in turn; the step after it must notice."""
    (row,) = [row for row in records(built) if row["name"] == step]
    hows = cycle(["flip", "cut", "empty"])
    filled = [name for name in row["needs"] if object_path(built, name).stat().st_size]
    for name, how in zip((row["digest"], filled[0], filled[-1]), hows, strict=False):
        path = object_path(built, name)
        forget(built, STEPS[STEPS.index(step) + 1 :])
        spoil(path, how)
        answer = built.json("build", "tiny")
        assert answer.error == (4, "STORE_TAMPERED"), f"{how} {name}"
        assert answer.value["error"]["hint"] == "run the build again"
        assert built.build()["digest"] == reference[0], f"{how} {name}"
    rehash(built.store)


@pytest.mark.parametrize("how", ["flip", "cut", "gone"])
def test_no_spoilt_blob_is_handed_over(built: Tiny, reference: Result, how: str) -> None:
    (row,) = [row for row in records(built) if row["name"] == "image"]
    for name in (row["digest"], *row["needs"][:2]):
        spoil(object_path(built, name), how)
        answer = built.json("build", "tiny", "-o", str(built.folder / "out"))
        assert answer.code == 0 or answer.error[1] in CODES, answer.out
        assert built.build()["digest"] == reference[0], f"{how} {name}"
        assert built.done("inspect", "tiny")["digest"] == reference[0]


@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_spoilt_deb_is_noticed_before_it_is_read(
    tiny: Tiny, reference: Result, how: str
) -> None:
    tiny.done("pool", "export", "tiny", "-o", str(tiny.folder / "pool"))
    packages = json.loads(tiny.lock.read_text())["sources"]["debian"]["packages"]
    (deb,) = [row["sha256"] for row in packages if row["package"] == "tiny-data"]
    spoil(object_path(tiny, deb), how)
    assert tiny.refused("build", "tiny") == (4, "STORE_TAMPERED")
    assert tiny.build()["digest"] == reference[0]
    rehash(tiny.store)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", '{"digest": "sha256:x", "needs": []}'],
)
def test_spoilt_records_are_no_records(built: Tiny, reference: Result, text: str) -> None:
    for path in (built.store / "refs").rglob("*.json"):
        path.write_text(text)
    for words in (("plan", "tiny"), ("targets",)):
        assert built.json(*words).code == 0
    value = built.build()
    assert (value["digest"], value["image_id"]) == reference
    assert built.done("inspect", "tiny")["digest"] == reference[0]


@pytest.mark.parametrize("name", ["index.json", "oci-layout", "blobs"])
def test_a_spoilt_layout_is_made_again(built: Tiny, reference: Result, name: str) -> None:
    layout = Path(built.build()["layout"])
    path = layout / name
    if path.is_dir():
        for blob in path.rglob("*"):
            if blob.is_file():
                blob.unlink()
    else:
        path.write_text("{}")
    code, _word = built.refused("inspect", "tiny")
    assert code in {2, 4}
    assert built.build()["digest"] == reference[0]
    assert built.done("inspect", "tiny")["digest"] == reference[0]
