"""The commands of a batch file, as cmd.exe would split it. Pure.

Enough for our rules: quotes, carets, joined lines, blocks, `if` and `for` before a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PureWindowsPath

_COMMENT = re.compile(r"@?\s*(rem\b|::)", re.IGNORECASE)
_HEAD = re.compile(r"(if|for|else)\b", re.IGNORECASE)
_SET = re.compile(r"for\b.*\bin\s*", re.IGNORECASE | re.DOTALL)
_IF = re.compile(
    r"""if\s+(/i\s+)?(not\s+)?
    ( exist\s+("[^"]*"|\S+) | defined\s+\S+ | errorlevel\s+\d+
    | ("[^"]*"|[^\s=]+)\s*(==|equ|neq|lss|leq|gtr|geq)\s*("[^"]*"|\S+) )\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_FOR = re.compile(r"for\b.*?\)\s*do\s*", re.IGNORECASE | re.DOTALL)
_ELSE = re.compile(r"else\b\s*", re.IGNORECASE)
_WORD = re.compile(r'"([^"]*)"|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class Command:
    """One command: line, text, how many blocks it is in, its place among those of its line."""

    line: int
    text: str
    depth: int
    place: int

    @property
    def run(self) -> str:
        """What is run: the text without `if`, `else`, `for` and `@` before it."""
        text = self.text.strip()
        while True:
            found = _IF.match(text) or _FOR.match(text) or _ELSE.match(text)
            shorter = text[found.end() :] if found else text.removeprefix("@").strip()
            if shorter == text:
                return text
            text = shorter

    @property
    def program(self) -> str:
        """The name of what is run, in lower case, without folder and quotes."""
        found = _WORD.match(self.run)
        name = PureWindowsPath((found[1] or found[2] or "") if found else "").name.lower()
        return name.removesuffix(".exe")


@dataclass(slots=True)
class Batch:
    """A batch file: its commands, and where quotes or parentheses do not close."""

    commands: list[Command] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    _open: list[int] = field(default_factory=list)
    _place: int = 0

    def read(self, text: str) -> None:
        """Split a text; both lists are in the order of the lines."""
        for number, line in _logical(text):
            self._place = 0
            self._line(number, line)
        self.faults += [(line, "this parenthesis is never closed") for line in self._open]

    def _flush(self, number: int, text: str) -> None:
        if text.strip():
            self.commands.append(Command(number, text, len(self._open), self._place))
            self._place += 1

    def _line(self, number: int, line: str) -> None:
        current, at = "", 0
        while at < len(line):
            if not current.strip() and _COMMENT.match(line[at:].lstrip()):
                break
            part = _part(line, at)
            if part == '"':
                self.faults.append((number, "this quote is never closed"))
                part = line[at:]
            at += len(part)
            if part in {"&", "|"}:
                self._flush(number, current)
                current = ""
            elif part in {"(", ")"}:
                current = self._parenthesis(number, current, part)
            else:
                current += part
        self._flush(number, current)

    def _parenthesis(self, number: int, current: str, part: str) -> str:
        """Open or close a block, or take the parenthesis as text; return the command so far."""
        head = current.strip().removeprefix("@")
        left = Command(number, head, 0, 0).run
        if part == "(" and (not left or _HEAD.match(left)) and not _SET.fullmatch(head):
            self._flush(number, current)
            self._open.append(number)
            return ""
        inside = _SET.match(head) is not None and head.count("(") > head.count(")")
        if part == ")" and self._open and not inside:
            self._flush(number, current)
            self._open.pop()
            return ""
        if part == ")" and not head:
            self.faults.append((number, "a parenthesis too many"))
            return ""
        return current + part


def _part(line: str, at: int) -> str:
    """Return a quoted text, an escaped character, or one character."""
    if line[at] == "^" or line[at : at + 2] in {">&", "<&"}:
        return line[at : at + 2]
    if line[at] == '"':
        end = line.find('"', at + 1)
        return line[at : end + 1] if end > 0 else '"'
    return line[at]


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines, those that end with a caret joined to the next; line of the first."""
    held, start = "", 0
    for number, row in enumerate(text.split("\n"), 1):
        line = row.rstrip("\r")
        start = start or number
        carets = len(line) - len(line.rstrip("^"))
        if carets % 2:
            held += line[:-1]
            continue
        yield start, held + line
        held, start = "", 0
    if held:
        yield start, held
