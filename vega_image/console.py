"""The factory's only output: results on stdout, progress on stderr; rich on a terminal only.

Modes of progress: `tty` (one live line), `plain` (a line per event), `json` (an object per
event), chosen by `auto` from where stderr goes. No colour in a pipe or under NO_COLOR.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TextIO

from vega_image.digest import Json
from vega_image.errors import EngineError, VegaError
from vega_image.units import duration, megabytes

if TYPE_CHECKING:
    from rich.live import Live

    from vega_image.plan import Step

PLAIN_EVERY_SECONDS = 5.0
BAR = 20


class Level(Enum):
    """How much is said on the way."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


@dataclass(slots=True)
class Pace:
    """How fast the current work goes: for the ETA and to keep plain logs short."""

    label: str = ""
    began: float = 0.0
    printed: float = 0.0

    def eta(self, done: int, total: int) -> str:
        """Say the time left, once it can be told."""
        spent = time.monotonic() - self.began
        if not done or spent < 1:
            return ""
        return f", {duration(spent * (total - done) / done)} left"


@dataclass(slots=True)
class Console:
    """Where words go. `as_json` puts exactly one object on stdout."""

    mode: str
    as_json: bool
    colour: bool
    level: Level = Level.NORMAL
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    _pace: Pace = field(default_factory=Pace)
    _live: Live | None = None

    @classmethod
    def choose(
        cls, *, progress: str, as_json: bool, environ: Mapping[str, str], level: Level
    ) -> Console:
        """Decide mode and colour once: flag, then terminal, NO_COLOR and TERM=dumb."""
        terminal = sys.stderr.isatty() and environ.get("TERM") != "dumb"
        mode = ("tty" if terminal else "plain") if progress == "auto" else progress
        forced = bool(environ.get("FORCE_COLOR"))
        colour = (terminal or forced) and not environ.get("NO_COLOR")
        return cls(mode=mode, as_json=as_json, colour=colour, level=level)

    def result(self, lines: Sequence[str], value: Json) -> None:
        """Print a command's answer: the lines for people, the value under --json."""
        if self.as_json:
            _write(self.out, json.dumps(value, indent=1, sort_keys=True) + "\n")
        elif lines:
            _write(self.out, "\n".join(lines) + "\n")

    def say(self, text: str) -> None:
        """Tell a person something on the way (stderr); silent under --quiet."""
        if self.mode == "json":
            self._event({"event": "note", "text": text})
        elif self.level is not Level.QUIET:
            self._print(text)

    def warn(self, text: str) -> None:
        """Tell something that must not be overlooked, also under --quiet."""
        if self.mode == "json":
            self._event({"event": "warning", "text": text})
        else:
            self._print(self._styled(f"warning: {text}", "33"))

    def error(self, error: VegaError) -> None:
        """Report why the command ends: on stderr, or as an object under --json."""
        self.close()
        if self.as_json:
            _write(self.out, json.dumps({"error": error_value(error)}, indent=1) + "\n")
            return
        _write(self.err, self._styled(f"error: {error.message}", "31") + "\n")
        if error.hint:
            _write(self.err, f"hint: {error.hint}\n")

    def step_started(self, step: Step, index: int, count: int) -> None:
        """Hear that a step is being built."""
        self._pace = Pace(step.name, time.monotonic(), time.monotonic())
        if self.mode == "json":
            self._event({"event": "step", "name": step.name, "state": "building"})
        elif self.level is not Level.QUIET:
            self._print(f"[{index + 1}/{count}] {step.name} ...")

    def step_done(self, step: Step, *, cached: bool, seconds: float) -> None:
        """Hear that a step's artifact is there."""
        state = "cached" if cached else "built"
        if self.mode == "json":
            self._event({"event": "step", "name": step.name, "state": state})
        elif self.level is not Level.QUIET:
            took = "" if cached else f" in {duration(seconds)}"
            self._print(f"{step.name}: {state}{took}")

    def progress(self, label: str, done: int, total: int) -> None:
        """Show how far the current work is; lines of a pipe come at most every 5 s."""
        now = time.monotonic()
        if self._pace.label != label:
            self._pace = Pace(label, now, now)
        text = _progress_text(label, done, total) + self._pace.eta(done, total)
        if self.mode == "tty":
            self._show(f"{_bar(done, total)} {text}")
        elif now - self._pace.printed >= PLAIN_EVERY_SECONDS:
            self._pace.printed = now
            if self.mode == "json":
                self._event({"event": "progress", "label": label, "done": done, "total": total})
            elif self.level is not Level.QUIET:
                self._print(text)

    def line(self, text: str) -> None:
        """Show one line of a stage's output under --verbose."""
        if self.level is Level.VERBOSE and self.mode != "json":
            self._print(f"  | {text}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live:
            self._live.stop()
            self._live = None

    def _show(self, text: str) -> None:
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only on a terminal
        from rich.live import Live  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        if self._live is None:
            console = RichConsole(file=self.err, no_color=not self.colour)
            self._live = Live(console=console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(Text(text, overflow="ellipsis", no_wrap=True), refresh=True)

    def _print(self, text: str) -> None:
        self.close()
        _write(self.err, text + "\n")

    def _event(self, value: Json) -> None:
        _write(self.err, json.dumps(value) + "\n")

    def _styled(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def _write(stream: TextIO, text: str) -> None:
    """Write at once; a reader that has gone (`| head`) stops neither work nor verdict.

    Raises EngineError OUTPUT_FAILED for any other reason why a text cannot be written.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # What is still buffered must not fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            msg = f"cannot write to {stream.name}: {error.strerror}"
            raise EngineError("OUTPUT_FAILED", msg, at=stream.name) from error


def error_value(error: VegaError) -> dict[str, Json]:
    """Encode an error for --json."""
    return {
        "exit": error.exit_code,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "at": error.at,
    }


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns with spaces; the last one may be long."""
    widths = [
        max(len(row[i]) for row in [header, *rows]) if i + 1 < len(header) else 0
        for i in range(len(header))
    ]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    ]


def _progress_text(label: str, done: int, total: int) -> str:
    percent = 100 * done // total if total else 100
    return f"{label}: {megabytes(done)} of {megabytes(total)} ({percent} %)"


def _bar(done: int, total: int) -> str:
    filled = BAR * done // total if total else BAR
    return "[" + "#" * filled + "." * (BAR - filled) + "]"
