"""The sandbox for real: the same spec on dockerd and podman."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.hostroot import host_parent
from vega_image.engines.choose import Host, opened
from vega_image.engines.container import ContainerSpec, Mount, Tmpfs
from vega_image.engines.docker import DockerEngine
from vega_image.engines.parent import ParentImage
from vega_image.errors import EngineError, UsageError
from vega_image.rootfs.tree import Tree
from vega_image.store import Store

ENGINES = [
    pytest.param("docker", marks=pytest.mark.needs("docker")),
    pytest.param("podman", marks=pytest.mark.needs("podman")),
]
NAME = f"vega-image-test-{os.getpid()}"


@dataclass
class Cage:
    engine: DockerEngine
    spec: ContainerSpec
    socket_folder: Path

    def run(self, script: str, **change: object) -> list[str]:
        spec = replace(self.spec, command=("/bin/sh", "-c", script), **change)  # type: ignore[arg-type]
        started = self.engine.start_container(spec)
        try:
            lines = list(started.lines)
            state = self.engine.wait(started.id)
            assert state is not None
            assert not state.running
            return [*lines, f"exit {state.exit_code}"]
        finally:
            self.engine.remove(started.id)


@pytest.fixture(params=ENGINES, scope="module")
def engine_image(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DockerEngine, str]]:
    folder = tmp_path_factory.mktemp("container")
    store = Store(folder / "store")
    tree = store.read_json(host_parent(store, folder).digest, what="root")
    image = ParentImage(tree=Tree.from_json(tree), store=store, labels={}, epoch=0)
    with opened(request.param, Host(environ=os.environ, store=store.root)) as engine:
        sent: list[int] = []
        loaded = engine.load_image(image.stream(), progress=sent.append)
        assert loaded == image.image_id
        assert sent == sorted(sent)
        assert sent[-1] > image.size()
        yield engine, loaded
        engine.remove_image(loaded)
        assert not engine.has_image(loaded)


@pytest.fixture
def cage(engine_image: tuple[DockerEngine, str], tmp_path: Path) -> Iterator[Cage]:
    engine, image = engine_image
    model = tmp_path / "model"
    model.write_text("weights\n")
    folder = tmp_path / "socket"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    spec = ContainerSpec(
        name=NAME,
        image=image,
        label="test",
        user="10001:10001",
        groups=(44, 993),
        mounts=(
            Mount(source=model, target="/models/m"),
            Mount(source=folder, target="/run/vega", read_only=False),
        ),
        tmpfs=(Tmpfs(target="/tmp"),),
        memory_bytes=256 << 20,
    )
    yield Cage(engine, spec, folder)
    engine.remove(NAME)


def test_lines_and_exit_code_come_back(cage: Cage) -> None:
    lines = cage.run("echo first; echo second >&2; exit 3")
    assert sorted(lines) == ["exit 3", "first", "second"]


def test_the_first_line_is_never_lost(cage: Cage) -> None:
    assert cage.run("echo early") == ["early", "exit 0"]


def test_nothing_but_scratch_and_the_socket_folder_can_be_written(cage: Cage) -> None:
    paths = "/x /bin/x /etc/x /models/m /run/x /var/x /var/tmp/x /dev/x /tmp/x /run/vega/x"
    lines = cage.run(f"for p in {paths}; do (echo > $p) 2>/dev/null && echo wrote $p; done; :")
    assert lines == ["wrote /tmp/x", "wrote /run/vega/x", "exit 0"]
    assert (cage.socket_folder / "x").exists()


def test_even_root_inside_cannot_write_the_image(cage: Cage) -> None:
    paths = "/x /bin/x /etc/x /bin/cat /models/m /var/tmp/x"
    lines = cage.run(
        f"for p in {paths}; do (echo > $p) 2>/dev/null && echo wrote $p; done; :", user="0:0"
    )
    assert lines == ["exit 0"]


def test_scratch_is_not_executable_and_is_limited(cage: Cage) -> None:
    script = "cat /bin/cat > /tmp/c; chmod 755 /tmp/c; /tmp/c /models/m || echo refused; "
    script += "cat /bin/bash /bin/bash /bin/bash > /tmp/big 2>/dev/null || echo full"
    lines = cage.run(script, tmpfs=(Tmpfs(target="/tmp", size_bytes=2 << 20),))
    assert {"refused", "full"} <= set(lines)
    assert "weights" not in lines


def test_it_has_no_capability_no_new_privilege_and_no_core(cage: Cage) -> None:
    lines = cage.run("cat /proc/self/status; ulimit -Hc; ulimit -Hn")
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    caps = {status[name].strip() for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert caps == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    assert lines[-3:] == ["0", "4096", "exit 0"]


def test_it_runs_as_the_number_with_the_hosts_groups(cage: Cage) -> None:
    assert cage.run("id -u; id -g; id -G")[:3] == ["10001", "10001", "10001 44 993"]


def test_it_has_no_network_but_lo(cage: Cage) -> None:
    lines = cage.run("cat /proc/net/dev; echo > /dev/tcp/10.0.0.1/80")
    assert [line.split(":")[0].strip() for line in lines if line.count(":") == 1] == ["lo"]
    assert any("unreachable" in line for line in lines)


@pytest.mark.parametrize("name", ["a:model = odd", "a,readonly=false,dst=etc", "m'\"$(id) ü"])
def test_a_model_under_an_odd_name_is_readable_and_no_more(
    cage: Cage, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("odd\n")
    mounts = (Mount(source=tmp_path / name, target="/models/m"),)
    lines = cage.run(
        "cat /models/m; (echo x > /models/m) 2>/dev/null || echo kept", mounts=mounts
    )
    assert lines == ["odd", "kept", "exit 0"]
    assert (tmp_path / name).read_text() == "odd\n"


def test_a_name_no_engine_can_be_told_is_refused(cage: Cage, tmp_path: Path) -> None:
    (tmp_path / "a,b:c").touch()
    with pytest.raises(UsageError):
        cage.run("true", mounts=(Mount(source=tmp_path / "a,b:c", target="/models/m"),))


def test_a_device_gets_in_and_shared_memory_stays_out(cage: Cage) -> None:
    script = "echo > /dev/null && echo device; ls /dev/shm || echo none"
    lines = cage.run(script, devices=(Path("/dev/null"),), shm_bytes=0)
    assert {"device", "none"} <= set(lines)


def test_too_much_memory_ends_it(cage: Cage) -> None:
    script = "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done"
    assert cage.run(script, memory_bytes=32 << 20)[-1] == "exit 137"


def test_a_stubborn_process_is_killed_after_the_grace_period(cage: Cage) -> None:
    spec = replace(
        cage.spec, command=("/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    )
    started = cage.engine.start_container(spec)
    cage.engine.stop(started.id, grace_seconds=1)
    state = cage.engine.state(NAME)
    assert state is not None
    assert (state.running, state.exit_code) == (False, 137)
    cage.engine.stop(started.id)
    cage.engine.remove(started.id)
    cage.engine.remove(started.id)
    assert cage.engine.state(started.id) is None
    assert cage.engine.wait(started.id) is None


def test_the_engine_keeps_no_log(cage: Cage) -> None:
    started = cage.engine.start_container(
        replace(cage.spec, command=("/bin/sh", "-c", "echo secret"))
    )
    assert list(started.lines) == ["secret"]
    cage.engine.wait(started.id)
    told = cage.engine._api.inspect_container(started.id)
    assert told["HostConfig"]["LogConfig"]["Type"] == "none"
    path = told.get("LogPath") or ""
    assert not path or not Path(path).is_file() or "secret" not in Path(path).read_text()


def test_what_cannot_start_is_refused_and_leaves_nothing(cage: Cage) -> None:
    with pytest.raises(EngineError) as caught:
        cage.engine.start_container(replace(cage.spec, command=("/no/such/program",)))
    assert caught.value.code == "CONTAINER_FAILED"
    assert "/no/such/program" in caught.value.message
    assert cage.engine.state(NAME) is None


def test_a_mount_whose_source_is_missing_is_refused(cage: Cage) -> None:
    mounts = (Mount(source=Path("/no/such/file"), target="/x"),)
    with pytest.raises(UsageError) as caught:
        cage.engine.start_container(replace(cage.spec, mounts=mounts, command=("/bin/sh",)))
    assert caught.value.code == "MOUNT_PATH"
    assert cage.engine.state(NAME) is None
    assert not Path("/no").exists()


def test_a_broken_archive_is_not_loaded(cage: Cage) -> None:
    with pytest.raises(EngineError) as caught:
        cage.engine.load_image([b"this is no archive" * 100])
    assert caught.value.code == "LOAD_FAILED"
