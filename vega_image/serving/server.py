"""The word `run`: from a model file and an image to an answering server, and back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from vega_image.engines.container import ContainerHost
from vega_image.errors import UsageError
from vega_image.selftest.facts import Facts
from vega_image.serving import session as sessions
from vega_image.serving.gpu import choose_gpu
from vega_image.serving.modeldigest import ModelFile, check_readable, read_model, record
from vega_image.serving.sandbox import (
    GpuChoice,
    Visit,
    account_for,
    container_spec,
    socket_name,
)
from vega_image.serving.session import CPU_WORDS, Ready, Session
from vega_image.serving.socketfolder import socket_folder
from vega_image.spec import Serve

LEAST_KEY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the user asked for. `image` is an id the engine holds; `slot` a PCI address.

    `key` None makes a fresh one; `port` 0 takes a free one.
    """

    serve: Serve
    image: str
    model: Path
    model_sha256: str | None = None
    cpu: bool = False
    slot: str | None = None
    port: int = 0
    key: str | None = None
    memory_bytes: int | None = None
    ready_seconds: float = 900.0
    question: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where it runs: `facts` may be None under --cpu; `memory_folders` as socketfolder says."""

    host: ContainerHost
    facts: Facts | None
    state_folder: Path
    memory_folders: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What is told on the way: sentences, bytes hashed (done, total), and the ready server."""

    say: Callable[[str], None]
    progress: Callable[[int, int], None]
    ready: Callable[[Ready], None]


def run_target(request: RunRequest, around: Surroundings, *, tell: Listener) -> str:
    """Serve until Ctrl-C (KeyboardInterrupt, nothing is left) or until the server dies.

    With a `question` return its answer and stop.

    Raises VegaError: see sandbox.py, gpu.py, modeldigest.py, socketfolder.py, session.py.
    """
    gpu = _device(request, around, tell)
    key = _key(request)
    model = read_model(request.model, expected=request.model_sha256, progress=tell.progress)
    account = account_for(os.geteuid(), os.getegid())
    check_readable(model, account)
    _remember(around, model, tell)
    with socket_folder(around.memory_folders, account) as folder:
        visit = Visit(
            name=f"vega-image-run-{secrets.token_hex(4)}",
            image=request.image,
            model=model.path,
            model_bytes=model.size,
            socket_folder=folder,
            account=account,
            gpu=gpu,
            memory_bytes=request.memory_bytes,
        )
        session = Session(
            spec=container_spec(request.serve, visit),
            socket=folder / socket_name(request.serve),
            model=model,
            gpu=gpu,
            gpu_device=request.serve.gpu_device,
            key=key,
            port=request.port,
            ready_seconds=request.ready_seconds,
            question=request.question,
        )
        return _until_stopped(session, around.host, tell)


def _device(request: RunRequest, around: Surroundings, tell: Listener) -> GpuChoice | None:
    if request.cpu:
        tell.say(f"{CPU_WORDS}. You asked for --cpu; nothing below says anything about a GPU.")
        return None
    assert around.facts is not None, "facts are read unless --cpu"
    gpu = choose_gpu(around.facts, slot=request.slot)
    tell.say(f"the container gets {gpu.name}, {gpu.render_node} and no other device")
    return gpu


def _key(request: RunRequest) -> str:
    key = secrets.token_urlsafe(32) if request.key is None else request.key
    if len(key) < LEAST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        msg = f"the key must have at least {LEAST_KEY} printable ASCII characters, no space"
        raise UsageError("BAD_KEY", msg, hint="leave it out: a fresh one is made")
    return key


def _remember(around: Surroundings, model: ModelFile, tell: Listener) -> None:
    day = datetime.now(UTC).date().isoformat()
    before = record(around.state_folder, model, day=day)
    if before is not None:
        tell.say(f"{model.path.name} is not the file served before: it was {before}")


def _until_stopped(session: Session, host: ContainerHost, tell: Listener) -> str:
    try:
        return asyncio.run(_stoppable(session, host, tell))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        with _undisturbed():
            host.stop(session.spec.name)
            host.remove(session.spec.name)


async def _stoppable(session: Session, host: ContainerHost, tell: Listener) -> str:
    task = asyncio.current_task()
    assert task is not None
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await sessions.serve(session, host, on_ready=tell.ready)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold further Ctrl-C back until the container is gone."""
    stops = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
