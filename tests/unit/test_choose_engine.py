"""`--engine`: which one, or why none; against small fake engines on real sockets."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vega_image.engines.choose import Host, check_space, opened, survey
from vega_image.engines.podman import chosen_runtime
from vega_image.errors import EngineError, UsageError

HYBRID = "cgroup /c/cpu cgroup rw 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n"
PURE = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"


class FakeDaemon(socketserver.ThreadingUnixStreamServer):
    """Answers what opening an engine asks of dockerd."""

    daemon_threads = True

    def __init__(self, socket_path: Path, version: str, product: str = "Engine") -> None:
        self.answers: dict[str, Any] = {
            "version": {
                "Version": version,
                "ApiVersion": "1.41",
                "Components": [{"Name": product}],
            },
            "info": {"DockerRootDir": "/"},
            "containers/json": [],
            "images/json": [],
        }
        super().__init__(str(socket_path), Handler)


class Handler(http.server.BaseHTTPRequestHandler):
    server: FakeDaemon

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        key = next(key for key in self.server.answers if path.endswith(f"/{key}"))
        body = json.dumps(self.server.answers[key]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_args: object) -> None:
        pass


@contextlib.contextmanager
def daemon(path: Path, version: str, product: str = "Engine") -> Iterator[None]:
    with FakeDaemon(path, version, product) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield
        server.shutdown()
        thread.join(5)


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """A short path that every user can get to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name) / "d.sock"


@pytest.fixture
def host(socket_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine whose only engine is the fake one: PATH holds no podman."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return Host(environ={"DOCKER_HOST": f"unix://{socket_path}"}, store=tmp_path / "store")


def refusal(asked: str, host: Host, *, need_bytes: int = 0) -> EngineError:
    with pytest.raises(EngineError) as caught, opened(asked, host, need_bytes=need_bytes):
        pass
    assert caught.value.exit_code == 5
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("asked", ["auto", "docker"])
@pytest.mark.parametrize("version", ["20.10.24+dfsg1", "28.2.2", "20.10"])
def test_a_docker_that_is_new_enough_is_used(
    asked: str, version: str, host: Host, socket_path: Path
) -> None:
    with daemon(socket_path, version), opened(asked, host) as engine:
        assert engine.name == "docker"
        assert engine.version() == version


@pytest.mark.parametrize("version", ["19.03.15", "20.9.1", "1.13.1", "dev"])
def test_an_old_docker_is_refused(version: str, host: Host, socket_path: Path) -> None:
    with daemon(socket_path, version):
        error = refusal("auto", host)
    assert error.code == "ENGINE_TOO_OLD"
    assert version in error.message


def test_no_engine_at_all_names_both_and_what_to_install(host: Host) -> None:
    error = refusal("auto", host)
    assert error.code == "ENGINE_ABSENT"
    assert "docker is not running here" in error.message
    assert "podman is not installed" in error.message
    assert "apt-get install" in str(error.hint)


def test_a_socket_nobody_listens_on_is_absent(host: Host, socket_path: Path) -> None:
    FakeDaemon(socket_path, "28").server_close()
    assert refusal("docker", host).code == "ENGINE_ABSENT"


def test_podman_absent(host: Host) -> None:
    assert refusal("podman", host).code == "ENGINE_ABSENT"


def test_a_forbidden_socket_says_which_group_to_join(host: Host, socket_path: Path) -> None:
    with daemon(socket_path, "28.0"):
        socket_path.chmod(0o600)
        with nobody():
            error = refusal("auto", host)
    assert error.code == "ENGINE_PERMISSION"
    assert "srw-------" in error.message
    assert f"usermod -aG {socket_path.group()}" in str(error.hint)


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_podman_behind_dockers_socket_is_not_taken_for_docker(
    host: Host, socket_path: Path
) -> None:
    with daemon(socket_path, "4.3.1", "Podman Engine"):
        error = refusal("docker", host)
    assert error.code == "ENGINE_ABSENT"
    assert error.hint == "--engine podman"


def test_an_engine_on_another_machine_is_refused(host: Host) -> None:
    far = Host(environ={"DOCKER_HOST": "tcp://10.0.0.1:2375"}, store=host.store)
    assert refusal("docker", far).code == "ENGINE_REMOTE"


def test_an_unknown_engine_is_a_usage_error(host: Host) -> None:
    with pytest.raises(UsageError) as caught, opened("rkt", host):
        pass
    assert caught.value.code == "UNKNOWN_ENGINE"


def test_a_disk_too_small_is_found_before_work(host: Host, socket_path: Path) -> None:
    with daemon(socket_path, "28.0"):
        error = refusal("auto", host, need_bytes=1 << 60)
    assert error.code == "DISK_TOO_SMALL"
    assert "GB free" in error.message


def test_space_is_looked_for_where_a_folder_will_be(tmp_path: Path) -> None:
    check_space({"store": tmp_path / "not" / "yet"}, 1)
    with pytest.raises(EngineError):
        check_space({"store": tmp_path / "not" / "yet"}, 1 << 60)


def test_survey_lists_both_with_their_problems(host: Host, socket_path: Path) -> None:
    with daemon(socket_path, "28.0"):
        docker, podman = survey(host.environ)
    assert (docker.name, docker.version, docker.problem) == ("docker", "28.0", None)
    assert podman.problem is not None
    assert podman.problem.code == "ENGINE_ABSENT"


@pytest.mark.parametrize(
    ("mounts", "installed", "runtime"),
    [(HYBRID, "runc", "runc"), (PURE, "runc", None), (PURE, "", None), ("", "", None)],
)
def test_runc_is_asked_for_only_where_crun_fails(
    mounts: str, installed: str, runtime: str | None, tmp_path: Path
) -> None:
    (tmp_path / "mounts").write_text(mounts)
    found = chosen_runtime(
        tmp_path / "mounts", lambda name: name if name == installed else None
    )
    assert found == runtime


def test_hybrid_cgroups_without_runc_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(HYBRID)
    with pytest.raises(EngineError) as caught:
        chosen_runtime(tmp_path / "mounts", lambda _name: None)
    assert caught.value.code == "ENGINE_RUNTIME"
