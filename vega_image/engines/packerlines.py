r"""Packer's machine-readable lines and its diagnostics as values. Pure.

Format: `timestamp,target,type,data...`, where packer writes a comma inside data as
`%!(PACKER_COMMA)`, and line ends as `\n` and `\r`. Packer does not escape the backslash
itself, so the text `C:\new` cannot be told from a line end: unescaping is for reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

COMMA = "%!(PACKER_COMMA)"
_FIELDS = 3
_LOGGED = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (\[INFO\] \(telemetry\)|\d{9,},[^,]*,)")
_PLACE = re.compile(r"^  on (?P<path>.+?) line (?P<line>\d+)(?:, in .*)?:$")
_HEAD = re.compile(r"^(?P<severity>Error|Warning): ?(?P<title>.*)$")


@dataclass(frozen=True, slots=True)
class Message:
    """One line: the build it is about ("" = none), its type, and its unescaped data."""

    target: str
    type: str
    data: tuple[str, ...]

    def texts(self) -> tuple[str, ...]:
        """Return what a person should read of it, line by line; empty for bookkeeping."""
        if self.type != "ui" or len(self.data) < 2:  # noqa: PLR2004 - kind and text
            return ()
        return tuple(line.rstrip() for line in self.data[1].split("\n") if line.strip())


def parse_line(line: str) -> Message | None:
    """Read one line; None for what is not machine-readable (a panic, a library's print).

    >>> parse_line("1796107494,,ui,say,Starting VM%!(PACKER_COMMA) booting")
    Message(target='', type='ui', data=('say', 'Starting VM, booting'))
    """
    stamp, *fields = line.rstrip("\r\n").split(",")
    if not (stamp.isascii() and stamp.isdigit()) or len(fields) + 1 < _FIELDS:
        return None
    target, kind, *data = fields
    return Message(_plain(target), _plain(kind), tuple(_plain(item) for item in data))


def repeats_ui(line: str) -> bool:
    """Tell whether a line of PACKER_LOG only repeats what the machine-readable output said."""
    return _LOGGED.match(line) is not None


def _plain(text: str) -> str:
    return text.replace(COMMA, ",").replace("\\n", "\n").replace("\\r", "\r")


@dataclass(slots=True)
class Tally:
    """What counts of a build: artifacts with their files, and the number of errors.

    Lines of kind `ui,error` do not count: packer prints a guest's stderr so, too.
    """

    artifacts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    errors: int = 0
    why: list[str] = field(default_factory=list)

    def feed(self, message: Message) -> None:
        """Take one message in."""
        match message.type, message.data:
            case "error-count", (count,) if count.isdigit():
                self.errors = int(count)
            case "error", (text, *_):
                self.why.append(text)
            case "artifact", (index, "file", _number, path):
                self.artifacts.setdefault((message.target, index), []).append(path)
            case "artifact", (index, *_):
                self.artifacts.setdefault((message.target, index), [])
            case _:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One error or warning of validate: place as packer names it (else "", 0)."""

    severity: str
    message: str
    path: str = ""
    line: int = 0


def diagnostics(text: str) -> tuple[Diagnostic, ...]:
    r"""Read what `validate` prints for people: title, place, and the sentence below it.

    >>> [d] = diagnostics("Error: Unset\n\n  on a.hcl line 3:\n  (source)\n\nSet it.\n")
    >>> (d.path, d.line, d.message)
    ('a.hcl', 3, 'Unset: Set it.')
    """
    return tuple(_diagnostic(block) for block in _blocks(text))


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in text.splitlines():
        if _HEAD.match(line):
            if block:
                yield block
            block = [line]
        elif block:
            block.append(line)
    if block:
        yield block


def _diagnostic(block: list[str]) -> Diagnostic:
    head = _HEAD.match(block[0])
    assert head is not None
    place = next((found for line in block[1:] if (found := _PLACE.match(line))), None)
    # The quoted source is indented; what is not, is the explanation.
    body = " ".join(line.strip() for line in block[1:] if line and not line.startswith("  "))
    title = head["title"].rstrip(":; ")
    return Diagnostic(
        severity=head["severity"].lower(),
        message=f"{title}: {body}" if body else title,
        path=place["path"] if place else "",
        line=int(place["line"]) if place else 0,
    )
