from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.errors import EngineError, UsageError
from vega_image.hostcheck import (
    AMPLE_DISK,
    AMPLE_MEMORY,
    LEAST_DISK,
    LEAST_MEMORY,
    NEEDS,
    EngineState,
    HostProbe,
    available_memory,
    check_host,
    free_bytes,
    gather,
)
from vega_image.sources.origin import Origin

DOCKER = EngineState(name="docker", version="20.10.24", problem=None)
PODMAN = EngineState(name="podman", version="4.3.1", problem=None)
FIT = HostProbe(
    engines=(DOCKER, PODMAN),
    tools={need.program: f"/usr/bin/{need.program}" for need in NEEDS},
    mirror=None,
    keyring=None,
    store=Path("/store"),
    disk_free=AMPLE_DISK,
    memory_free=AMPLE_MEMORY,
    python="3.11.2",
    libzstd="1.5.7",
)


def said(probe: HostProbe) -> list[tuple[str, str]]:
    return [
        (found.severity, found.code) for found in check_host(probe) if found.severity != "info"
    ]


def broken(name: str, code: str, hint: str) -> EngineState:
    return EngineState(
        name=name, version=None, problem=EngineError(code, f"{name} fails", hint=hint)
    )


def test_a_fit_host_has_nothing_to_complain_of() -> None:
    assert said(FIT) == []
    assert all(found.action for found in check_host(FIT))


def test_one_engine_is_enough() -> None:
    found = check_host(replace(FIT, engines=(DOCKER, broken("podman", "ENGINE_TOO_OLD", "up"))))
    assert ("info", "ENGINE_TOO_OLD") in [(one.severity, one.code) for one in found]
    assert all(one.severity == "info" for one in found)


@pytest.mark.parametrize("code", ["ENGINE_ABSENT", "ENGINE_TOO_OLD", "ENGINE_PERMISSION"])
def test_without_a_usable_engine_each_reason_is_told(code: str) -> None:
    engines = (
        broken("docker", code, "fix docker"),
        broken("podman", "ENGINE_ABSENT", "get it"),
    )
    found = check_host(replace(FIT, engines=engines))
    assert [(one.severity, one.code, one.action) for one in found[:2]] == [
        ("refuse", code, "fix docker"),
        ("refuse", "ENGINE_ABSENT", "get it"),
    ]


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.program)
def test_a_missing_tool_names_its_package(need: object) -> None:
    wanted = next(one for one in NEEDS if one == need)
    probe = replace(FIT, tools={**FIT.tools, wanted.program: None})
    [found] = [one for one in check_host(probe) if one.code == "TOOL_ABSENT"]
    assert found.severity == wanted.severity
    assert found.action == f"sudo apt-get install {wanted.package}"


def test_no_mirror_and_no_keyring_are_told_with_their_ways_out() -> None:
    error = UsageError("NO_MIRROR", "none", hint="--debian-mirror URL")
    other = UsageError("NO_KEYRING", "none", hint="--debian-keyring FILE")
    assert said(replace(FIT, mirror=error, keyring=other)) == [
        ("warn", "NO_MIRROR"),
        ("warn", "NO_KEYRING"),
    ]


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (None, []),
        (LEAST_DISK - 1, [("refuse", "DISK_TOO_SMALL")]),
        (LEAST_DISK, [("warn", "DISK_TOO_SMALL")]),
        (AMPLE_DISK - 1, [("warn", "DISK_TOO_SMALL")]),
    ],
)
def test_disk(free: int | None, expected: list[tuple[str, str]]) -> None:
    assert said(replace(FIT, disk_free=free)) == expected


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (None, []),
        (LEAST_MEMORY - 1, [("refuse", "MEMORY_TOO_SMALL")]),
        (LEAST_MEMORY, [("warn", "MEMORY_TOO_SMALL")]),
    ],
)
def test_memory(free: int | None, expected: list[tuple[str, str]]) -> None:
    assert said(replace(FIT, memory_free=free)) == expected


def test_the_codec_is_needed() -> None:
    assert said(replace(FIT, libzstd=None)) == [("refuse", "TOOL_ABSENT")]


def test_free_space_is_that_of_the_nearest_folder(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not/made/yet") is not None


def test_memory_is_read_from_meminfo(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    2048 kB\n")
    assert available_memory(meminfo) == 2 * 1024 * 1024
    assert available_memory(tmp_path / "absent") is None


@given(text=st.text(max_size=40))
def test_no_meminfo_raises(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    meminfo = tmp_path_factory.getbasetemp() / "meminfo"
    meminfo.write_bytes(text.encode(errors="replace"))
    available_memory(meminfo)


def test_this_host_can_be_looked_at(tmp_path: Path) -> None:
    # An engine that nobody can reach: a test of the looking, not of this machine's engines.
    environ = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none"}
    origin = Origin(mirror=None, sysroot=tmp_path)
    probe = gather(tmp_path / "store", origin, environ)
    docker = next(engine for engine in probe.engines if engine.name == "docker")
    assert docker.problem is not None
    assert docker.problem.code == "ENGINE_ABSENT"
    assert probe.mirror is not None
    assert probe.mirror.code == "NO_MIRROR"
    assert probe.keyring is not None
    assert probe.libzstd
    assert not (tmp_path / "store").exists()
