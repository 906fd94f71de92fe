"""One program in a container of ours, read to its end or until it is silent for too long."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from vega_image.engines.container import ContainerHost, ContainerSpec, Started
from vega_image.errors import VegaError
from vega_image.selftest.external.protocol import Ended

KILLED = 9
SIGNALLED = 128
TAIL = 20


def run_program(
    host: ContainerHost, spec: ContainerSpec, *, silence: float, told: Callable[[str], None]
) -> Ended:
    """Start, hear every line, wait, remove; nothing is left of it whatever happens.

    `silence` is in seconds. Raises EngineError CONTAINER_FAILED when the engine refuses.
    """
    started = host.start_container(spec)
    try:
        lines, timed_out = _heard(started, silence, told)
        code = KILLED + SIGNALLED if timed_out else _code(host, started.id)
    finally:
        host.remove(started.id)
    said = [line for line in lines if not line.startswith("{")]
    # A program that died by a signal ended, in an engine's words, with 128 more.
    code = SIGNALLED - code if code > SIGNALLED else code
    return Ended(code, "\n".join(lines), "\n".join(said[-TAIL:]), timed_out)


def _code(host: ContainerHost, container: str) -> int:
    state = host.wait(container)
    if state is None or state.exit_code is None:
        return KILLED + SIGNALLED
    return state.exit_code


def _heard(
    started: Started, silence: float, told: Callable[[str], None]
) -> tuple[list[str], bool]:
    waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_pump, args=(started, waiting), daemon=True).start()
    lines: list[str] = []
    while True:
        try:
            line = waiting.get(timeout=silence)
        except queue.Empty:
            return lines, True
        if line is None:
            return lines, False
        lines.append(line)
        told(line)


def _pump(started: Started, waiting: queue.SimpleQueue[str | None]) -> None:
    # The connection is closed under us when the container is removed.
    with suppress(OSError, ValueError, RuntimeError, VegaError):
        for line in started.lines:
            waiting.put(line)
    waiting.put(None)
