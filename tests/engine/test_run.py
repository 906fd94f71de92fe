"""`run` for real, on the CPU, with a small real model, on both engines.

What this proves about a GPU: nothing but that there is no silent fall-back.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import queue
import shutil
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker.errors import APIError

from tests.layouts import docker_archive
from tests.model import MODEL_SHA256, small_model
from tests.talk import body_of, exchange, request, status_of
from vega_image.engines.choose import Host, opened
from vega_image.engines.container import Mount
from vega_image.engines.docker import DockerEngine
from vega_image.errors import HostError, VegaError
from vega_image.process import run
from vega_image.serving.modeldigest import read_model
from vega_image.serving.sandbox import GpuChoice, Visit, account_for, container_spec
from vega_image.serving.server import Listener, RunRequest, Surroundings, run_target
from vega_image.serving.session import Ready, Session, serve
from vega_image.serving.socketfolder import candidates, socket_folder
from vega_image.spec import Serve

pytestmark = [pytest.mark.needs("network")]

ENGINES = [
    pytest.param("docker", marks=pytest.mark.needs("docker")),
    pytest.param("podman", marks=pytest.mark.needs("podman")),
]
PLACES = candidates(os.environ, uid=os.geteuid())
ACCOUNT = account_for(os.geteuid(), os.getegid())


@dataclass(frozen=True)
class Loaded:
    """An engine that holds the image, and how the image wants to be served."""

    host: DockerEngine
    image: str
    serve: Serve


@pytest.fixture(scope="module", params=ENGINES)
def loaded(
    request: pytest.FixtureRequest,
    inference_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("engine")
    layout = Path(inference_image)
    with opened(request.param, Host(environ=os.environ, store=folder)) as host:
        image = host.load_image(docker_archive(layout, folder / "image.tar"))
        (folder / "image.tar").unlink()
        yield Loaded(host, image, serve_of(layout))
        if request.param == "podman":
            host.remove_image(image)


def serve_of(layout: Path) -> Serve:
    """Read the label an image carries."""

    def blob(digest: str) -> Mapping[str, object]:
        path = layout / "blobs" / digest.replace(":", "/")
        value: Mapping[str, object] = json.loads(path.read_bytes())
        return value

    index = json.loads((layout / "index.json").read_text())
    manifest: dict[str, dict[str, str]] = dict(blob(index["manifests"][0]["digest"]))  # type: ignore[arg-type]
    config: dict[str, dict[str, str]] = dict(blob(manifest["config"]["digest"])["config"])  # type: ignore[call-overload]
    return Serve.model_validate_json(config["Labels"]["io.vega-image.serve"])


@dataclass
class Served:
    """A run in a thread: what it told, and how it ended."""

    ready: Ready
    said: list[str]
    ended: queue.Queue[BaseException | None]
    state: Path

    @property
    def port(self) -> int:
        return int(self.ready.url.rpartition(":")[2])

    def ask(self, target: str, body: object) -> bytes:
        data = json.dumps(body).encode() if not isinstance(body, bytes) else body
        raw = request("POST", target, port=self.port, key=self.ready.key, body=data)
        return exchange(self.port, raw, seconds=120)


@contextmanager
def running(loaded: Loaded, state: Path, **change: object) -> Iterator[Served]:
    """Run in a thread until the block ends; then the container is killed from outside."""
    told: queue.Queue[Ready | None] = queue.Queue()
    ended: queue.Queue[BaseException | None] = queue.Queue()
    said: list[str] = []
    asked = RunRequest(
        serve=loaded.serve,
        image=loaded.image,
        model=small_model(),
        model_sha256=MODEL_SHA256,
        cpu=True,
    )
    asked = dataclasses.replace(asked, **change)  # type: ignore[arg-type]
    around = Surroundings(
        host=loaded.host, facts=None, state_folder=state, memory_folders=PLACES
    )
    tell = Listener(say=said.append, progress=lambda _a, _b: None, ready=told.put)

    def work() -> None:
        try:
            run_target(asked, around, tell=tell)
            ended.put(None)
        except BaseException as error:  # noqa: BLE001 - it is told to the test
            ended.put(error)
        told.put(None)

    thread = threading.Thread(target=work)
    thread.start()
    ready = told.get(timeout=120)
    try:
        if ready is None:
            raise ended.get()  # type: ignore[misc]
        yield Served(ready, said, ended, state)
    finally:
        for name in containers(loaded):
            loaded.host.stop(name)
        thread.join(60)
    assert not containers(loaded)
    assert not folders()


def containers(loaded: Loaded) -> list[str]:
    rows = loaded.host._api.containers(all=True, filters={"label": "io.vega-image.step=run"})
    return [str(row["Id"]) for row in rows]


def folders() -> list[Path]:
    return [one for place in PLACES for one in place.glob("vega-image-run-*")]


SECRET = f"zebra-{uuid.uuid4().hex}"


def test_a_completion_comes_back_and_the_prompt_stays_nowhere(
    loaded: Loaded, tmp_path: Path
) -> None:
    with running(loaded, tmp_path) as served:
        fact = {"prompt": "The capital of France is", "n_predict": 4, "temperature": 0}
        assert body_of(served.ask("/completion", fact))["content"].startswith(" Paris")
        chat = {"messages": [{"role": "user", "content": SECRET}], "max_tokens": 4}
        assert status_of(served.ask("/v1/chat/completions", chat)) == 200
        assert status_of(served.ask("/completion", {**fact, "prompt": SECRET})) == 200
        broken = f'{{"prompt": "{SECRET}'.encode()
        assert status_of(served.ask("/completion", broken)) >= 400
        streamed = served.ask("/completion", {**fact, "stream": True})
        assert streamed.count(b"data: ") > 2
        logs = engine_logs(loaded)
        assert SECRET not in logs
        assert served.ready.device
        assert not served.ready.gpu
        assert "CPU: slow, no GPU used" in served.said[0]
        assert served.ready.model_digest == f"sha256:{MODEL_SHA256}"
        (name,) = containers(loaded)
        loaded.host._api.kill(name)
        error = served.ended.get(timeout=60)
        assert isinstance(error, HostError)
        assert error.code == "SERVER_ENDED"
        assert "exit code 137" in error.message
        assert SECRET not in error.message
        assert not places_with(SECRET, tmp_path)


def engine_logs(loaded: Loaded) -> str:
    """Whatever the engine would show of the container's output."""
    (name,) = containers(loaded)
    try:
        return loaded.host._api.logs(name).decode(errors="replace")
    except APIError as error:
        return str(error)


