from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from vega_image.engines.container import ContainerSpec, Mount, Tmpfs
from vega_image.engines.createbody import Machine, create_body
from vega_image.errors import UsageError

SPEC = ContainerSpec(
    name="n",
    image="sha256:1",
    label="run",
    user="1000:100",
    command=("--port", "1"),
    env={"B": "2", "A": "1"},
    groups=(993, 44),
    devices=(Path("/dev/kfd"),),
    mounts=(
        Mount(source=Path("/etc"), target="/models/m"),
        Mount(source=Path("/usr"), target="/run/vega", read_only=False),
    ),
    tmpfs=(Tmpfs(target="/tmp", size_bytes=4096),),
    memory_bytes=1 << 30,
)


def body(spec: ContainerSpec = SPEC, machine: Machine | None = None) -> dict[str, Any]:
    return cast("dict[str, Any]", create_body(spec, {"k": "v"}, machine=machine or Machine()))


def test_the_sandbox_is_in_every_request() -> None:
    bare = ContainerSpec(name="n", image="i", label="x", user="1:1")
    for spec in (SPEC, bare):
        host = body(spec)["HostConfig"]
        assert host["NetworkMode"] == "none"
        assert host["ReadonlyRootfs"] is True
        assert host["CapDrop"] == ["ALL"]
        assert host["SecurityOpt"] == ["no-new-privileges"]
        assert host["LogConfig"]["Type"] == "none"
        assert {"Name": "core", "Soft": 0, "Hard": 0} in host["Ulimits"]
        assert host["PidsLimit"] == 512
        assert "Privileged" not in host
        assert "PidMode" not in host


def test_what_the_spec_gives_gets_in() -> None:
    made = body()
    host = made["HostConfig"]
    assert made["Env"] == ["A=1", "B=2"]
    assert made["Cmd"] == ["--port", "1"]
    assert "Entrypoint" not in made, "the image's own stays"
    assert host["GroupAdd"] == ["993", "44"]
    assert host["Memory"] == 1 << 30
    assert host["Devices"] == [
        {"PathOnHost": "/dev/kfd", "PathInContainer": "/dev/kfd", "CgroupPermissions": "rw"}
    ]
    assert host["Binds"] == ["/etc:/models/m:ro", "/usr:/run/vega:rw"]
    assert host["Tmpfs"] == {"/tmp": "rw,noexec,nosuid,nodev,size=4096,mode=1777"}


def test_folders_an_engine_would_leave_open_are_closed_unless_asked_for() -> None:
    host = body(machine=Machine(opened=("/run", "/tmp")))["HostConfig"]
    assert host["Tmpfs"]["/run"].startswith("ro,")
    assert host["Tmpfs"]["/tmp"].startswith("rw,")


def test_shared_memory_can_be_left_out() -> None:
    spec = ContainerSpec(name="n", image="i", label="x", user="1:1", shm_bytes=0)
    assert body(spec)["HostConfig"]["IpcMode"] == "none"
    assert body()["HostConfig"]["ShmSize"] == 1 << 20


def test_the_machines_process_limit_is_passed_on() -> None:
    assert {"Name": "nproc", "Soft": 9, "Hard": 9} in body(machine=Machine(processes=9))[
        "HostConfig"
    ]["Ulimits"]


@pytest.mark.parametrize(
    ("name", "kind"), [("a:b", "Mounts"), ("a,ro=0", "Binds"), ('a"b', "Binds")]
)
def test_an_odd_path_goes_the_way_that_reads_nothing_out_of_it(
    tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / name).touch()
    spec = replace(SPEC, mounts=(Mount(source=tmp_path / name, target="/m"),))
    host = body(spec)["HostConfig"]
    assert len(host[kind]) == 1
    assert len(host["Mounts"]) + len(host["Binds"]) == 1


def test_a_path_no_engine_can_be_told_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a,b:c").touch()
    for name in ("a,b:c", "missing"):
        with pytest.raises(UsageError):
            body(replace(SPEC, mounts=(Mount(source=tmp_path / name, target="/m"),)))
