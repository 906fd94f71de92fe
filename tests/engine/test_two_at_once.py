"""Several builds on one store at once: they share work and agree."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.fileserver import serving
from tests.tiny import STEPS, Result, Tiny, rehash

pytestmark = pytest.mark.needs("docker", "busybox")
PATIENCE = 120


def together(*calls: tuple[Tiny, str]) -> list[Any]:
    """Start builds of (user, target) at once; all must succeed. Returns their values."""
    children = [user.start("build", target, "--json") for user, target in calls]
    values = []
    for child in children:
        with child:
            out, err = child.communicate(timeout=PATIENCE)
            assert child.returncode == 0, out + err
            values.append(json.loads(out))
    return values


def check_clean(user: Tiny) -> None:
    rehash(user.store)
    assert list((user.store / "tmp").iterdir()) == []


def test_three_of_one_target_share_the_work(tiny: Tiny, reference: Result) -> None:
    with serving(tiny.archive.root) as server:
        user = tiny.having(VEGA_IMAGE_DEBIAN_MIRROR=server.url)
        values = together((user, "tiny"), (user, "tiny"), (user, "tiny"))
        asked = Counter(path for path, _range, _secret in server.requests)
    assert {(value["digest"], value["image_id"]) for value in values} == {reference}
    states = [[step["state"] for step in value["steps"]] for value in values]
    assert sorted(states) == [["built"] * len(STEPS), *[["cached"] * len(STEPS)] * 2]
    assert set(asked.values()) == {1}, "each file is fetched once"
    check_clean(user)


@pytest.mark.needs("podman")
def test_two_engines_on_one_store(tiny: Tiny, reference: Result) -> None:
    values = together((tiny, "tiny"), (replace(tiny, engine="podman"), "tiny"))
    assert {(value["digest"], value["image_id"]) for value in values} == {reference}
    check_clean(tiny)


def test_two_targets_with_the_same_packages(tiny: Tiny, reference: Result) -> None:
    text = tiny.spec.read_text()
    (tiny.factory / "images/other.yaml").write_text(
        text.replace("name: tiny\n", "name: other\n")
    )
    tiny.done("lock", "other")
    mine, others = together((tiny, "tiny"), (tiny, "other"))
    assert mine["digest"] == reference[0] != others["digest"]
    assert mine["steps"][0]["id"] == others["steps"][0]["id"], "the roots are one step"
    again = tiny.build()
    assert {step["state"] for step in again["steps"]} == {"cached"}
    check_clean(tiny)


def test_cleaning_waits_for_a_build(tiny: Tiny, reference: Result) -> None:
    with tiny.start("build", "tiny", "--json", "--progress", "json") as build:
        assert build.stderr is not None
        for line in build.stderr:
            if '"greet"' in line:
                break
        cleaned = tiny.json("clean", "tiny", "--yes")
        out, err = build.communicate(timeout=PATIENCE)
    assert build.returncode == 0, out + err
    assert json.loads(out)["digest"] == reference[0]
    assert cleaned.code == 0, cleaned.out
    assert "waiting" in cleaned.err
    assert cleaned.value["steps"] == len(STEPS)
    assert not list((tiny.store / "images").iterdir())
    assert tiny.build()["digest"] == reference[0]
    check_clean(tiny)


def test_cleaning_leaves_what_other_targets_need(tiny: Tiny) -> None:
    text = tiny.spec.read_text()
    (tiny.factory / "images/other.yaml").write_text(
        text.replace("name: tiny\n", "name: other\n")
    )
    tiny.done("lock", "other")
    tiny.build()
    tiny.done("build", "other")
    assert tiny.refused("clean", "tiny", "--downloads") == (2, "CONFIRM")
    tiny.done("clean", "tiny", "--downloads", "--yes")
    plan = tiny.done("plan", "other")
    assert plan["fetch_bytes"] == 0
    assert tiny.refused("inspect", "tiny") == (2, "IMAGE_UNKNOWN")
    value = tiny.done("build", "other", "--offline")
    assert value["steps"][-1]["state"] == "cached"
    tiny.spec.unlink()
    tiny.done("clean", "other", "--downloads", "--yes")
    assert tiny.refused("build", "other", "--offline") == (4, "OFFLINE_MISSING")
    check_clean(tiny)
