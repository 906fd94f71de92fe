"""Questions to a jailed libMIOpen; what it does instead of answering is told in words."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Final

from vega_image.errors import EngineError, UnprovenError, VegaError
from vega_image.finddb.probe.cell import DATABASES, Cell
from vega_image.finddb.probe.question import AnswerError, Name, read_name
from vega_image.finddb.probe.stream import Lines, LongLineError, SilentError, lines_of
from vega_image.process import Child, ended_within, output_of

TAIL: Final = 12
LINE_BYTES: Final = 400
LOGGED: Final = re.compile(rb"^vega-(?:shim|probe): |Error")
ENDED_SECONDS: Final = 10.0
SIGNALLED: Final = 128
BAD_QUESTION: Final = 67
JAILED, READY = "jailed", "ready"


class Outcome(StrEnum):
    """What became of a question."""

    ANSWERED = "ANSWERED"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    FORBIDDEN = "FORBIDDEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The end of one question: its answer's lines, or what happened and why."""

    number: int
    lines: tuple[str, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    detail: str = ""


@dataclass(slots=True, kw_only=True)
class Session:
    """Asks one list of questions, restarting the probe behind each one that ended it.

    `log` grows with what the library and the shim wrote on stderr.
    """

    cell: Cell
    databases: str = DATABASES
    env: Mapping[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def ask(self, questions: Sequence[str]) -> Iterator[Reply]:
        """Yield one reply for each question, in order.

        Raises EngineError ISOLATION_REFUSED; UnprovenError LIBRARY_UNUSABLE (it does not get
        ready), SYMBOL_LACKING, TOO_MANY_FAILURES.
        """
        done = failures = 0
        while done < len(questions):
            for reply in self._once(questions[done:], done):
                yield reply
                done = reply.number + 1
                if reply.outcome is not Outcome.ANSWERED:
                    failures += 1
                    self._check(failures, reply)

    def names(self) -> tuple[Name, ...]:
        """Return the convolution solvers of the library's registry.

        Raises what `ask` does; UnprovenError REGISTRY_UNREADABLE.
        """
        (reply,) = self.ask(["names"])
        try:
            rows = tuple(read_name(line) for line in reply.lines[:-1])
            complete = reply.lines[-1:] == (f"names {len(rows)}",)
        except AnswerError as error:
            raise _unreadable(str(error)) from None
        if not complete or not rows:
            raise _unreadable(reply.detail or "it ends early")
        return rows

    def _check(self, failures: int, reply: Reply) -> None:
        if failures > self.cell.limits.failures:
            msg = f"the library failed {failures} times, last: {reply.detail}"
            raise UnprovenError("TOO_MANY_FAILURES", msg, at=self.cell.library.path)

    def _once(self, questions: Sequence[str], first: int) -> Iterator[Reply]:
        with ExitStack() as stack:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(dir=self.cell.folder))
            )
            asked = folder / "questions"
            asked.write_text("".join(f"{line}\n" for line in questions), encoding="ascii")
            stderr = stack.enter_context((folder / "stderr").open("w+b"))
            stdin = stack.enter_context(asked.open("rb"))
            command = self.cell.command(databases=self.databases, env=self.env)
            child = stack.enter_context(output_of(command, stdin=stdin, stderr=stderr))
            assert child.stdout is not None
            lines = stack.enter_context(lines_of(child.stdout))
            talk = _Talk(cell=self.cell, child=child, lines=lines, stderr=stderr)
            try:
                talk.begin()
                yield from talk.replies(questions, first)
            finally:
                self.log += talk.log()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talk:
    cell: Cell
    child: Child
    lines: Lines
    stderr: IO[bytes]

    def begin(self) -> None:
        """Wait until the library is loaded and has a handle."""
        seconds = self.cell.limits.start_seconds
        heard: str | None = None
        for wanted in (JAILED, READY):
            try:
                heard = self.lines.next(seconds)
            except SilentError:
                why = f"it is not ready after {seconds:.0f} s"
                raise self._useless(why) from None
            except LongLineError:
                why = "it writes without end"
                raise self._useless(why) from None
            if heard != wanted:
                raise self._refused() if wanted == JAILED else self._unready(heard)

    def replies(self, questions: Sequence[str], first: int) -> Iterator[Reply]:
        """Yield a reply for each question until one is not answered."""
        for number, question in enumerate(questions, first):
            reply = self._reply(number, question.partition(" ")[0])
            yield reply
            if reply.outcome is not Outcome.ANSWERED:
                return

    def log(self) -> Iterator[str]:
        """Yield the lines on stderr that say something to us."""
        self.stderr.seek(0)
        for line in self.stderr:
            if LOGGED.search(line):
                yield line[:LINE_BYTES].decode(errors="replace").rstrip("\n")

    def _reply(self, number: int, word: str) -> Reply:
        lines: list[str] = []
        while True:
            try:
                line = self.lines.next(self.cell.limits.answer_seconds)
            except SilentError:
                detail = f"no answer in {self.cell.limits.answer_seconds:.0f} s"
                return Reply(number=number, outcome=Outcome.TIMED_OUT, detail=detail)
            except LongLineError:
                detail = "an answer without end"
                return Reply(number=number, outcome=Outcome.CRASHED, detail=detail)
            if line is None or line.startswith("error "):
                outcome, detail = self._ended(line)
                return Reply(number=number, outcome=outcome, detail=detail)
            lines.append(line)
            if line.partition(" ")[0] == word:
                return Reply(number=number, lines=tuple(lines))

    def _ended(self, line: str | None) -> tuple[Outcome, str]:
        """Say why there is no answer, from the probe's last line or the jail's status."""
        if line is not None and (match := re.search(r"forbidden system call: (\d+)", line)):
            return Outcome.FORBIDDEN, f"it made the forbidden system call {int(match[1])}"
        if line is not None and line.startswith(f"error {BAD_QUESTION} "):
            raise AssertionError(line)
        status = ended_within(self.child, ENDED_SECONDS)
        if status is not None and status > SIGNALLED:
            number = status - SIGNALLED
            if number == signal.SIGSYS:
                return Outcome.FORBIDDEN, "it made a forbidden system call"
            if number == signal.SIGXCPU:
                return Outcome.TIMED_OUT, "it used up its processor time"
            return Outcome.CRASHED, f"ended by {_signal_name(number)}{self._tail()}"
        return Outcome.CRASHED, f"{line or f'it ended with status {status}'}{self._tail()}"

    def _refused(self) -> VegaError:
        ended_within(self.child, ENDED_SECONDS)
        msg = f"the library cannot be isolated here{self._tail()}"
        hint = "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or be root"
        return EngineError("ISOLATION_REFUSED", msg, hint=hint)

    def _unready(self, heard: str | None) -> VegaError:
        if heard and (match := re.search(r"undefined symbol: (\w+)", heard)):
            path, symbol = self.cell.library.path, match[1]
            msg = f"{path} needs {symbol}, which neither this root nor the probe's shim has"
            return UnprovenError("SYMBOL_LACKING", msg, at=symbol)
        _, detail = self._ended(heard)
        return self._useless(detail)

    def _useless(self, why: str) -> VegaError:
        path = self.cell.library.path
        msg = f"{path} cannot be used: {why}"
        return UnprovenError("LIBRARY_UNUSABLE", msg, at=path, hint="is the root complete?")

    def _tail(self) -> str:
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - TAIL * LINE_BYTES))
        tail = self.stderr.read().decode(errors="replace").splitlines()[-TAIL:]
        return "".join(f"\n  {line[:LINE_BYTES]}" for line in tail)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _unreadable(what: str) -> UnprovenError:
    msg = f"the library's list of solvers cannot be read: {what}"
    return UnprovenError("REGISTRY_UNREADABLE", msg)
