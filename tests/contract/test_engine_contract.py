"""One suite over every engine that runs stages: the fake, dockerd and podman."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.hostroot import OWNER, host_parent
from vega_image.engines.base import Artifact, Engine, Work
from vega_image.engines.choose import Host, opened
from vega_image.engines.container import ContainerSpec
from vega_image.engines.docker import DockerEngine
from vega_image.engines.fake import FakeEngine
from vega_image.engines.owner import Owner
from vega_image.errors import StageError, UsageError
from vega_image.factory import Factory
from vega_image.plan import Step, StepKind
from vega_image.process import output_of
from vega_image.render import render_stage
from vega_image.rootfs.tree import Kind, Tree
from vega_image.spec import Stage
from vega_image.store import Store

PROJECT = Path(__file__).resolve().parents[2]
FACTORY = Factory(PROJECT / "tests/data/factory")
FAKE = pytest.param("fake")
DOCKER = pytest.param("docker", marks=pytest.mark.needs("docker"))
PODMAN = pytest.param("podman", marks=pytest.mark.needs("podman"))
STEP = Step(id="sha256:" + "5" * 64, name="note", kind=StepKind.STAGE, parent="host")
BASE = "ARG BASE\nFROM ${BASE}\n"
DEADLINE = 20.0


@dataclass
class Bench:
    """An engine with a store, a parent and a log."""

    engine: Engine
    store: Store
    work: Work
    lines: list[str] = field(default_factory=list)

    def build(self, **files: bytes) -> Artifact:
        scratch = self.work.scratch / str(len(list(self.work.scratch.iterdir())))
        scratch.mkdir()
        work = replace(self.work, files=files or note(), scratch=scratch, log=self.lines.append)
        return self.engine.build(STEP, work)

    def run(self, script: str) -> Artifact:
        return self.build(Dockerfile=f"{BASE}RUN {script}\n".encode())

    def tree(self, artifact: Artifact) -> Tree:
        return Tree.from_json(self.store.read_json(artifact.digest, what="result"))

    @property
    def real(self) -> DockerEngine:
        assert isinstance(self.engine, DockerEngine)
        return self.engine


def note() -> dict[str, bytes]:
    stage = Stage(name="note", recipe="note", options={"text": "a 'quoted' $note; `ls`"})
    return render_stage(stage, FACTORY.recipe("note").files, epoch=0, gpu="gfx906")


@contextlib.contextmanager
def bench_of(name: str, folder: Path) -> Iterator[Bench]:
    store = Store(folder / "store")
    scratch = folder / "scratch"
    scratch.mkdir()
    work = Work(
        store=store,
        parent=host_parent(store, folder),
        scratch=scratch,
        epoch=1_700_000_000,
        log=print,
        progress=lambda _done, _total: None,
        log_path=folder / "stage.log",
    )
    if name == "fake":
        yield Bench(FakeEngine(), store, work)
        return
    with opened(name, Host(environ=os.environ, store=store.root)) as engine:
        yield Bench(engine, store, work)


@pytest.fixture(params=[FAKE, DOCKER, PODMAN])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with bench_of(request.param, tmp_path) as made:
        yield made


@pytest.fixture(params=[DOCKER, PODMAN])
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with bench_of(request.param, tmp_path) as made:
        yield made
        assert left_by(made.real) == [], "a build left something in the engine"


def left_by(engine: DockerEngine) -> list[str]:
    label = f"io.vega-image.step={STEP.id}"
    rows = [*engine._containers(label), *engine._images(label)]
    return [str(row["Id"]) for row in rows]


def test_a_stage_gives_an_artifact_of_its_step(bench: Bench) -> None:
    artifact = bench.build()
    assert artifact.step == STEP.id
    assert bench.store.has(artifact.digest)
    assert all(bench.store.has(digest) for digest in artifact.needs)


def test_the_same_stage_gives_the_same_artifact(bench: Bench) -> None:
    assert bench.build() == bench.build()


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\nb", "", "a//b"])
def test_a_context_path_that_leaves_the_context_is_refused(bench: Bench, path: str) -> None:
    with pytest.raises(UsageError) as caught:
        bench.build(**note(), **{path: b""})
    assert caught.value.code == "CONTEXT_PATH"


@pytest.mark.parametrize(
    "text",
    [
        "FROM debian:12\nRUN true\n",
        f"{BASE}FROM docker.io/library/alpine AS x\nFROM ${{BASE}}\n",
        f"{BASE}ADD http://127.0.0.1/x /x\n",
        f"{BASE}COPY --from=alpine /etc/passwd /x\n",
    ],
)
def test_a_dockerfile_that_reaches_out_is_refused(bench: Bench, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        bench.build(Dockerfile=text.encode())
    assert caught.value.code == "STAGE_REACHES_OUT"


def test_a_stage_without_a_dockerfile_is_refused(bench: Bench) -> None:
    with pytest.raises(UsageError) as caught:
        bench.build(README=b"no Dockerfile here")
    assert caught.value.code == "STAGE_NO_DOCKERFILE"


def test_only_what_the_stage_changed_is_the_stages(real: Bench) -> None:
    tree = real.tree(real.build())
    made = {entry.path: entry for entry in tree.entries if entry.owner == "stage:note"}
    assert {path: (entry.kind, oct(entry.mode)) for path, entry in made.items()} == {
        "opt/note": (Kind.DIR, "0o755"),
        "opt/note/deep": (Kind.DIR, "0o750"),
        "opt/note/deep/a name with 'quotes', \"more\" and ü": (Kind.FILE, "0o644"),
        "opt/note/deep/er": (Kind.DIR, "0o755"),
        "opt/note/greeting.txt": (Kind.FILE, "0o644"),
        "opt/note/hard-link": (Kind.FILE, "0o644"),
        "opt/note/soft-link": (Kind.SYMLINK, "0o777"),
        "opt/note/text": (Kind.FILE, "0o644"),
        "srv/replaced/new": (Kind.FILE, "0o644"),
    }
    gone = {"etc/taken-away", "srv/replaced/old", "opt/note/note.sh"}
    assert gone.isdisjoint(tree.by_path())
    assert tree.by_path()["etc/untouched"].owner == OWNER
    assert tree.by_path()["bin/cat"].mode == 0o755, "setuid is dropped, so nothing changed"
    content = made["opt/note/text"].content
    assert content is not None
    data = real.store.path(content.object).read_bytes()
    assert data[content.offset :][: content.size] == b"a 'quoted' $note; `ls`\n"


@pytest.mark.needs("docker")
@pytest.mark.needs("podman")
def test_both_engines_give_the_same_artifact(tmp_path: Path) -> None:
    made = []
    for name in ("docker", "podman"):
        folder = tmp_path / name
        folder.mkdir()
        with bench_of(name, folder) as one:
            made.append(one.build())
    assert made[0] == made[1]


@pytest.mark.parametrize("name", [DOCKER, PODMAN])
def test_umask_zone_and_proxy_of_the_caller_change_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    files = note()
    files["Dockerfile"] += b'RUN echo "$TZ $LC_ALL $http_proxy" > /opt/env\n'
    for number, mask in enumerate((0o022, 0o077)):
        monkeypatch.setenv("TZ", "Asia/Tokyo" if number else "UTC")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9" if number else "")
        monkeypatch.setenv("no_proxy", "*")
        folder = tmp_path / str(number)
        folder.mkdir()
        before = os.umask(mask)
        try:
            with bench_of(name, folder) as one:
                made.append(one.build(**files))
        finally:
            os.umask(before)
    assert made[0] == made[1]


def test_a_stage_sees_its_output_streamed_and_the_epoch(real: Bench) -> None:
    real.run("echo epoch=$SOURCE_DATE_EPOCH; echo to-stderr >&2")
    assert "epoch=1700000000" in real.lines
    assert "to-stderr" in real.lines


def test_a_failing_stage_is_found_with_code_last_lines_and_log(real: Bench) -> None:
    with pytest.raises(StageError) as caught:
        real.run("for i in 1 2 3 4 5 6 7 8 9; do echo line-$i; done; echo why >&2; exit 37")
    error = caught.value
    assert error.code == "STAGE_FAILED"
    assert "stage note failed: code 37" in error.message
    assert "line-9" in error.message
    assert "why" in error.message
    assert str(real.work.log_path) in error.message
    assert "line-1" in real.lines


def test_only_the_last_thirty_lines_are_in_the_message(real: Bench) -> None:
    with pytest.raises(StageError) as caught:
        real.run(
            "for a in 1 2 3 4 5; do for b in 1 2 3 4 5 6 7; do echo n$a$b; done; done; exit 1"
        )
    assert "n57" in caught.value.message
    assert "n11\n" not in caught.value.message
    assert "n11" in real.lines, "the log has them all"


def test_a_missing_context_file_fails_the_stage(real: Bench) -> None:
    with pytest.raises(StageError) as caught:
        real.build(Dockerfile=f"{BASE}COPY no-such-file /x\n".encode())
    assert caught.value.code == "STAGE_FAILED"
    assert "no-such-file" in caught.value.message


def test_a_stage_cannot_reach_a_listener_on_the_host(real: Bench) -> None:
    with listener() as (port, accepted):
        tries = "; ".join(f"(echo x > /dev/tcp/{host}/{port})" for host in host_addresses())
        real.run(f"{tries}; cat /proc/net/dev; echo tried")
    assert "tried" in real.lines
    assert accepted == []
    devices = [line.split(":")[0].strip() for line in real.lines if line.count(":") == 1]
    assert "eth0" not in devices


@pytest.mark.parametrize("make", ["$'/opt/new\\nline'", "$'/opt/bell\\a'"])
def test_a_file_with_a_hostile_name_is_refused(real: Bench, make: str) -> None:
    with pytest.raises(StageError) as caught:
        real.run(f"echo > {make}")
    assert caught.value.code == "HOSTILE_TAR"


def test_a_fifo_is_refused(real: Bench) -> None:
    with pytest.raises(StageError) as caught:
        real.run("mkfifo /opt/pipe")
    assert caught.value.code == "STAGE_LEFT_DEVICE"


def test_objects_of_the_store_are_in_the_context(real: Bench) -> None:
    digest = real.store.put(b"locked bytes\n")
    work = replace(real.work, objects={"sources/a": digest})
    real.work = work
    real.build(Dockerfile=f"{BASE}COPY sources/a /opt/a\nRUN cat /opt/a\n".encode())
    assert "locked bytes" in real.lines


@pytest.mark.parametrize("name", [DOCKER, PODMAN])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_a_killed_build_leaves_nothing_running(
    tmp_path: Path, name: str, number: signal.Signals
) -> None:
    seconds = f"311.{os.getpid()}{int(number)}"
    argv = [sys.executable, "-m", "tests.contract.sleeping_stage", name, str(tmp_path), seconds]
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with (
        (tmp_path / "stderr").open("wb") as errors,
        output_of(argv, env=env, stderr=errors) as child,
    ):
        assert child.stdout is not None
        until(lambda: running(seconds), (tmp_path / "stderr").read_text)
        os.kill(child.pid, number)
        child.wait(timeout=DEADLINE)
    until(lambda: not running(seconds), lambda: f"{name}: the stage is still running")
    swept: list[str] = []
    host = Host(environ=os.environ, store=tmp_path, log=swept.append)
    with opened(name, host) as engine:
        label = f"io.vega-image.step=sha256:{child.pid:064x}"
        assert engine._containers(label) == []
        assert engine._images(label) == []
    if number is signal.SIGINT:
        assert [line for line in swept if "left" in line] == [], "Ctrl-C cleans up at once"


@pytest.mark.parametrize("name", [DOCKER, PODMAN])
def test_an_interrupt_while_a_stage_talks_ends_the_stage(tmp_path: Path, name: str) -> None:
    seconds = f"312.{os.getpid()}"

    def interrupt(line: str) -> None:
        if line == "begun":
            raise KeyboardInterrupt

    text = f"{BASE}RUN echo begun; sleep {seconds}; echo slept\nRUN sleep {seconds}\n"
    files = {"Dockerfile": text.encode()}
    with pytest.raises(KeyboardInterrupt), bench_of(name, tmp_path) as bench:
        bench.engine.build(STEP, replace(bench.work, files=files, log=interrupt))
    until(lambda: not running(seconds), lambda: f"{name}: the stage is still running")
    with opened(name, Host(environ=os.environ, store=bench.store.root)) as engine:
        assert left_by(engine) == []


def test_what_the_dead_left_is_swept_and_the_living_stay(real: Bench) -> None:
    parent = keep_image(real)
    try:
        ours = asleep(real.real, parent, "vega-image-test-ours")
        mine = real.real._owner
        real.real._owner = Owner(mine.boot, mine.namespace, mine.pid, mine.started + 1)
        theirs = asleep(real.real, parent, "vega-image-test-theirs")
        real.real._owner = mine
        assert real.real.sweep() == ["vega-image-test-theirs"]
        assert real.real.state(theirs) is None
        assert real.real.state(ours) is not None
        real.real.remove(ours)
    finally:
        real.real.remove_image(parent)


def keep_image(bench: Bench) -> str:
    from vega_image.engines.parent import ParentImage

    assert bench.work.parent is not None
    tree = bench.tree(bench.work.parent)
    image = ParentImage(tree=tree, store=bench.store, labels={}, epoch=0)
    return bench.real.load_image(image.stream())


def asleep(engine: DockerEngine, image: str, name: str) -> str:
    engine.remove(name)
    spec = ContainerSpec(
        name=name, image=image, label="test", user="10001:10001", command=("/bin/sleep", "100")
    )
    return engine.start_container(spec).id


def running(seconds: str) -> bool:
    wanted = f"sleep\0{seconds}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == wanted:
                return True
    return False


def until(true: object, why: object) -> None:
    assert callable(true)
    assert callable(why)
    waiter = threading.Event()
    deadline = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < deadline, why()
        waiter.wait(0.05)


@contextlib.contextmanager
def listener() -> Iterator[tuple[int, list[object]]]:
    accepted: list[object] = []
    with socket.create_server(("0.0.0.0", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, peer = server.accept()
                    connection.close()
                    accepted.append(peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        until(lambda: len(accepted) == 1, lambda: "the listener itself does not work")
        accepted.clear()
        yield port, accepted
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def host_addresses() -> list[str]:
    found = {"127.0.0.1", "172.17.0.1"}
    for row in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET):
        found.add(str(row[4][0]))
    for line in Path("/proc/net/fib_trie").read_text().splitlines():
        word = line.strip().removeprefix("|-- ")
        if word.count(".") == 3 and "/" not in word and not word.endswith((".0", ".255")):
            found.add(word)
    return sorted(found)
