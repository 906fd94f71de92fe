"""The only output of selftest: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from vega_image.selftest.encode import Json
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.reading import printable
from vega_image.selftest.texts import Texts

PLAIN_SECONDS = 10.0
LINE_SECONDS = 0.1
NARROWEST = 20
CODES = {"good": "1;32", "bad": "1;31", "doubt": "1;33"}


@dataclass
class Progress:
    """How far a run is: one line that changes on a terminal, now and then a line in a pipe."""

    stream: TextIO
    texts: Texts
    total: int
    clock: Callable[[], float] = time.monotonic
    done: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    began: float = field(init=False)
    said: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.said = self.began

    def result(self, key: str, *, wrong: bool) -> None:
        """Count a trial, once however often it is told of."""
        self.done.add(key)
        if wrong:
            self.wrong.add(key)
        self.alive(key)

    def alive(self, what: str) -> None:
        """Show where we are, if it is time to."""
        terminal = _is_terminal(self.stream)
        if self.clock() - self.said < (LINE_SECONDS if terminal else PLAIN_SECONDS):
            return
        self.said = self.clock()
        text = self.texts.say(
            "progress.line",
            done=len(self.done),
            total=max(self.total, len(self.done)),
            wrong=len(self.wrong),
            left=self._left(),
            what=what,
        )
        width = _width()
        _write(self.stream, f"\r{_cut(text, width):<{width}}" if terminal else f"{text}\n")

    def _left(self) -> str:
        if not self.done or len(self.done) > self.total:
            return "?"
        seconds = (self.clock() - self.began) / len(self.done) * (self.total - len(self.done))
        return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"  # noqa: PLR2004

    def end(self) -> None:
        """Leave the terminal's line clean."""
        if _is_terminal(self.stream):
            _write(self.stream, f"\r{'':<{_width()}}\r")


def _is_terminal(stream: TextIO) -> bool:
    """Whether a line can be written over; TERM=dumb cannot."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _width() -> int:
    # The last column stays free: some terminals go to the next line when it is written.
    return max(NARROWEST, shutil.get_terminal_size().columns - 1)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except UnicodeEncodeError:
        # A locale without these letters: a question mark is better than no verdict.
        narrow = stream.encoding or "ascii"
        _write(stream, text.encode(narrow, "replace").decode(narrow))
    except OSError as error:
        # Whatever is still in the stream must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # Whoever closed a pipe has seen enough; what cannot be said aloud is said by the exit
        # code. A result that a full disk swallowed is another matter.
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise SelftestError(
                "OUTPUT",
                f"cannot write the result: {error.strerror or error}",
                exit_code=5,
                hint="is the disk behind the standard output full?",
            ) from error


def remark(text: str) -> None:
    """Say how far something is."""
    _write(sys.stderr, f"{text}\n")


def show(text: str) -> None:
    """Write a line a person asked for."""
    _write(sys.stdout, f"{text}\n")


def tell(text: str) -> None:
    """Write a line that is no result: on standard error, so that pipes stay clean."""
    _write(sys.stderr, f"{text}\n")


def show_toned(text: str, tone: str, *, indent: int) -> None:
    """Write one line, wrapped and coloured on a terminal; a pipe gets it whole and plain."""
    safe = printable(text).replace("\n", " ")
    if not _is_terminal(sys.stdout):
        show(safe)
        return
    lines = textwrap.wrap(safe, _width(), subsequent_indent=" " * indent) or [""]
    code = "" if os.environ.get("NO_COLOR") else CODES.get(tone, "")
    for line in lines:
        show(f"\x1b[{code}m{line}\x1b[0m" if code else line)


def encode_json(value: Json) -> bytes:
    """Write a JSON document."""
    return json.dumps(value, indent=1, allow_nan=False).encode() + b"\n"


def show_json(value: Json) -> None:
    """Write one JSON object."""
    show(encode_json(value).decode().rstrip())


def complain(error: SelftestError, *, as_json: bool) -> None:
    """Say what stopped us: on stderr, or as JSON on stdout."""
    if as_json:
        body: dict[str, Json] = {
            "exit": error.exit_code,
            "code": error.code,
            "message": error.message,
            "hint": error.hint or None,
            "at": error.at or None,
        }
        show_json({"error": body})
        return
    _write(sys.stderr, f"{error.code}: {printable(error.message)}\n")
    if error.hint:
        _write(sys.stderr, f"hint: {error.hint}\n")
