"""One serving session: container up, health through the bridge, device proven, then wait."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import h11

from vega_image.digest import Json
from vega_image.engines.container import ContainerHost, ContainerSpec
from vega_image.errors import HostError
from vega_image.serving import llama
from vega_image.serving.bridge import ADDRESS, Bridge
from vega_image.serving.heard import Heard, death
from vega_image.serving.modeldigest import ModelFile, check_unchanged
from vega_image.serving.page import chat_page
from vega_image.serving.sandbox import GpuChoice
from vega_image.serving.wire import Wire, ask

ASK_SECONDS = 5.0
ANSWER_SECONDS = 300.0
ANSWER_TOKENS = 24
BETWEEN_SECONDS = 0.2
LINES_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A server that answers: `device` is its own name for what it computes with."""

    url: str
    key: str
    model: str
    model_digest: str
    device: str
    gpu: bool

    def lines(self) -> tuple[str, ...]:
        """Say it to a person."""
        device = f"GPU: {self.device}" if self.gpu else f"{CPU_WORDS} ({self.device})"
        return (
            f"device  {device}",
            f"model   {self.model} {self.model_digest}",
            f"chat    {self.url}/#key={self.key}",
            f"API     {self.url}/v1   key {self.key}",
            "Ctrl-C stops it and leaves nothing",
        )


CPU_WORDS = "CPU: slow, no GPU used"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a session needs; `gpu` None means the CPU was asked for."""

    spec: ContainerSpec
    socket: Path
    model: ModelFile
    gpu: GpuChoice | None
    gpu_device: str
    key: str
    port: int
    ready_seconds: float
    question: str | None = None


async def serve(
    session: Session, host: ContainerHost, *, on_ready: Callable[[Ready], None]
) -> str:
    """Serve until the server ends (VegaError) or the task is cancelled.

    With a `question` return what the model adds to it, as soon as it is there.

    Raises UsageError PORT_TAKEN, EngineError, and the HostErrors of llama.py and heard.py;
    HostError SERVER_SLOW when it is not healthy after `ready_seconds`. The caller removes
    the container `session.spec.name` in every case.
    """
    state: dict[str, Json] = {"state": "loading", "model": session.model.path.name}
    bridge = Bridge(session.key, session.socket, page=chat_page(), status=lambda: state)
    await bridge.start(session.port)
    try:
        watch = await _started(session, host)
        await _healthy(session, bridge, watch)
        ready = _proven(session, bridge, watch.heard)
        check_unchanged(session.model)
        watch.heard.open_to_prompts = True
        bridge.ready = True
        state |= {"state": "ready", "device": ready.device, "gpu": ready.gpu}
        state |= {"digest": ready.model_digest}
        on_ready(ready)
        if session.question is not None:
            return await complete(bridge.port, session.key, session.question)
        await watch.ended.wait()
        raise await watch.death()
    finally:
        await bridge.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watch:
    host: ContainerHost
    session: Session
    heard: Heard
    loaded: asyncio.Event
    ended: asyncio.Event

    async def death(self) -> Exception:
        """Ask the engine what became of the container and say it in words."""
        state = await asyncio.to_thread(self.host.state, self.session.spec.name)
        gpu = self.session.gpu is not None
        return death(self.heard, state, model=self.session.model.path.name, gpu=gpu)


async def _started(session: Session, host: ContainerHost) -> _Watch:
    watch = _Watch(
        host=host,
        session=session,
        heard=Heard(),
        loaded=asyncio.Event(),
        ended=asyncio.Event(),
    )
    started = await asyncio.to_thread(host.start_container, session.spec)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_listen, args=(started.lines, watch, loop), daemon=True).start()
    return watch


def _listen(lines: Iterator[str], watch: _Watch, loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(OSError, RuntimeError):  # the loop may be closed before us
        try:
            for line in lines:
                if watch.heard.take(line):
                    loop.call_soon_threadsafe(watch.loaded.set)
        finally:
            loop.call_soon_threadsafe(watch.ended.set)


async def _healthy(session: Session, bridge: Bridge, watch: _Watch) -> None:
    try:
        async with asyncio.timeout(session.ready_seconds):
            while await health(bridge.port, session.key) != 200:  # noqa: PLR2004
                if await _within(watch.ended, BETWEEN_SECONDS):
                    raise await watch.death()
    except TimeoutError:
        msg = f"the server is not ready after {session.ready_seconds:.0f} s"
        raise HostError("SERVER_SLOW", msg, hint="--wait SECONDS") from None
    # The engine hands the lines on a moment after the server wrote them.
    await _within(watch.loaded, LINES_SECONDS)


async def complete(port: int, key: str, prompt: str) -> str:
    """Complete a prompt through the bridge as any client would, at temperature 0.

    Raises HostError NO_ANSWER.
    """
    headers = [
        ("Host", f"{ADDRESS}:{port}"),
        ("Authorization", f"Bearer {key}"),
        ("Content-Type", "application/json"),
    ]
    body = json.dumps({"prompt": prompt, "n_predict": ANSWER_TOKENS, "temperature": 0}).encode()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            wire = Wire(h11.CLIENT, *await asyncio.open_connection(ADDRESS, port))
            try:
                status, answer = await ask(wire, "/completion", headers, body=body)
            finally:
                wire.close()
        if status == HTTPStatus.OK:
            return str(json.loads(answer)["content"])
        why = f"it said {status}"
    except (OSError, TimeoutError, h11.ProtocolError, ValueError, KeyError) as error:
        why = type(error).__name__
    msg = f"the server gave no answer to the question: {why}"
    raise HostError("NO_ANSWER", msg, hint="run it without --ask and look at the page")


async def health(port: int, key: str) -> int:
    """Ask /health through the bridge as any client would: the status, 0 when there is none."""
    headers = [("Host", f"{ADDRESS}:{port}"), ("Authorization", f"Bearer {key}")]
    try:
        async with asyncio.timeout(ASK_SECONDS):
            wire = Wire(h11.CLIENT, *await asyncio.open_connection(ADDRESS, port))
            try:
                return (await ask(wire, "/health", headers))[0]
            finally:
                wire.close()
    except (OSError, TimeoutError, h11.ProtocolError):
        return 0


async def _within(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _proven(session: Session, bridge: Bridge, heard: Heard) -> Ready:
    found = llama.placement(heard.start)
    if session.gpu is None:
        device = llama.prove_cpu(found)
    else:
        address = session.gpu.pci_address
        device = llama.prove_gpu(found, session.gpu_device, pci_address=address)
    return Ready(
        url=f"http://{ADDRESS}:{bridge.port}",
        key=session.key,
        model=session.model.path.name,
        model_digest=session.model.digest,
        device=device,
        gpu=session.gpu is not None,
    )