def places_with(secret: str, state: Path) -> list[str]:
    """Name every file that holds the secret where logs and state of such a run could lie."""
    where = [
        state,
        Path("/var/log"),
        Path("/run/log"),
        Path("/var/lib/docker/containers"),
        *PLACES,
    ]
    there = [str(path) for path in where if path.exists()]
    argv = ["grep", "-rlsa", "--devices=skip", "--", secret, *there]
    found = run(argv).output.split()
    journal = run(["journalctl", "--no-pager"]).output if shutil.which("journalctl") else ""
    return [*found, *(["journal"] if secret in journal else [])]


def test_another_local_user_gets_401_and_cannot_reach_the_socket(
    loaded: Loaded, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with running(loaded, tmp_path) as served:
        as_other = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--"]
        curl = [*as_other, "curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}"]
        assert run([*curl, f"{served.ready.url}/v1/models"]).output == "401"
        (folder,) = folders()
        direct = run([*curl, "--unix-socket", str(folder / "llama.sock"), "http://x/health"])
        assert (direct.output, direct.returncode) == ("000", 7)
        mine = run(
            ["curl", "-s", "--unix-socket", str(folder / "llama.sock"), "http://x/health"]
        )
        assert "ok" in mine.output


@pytest.mark.needs("gcc")
def test_inside_nothing_is_reached_and_nothing_written(loaded: Loaded, tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    source = Path(__file__).resolve().parent.parent / "data" / "c" / "probe.c"
    assert run(["gcc", "-static", "-O1", "-o", str(probe), str(source)]).returncode == 0
    probe.chmod(0o755)
    with listener() as (port, heard), socket_folder(PLACES, ACCOUNT) as folder:
        spec = container_spec(loaded.serve, visit(loaded, folder, None))
        spec = dataclasses.replace(
            spec,
            entrypoint=("/models/probe",),
            command=(str(port), *host_addresses()),
            mounts=(*spec.mounts, Mount(source=probe, target="/models/probe")),
        )
        lines = list(loaded.host.start_container(spec).lines)
        loaded.host.remove(spec.name)
        assert sorted(path.name for path in folder.iterdir()) == ["probe-wrote"]
    assert heard == []
    said = dict(line.rpartition(" ")[::2] for line in lines)
    text = "\n".join(lines)
    assert "CONNECTED" not in text
    # 127.0.0.1 is the container's own: a datagram to nobody there is no error.
    assert [line for line in lines if line.endswith(" SENT")] == ["send 127.0.0.1 SENT"]
    assert text.count("dial ") == len(host_addresses())
    wrote = {line.split()[1] for line in lines if line.endswith("WROTE")}
    assert wrote <= {"/tmp", "/dev/shm", "/run/vega"}
    assert {"/tmp", "/run/vega"} <= wrote
    assert "WRITABLE" not in text
    assert said["core"] == "0"
    assert "NoNewPrivs:\t1" in text
    assert text.count("0000000000000000") == 2
    uid = ACCOUNT.uid
    assert lines[0] == f"uid {uid} gid {ACCOUNT.gid}"
    assert uid != 0


def visit(loaded: Loaded, folder: Path, gpu: GpuChoice | None) -> Visit:
    return Visit(
        name=f"vega-image-run-{uuid.uuid4().hex[:8]}",
        image=loaded.image,
        model=small_model(),
        model_bytes=1 << 27,
        socket_folder=folder,
        account=ACCOUNT,
        gpu=gpu,
    )


def host_addresses() -> list[str]:
    """Every IPv4 address of this host, and two that a container often reaches it by."""
    told = json.loads(run(["ip", "-j", "-4", "addr"]).output)
    own = [one["local"] for link in told for one in link["addr_info"]]
    return [*own, "169.254.169.254", "10.0.2.2"]


@contextmanager
def listener() -> Iterator[tuple[int, list[str]]]:
    """Listen on every address, TCP and UDP, and note who calls."""
    heard: list[str] = []
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("0.0.0.0", 0))
        port = tcp.getsockname()[1]
        udp.bind(("0.0.0.0", port))
        tcp.listen()
        # The listener itself works: it hears a call from the host.
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        caller, address = tcp.accept()
        caller.close()
        assert address[0] == "127.0.0.1"
        yield port, heard
        for one in (tcp, udp):
            one.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            caller, address = tcp.accept()
            caller.close()
            heard.append(str(address))
        with contextlib.suppress(TimeoutError):
            heard.append(str(udp.recvfrom(10)[1]))


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "unpinned"])
def test_without_the_gpu_there_is_no_answer(loaded: Loaded, *, pinned: bool) -> None:
    """Asked for its GPU where there is none: the server ends, or (unpinned) is found out."""
    gpu = GpuChoice(name="none", render_node=Path("/dev/null"), groups=())
    model = read_model(small_model(), expected=None, progress=lambda _a, _b: None)
    with socket_folder(PLACES, ACCOUNT) as folder:
        spec = dataclasses.replace(
            container_spec(loaded.serve, visit(loaded, folder, gpu)), devices=()
        )
        if not pinned:
            place = spec.command.index("--device")
            command = (*spec.command[:place], *spec.command[place + 2 :])
            spec = dataclasses.replace(spec, command=command)
        session = Session(
            spec=spec,
            socket=folder / "llama.sock",
            model=model,
            gpu=gpu,
            gpu_device=loaded.serve.gpu_device,
            key="k" * 32,
            port=0,
            ready_seconds=120,
        )
        answered: list[Ready] = []
        try:
            with pytest.raises(HostError) as caught:
                asyncio.run(serve(session, loaded.host, on_ready=answered.append))
        finally:
            loaded.host.remove(spec.name)
    assert (caught.value.code, caught.value.exit_code) == ("GPU_NOT_USED", 7)
    assert not answered
    assert ("exit code 1" in caught.value.message) is pinned


def test_a_broken_model_is_explained(loaded: Loaded, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(small_model().read_bytes()[:1_000_000])
    tmp_path.chmod(0o755)
    with (
        pytest.raises(VegaError) as caught,
        running(loaded, tmp_path, model=broken, model_sha256=None),
    ):
        pytest.fail("it answered")
    assert (caught.value.code, caught.value.exit_code) == ("MODEL_REFUSED", 2)
