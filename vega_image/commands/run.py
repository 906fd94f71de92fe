"""vega-image run: an image of ours, a model file, and a server behind the bridge."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from vega_image.clioptions import Call
from vega_image.digest import Json
from vega_image.engines.choose import Host, opened
from vega_image.engines.container import ContainerHost
from vega_image.errors import UsageError
from vega_image.images import layout_of, no_image, remember_run
from vega_image.oci.archive import docker_archive
from vega_image.oci.layout import Layout, read_layout
from vega_image.selftest.facts import Facts, read_facts
from vega_image.serving.server import (
    Listener,
    Surroundings,
    run_target,
)
from vega_image.serving.server import (
    RunRequest as ServeRequest,
)
from vega_image.serving.session import Ready
from vega_image.serving.socketfolder import candidates
from vega_image.spec import Serve, TargetKind

SERVE_LABEL = "io.vega-image.serve"
TARGET_LABEL = "io.vega-image.target"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What `vega-image run` was asked to do."""

    ref: str
    model: Path
    model_sha256: str | None
    cpu: bool
    port: int
    ask: str | None
    sysroot: Path | None
    memory: int | None
    wait: float


def run(call: Call, request: RunRequest) -> int:
    """Serve until Ctrl-C, or answer one prompt under --ask."""
    call.factory.refuse_windows(request.ref)
    _refuse_archive(call, request.ref)
    layout = read_layout(layout_of(call.store, request.ref))
    serve = serve_of(layout.labels, ref=request.ref)
    facts = None if request.cpu else _facts(call, request)
    host = Host(environ=call.settings.environ, store=call.store.root, log=call.console.say)
    with opened(call.settings.engine, host) as engine:
        asked = ServeRequest(
            serve=serve,
            image=loaded(call, engine, layout),
            model=request.model,
            model_sha256=request.model_sha256,
            cpu=request.cpu,
            port=request.port,
            question=request.ask,
            memory_bytes=request.memory,
            ready_seconds=request.wait,
        )
        around = Surroundings(
            host=engine,
            facts=facts,
            state_folder=call.settings.state,
            memory_folders=candidates(call.settings.environ, uid=os.geteuid()),
        )
        tell = _listener(call, layout, quiet=request.ask is not None)
        answer = run_target(asked, around, tell=tell)
    call.console.result([f"{request.ask}{answer}"], {"question": request.ask, "answer": answer})
    return 0


def _refuse_archive(call: Call, ref: str) -> None:
    name = ref.partition("@")[0].partition(":")[0]
    factory = call.factory
    if name in factory.names() and factory.spec(name).kind == TargetKind.WSL:
        raise no_image(name)


def serve_of(labels: Mapping[str, str], *, ref: str) -> Serve:
    """Read how an image is served from its label; raises UsageError NOT_SERVABLE."""
    try:
        return Serve.model_validate_json(labels[SERVE_LABEL])
    except (KeyError, ValidationError):
        msg = f"{ref}: the image does not say how it is served (label {SERVE_LABEL})"
        hint = f"vega-image inspect {ref}"
        raise UsageError("NOT_SERVABLE", msg, at=ref, hint=hint) from None


def loaded(call: Call, engine: ContainerHost, layout: Layout) -> str:
    """Return the id under which the engine holds the image, loading it the first time."""
    if engine.has_image(layout.config_digest):
        return layout.config_digest
    call.console.say(f"loading the image into {engine.name} (once)")
    total = layout.uncompressed_bytes
    tag = f"localhost/{layout.labels.get(TARGET_LABEL, 'vega-image')}:{layout.tag}"
    return engine.load_image(
        docker_archive(layout, call.store, tag=tag),
        progress=lambda done: call.console.progress("load", done, total),
    )


def _facts(call: Call, request: RunRequest) -> Facts:
    environ = call.settings.environ if request.sysroot is None else {}
    gids = {*os.getgroups(), os.getegid()}
    return read_facts(request.sysroot or Path("/"), environ, uid=os.geteuid(), gids=gids)


def _listener(call: Call, layout: Layout, *, quiet: bool) -> Listener:
    """Tell a person on stderr; what a script needs to connect goes to stdout when it serves."""

    def ready(found: Ready) -> None:
        name = layout.labels.get(TARGET_LABEL)
        if name:
            device = f"GPU: {found.device}" if found.gpu else "CPU only"
            remember_run(call.store, name, device=device, image=layout.digest)
        if quiet:
            call.console.say(found.lines()[0])
            return
        value: Json = {
            "url": found.url,
            "key": found.key,
            "model": found.model,
            "model_digest": found.model_digest,
            "device": found.device,
            "gpu": found.gpu,
        }
        call.console.result(found.lines(), value)

    return Listener(
        say=call.console.warn,
        progress=lambda done, total: call.console.progress("model", done, total),
        ready=ready,
    )
