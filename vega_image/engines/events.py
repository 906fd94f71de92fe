"""The event stream of a Docker-API build, read: lines, the image, the failure.

The stream never raises: a failing stage is one more event, with `errorDetail`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.errors import EngineError, StageError, VegaError

TAIL = 30
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STEP = re.compile(r"^STEP \d+(?:/\d+)?\s?: (.*)$", re.IGNORECASE)
_CHATTER = re.compile(r"^(?: ?-+> |Removing intermediate container |COMMIT )")
_CODE = re.compile(r"(?:exit status|non-zero code:) (\d+)")


@dataclass(slots=True)
class BuildEvents:
    """What a build has said so far; `on_line` gets each line once, without colours."""

    on_line: Callable[[str], None]
    image: str | None = None
    failure: str | None = None
    code: int | None = None
    instruction: str = ""
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL))
    _partial: str = ""

    def feed(self, event: Mapping[str, object]) -> None:
        """Take one event; keys nobody knows are ignored."""
        stream = event.get("stream")
        if isinstance(stream, str):
            self._text(stream)
        aux = event.get("aux")
        if isinstance(aux, Mapping) and isinstance(aux.get("ID"), str):
            self.image = str(aux["ID"])
        detail = event.get("errorDetail")
        if isinstance(detail, Mapping) or "error" in event:
            self._fail(detail if isinstance(detail, Mapping) else {}, event)

    def close(self) -> None:
        """Pass on a last line without an end."""
        if self._partial:
            self._text("\n")

    def _fail(self, detail: Mapping[str, object], event: Mapping[str, object]) -> None:
        self.close()
        self.failure = str(detail.get("message") or event.get("error") or "unknown").strip()
        code = detail.get("code")
        found = _CODE.search(self.failure)
        if isinstance(code, int) and code:
            self.code = code
        elif found:
            self.code = int(found.group(1))

    def _text(self, text: str) -> None:
        *lines, self._partial = (self._partial + text).split("\n")
        for raw in lines:
            line = clean(raw)
            started = _STEP.match(line)
            if started:
                self.instruction = started.group(1)
            elif line and not _CHATTER.match(line):
                self.tail.append(line)
            if line:
                self.on_line(line)


def clean(text: str) -> str:
    r"""Take colours, control characters and overwritten progress out of a line.

    >>> clean("10%\r100%\x1b[0m\n")
    '100%'
    """
    kept = _ANSI.sub("", text).rstrip().rsplit("\r", 1)[-1]
    return _CONTROL.sub("", kept)


def lines_of(chunks: Iterable[tuple[bytes | None, bytes | None]]) -> Iterator[str]:
    r"""Cut the pieces of stdout and stderr into cleaned lines, never one inside the other.

    >>> list(lines_of([(b"on", None), (None, b"log\n"), (b"e\ntwo", None)]))
    ['log', 'one', 'two']
    """
    rests = [b"", b""]
    for pieces in chunks:
        for number, piece in enumerate(pieces):
            *whole, rests[number] = (rests[number] + (piece or b"")).split(b"\n")
            for line in whole:
                yield clean(line.decode(errors="replace"))
    for rest in rests:
        if rest:
            yield clean(rest.decode(errors="replace"))


def failure_of(events: BuildEvents, stage: str, log: Path | None) -> VegaError:
    """Make the error a failed build deserves: the stage's fault, or the engine's."""
    why = events.failure or "the engine closed the connection before the build ended"
    if "no space left on device" in why.lower():
        hint = "free some space on the engine's disk, or move the engine's data folder"
        return EngineError("DISK_FULL", f"stage {stage}: {why}", at=stage, hint=hint)
    if "cgroups in hybrid mode" in why:
        hint = 'apt-get install runc, and set runtime = "runc" in containers.conf'
        return EngineError("ENGINE_RUNTIME", f"stage {stage}: {why}", at=stage, hint=hint)
    if events.failure is None:
        hint = "look at the engine's own log, then run the build again"
        return EngineError("ENGINE_LOST", f"stage {stage}: {why}", at=stage, hint=hint)
    return _stage_failed(events, stage, log)


def _stage_failed(events: BuildEvents, stage: str, log: Path | None) -> StageError:
    what = events.failure if events.code is None else f"code {events.code}"
    lines = [f"stage {stage} failed: {what}", f"  in: {events.instruction}", *events.tail]
    if log is None:
        return StageError("STAGE_FAILED", "\n".join(lines), at=stage)
    message = "\n".join([*lines, f"log: {log}"])
    return StageError("STAGE_FAILED", message, at=stage, hint=f"less {log}")
