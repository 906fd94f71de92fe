"""Read small kernel text files below a root; what cannot be read says why.

A missing or damaged file is a fact about the machine, not an error of the program, so
nothing here raises for one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

TEXT_LIMIT = 1 << 16
WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class NotAvailable:
    """A fact nobody could read, and why. Never a stand-in number."""

    why: str

    def __str__(self) -> str:
        return "not available"


T = TypeVar("T")
Reading: TypeAlias = T | NotAvailable


@dataclass(frozen=True, slots=True)
class Sysroot:
    """A machine's files: `/` for this one, a folder for a recorded one."""

    path: Path

    @property
    def live(self) -> bool:
        """Whether these are the files of the machine we run on."""
        return self.path == Path("/")

    def text(self, name: str) -> Reading[str]:
        """Return a file's text, stripped, at most 64 KiB, unprintable characters replaced."""
        try:
            raw = _first_bytes(self.path / name)
        except (OSError, ValueError) as error:
            return NotAvailable(f"{name}: {_reason(error)}")
        text = printable(raw.decode("utf-8", "replace")).strip()
        return text or NotAvailable(f"{name}: empty")

    def integer(self, name: str, *, base: int = 10) -> Reading[int]:
        """Return the one number a file holds."""
        text = self.text(name)
        if isinstance(text, NotAvailable):
            return text
        value = integer(text, base=base)
        return NotAvailable(f"{name}: not a number") if value is None else value

    def exists(self, name: str) -> bool:
        """Whether there is something at a path, dangling links excepted."""
        return os.path.exists(self.path / name)  # noqa: PTH110 - Path.exists raises on 3.10

    def names(self, name: str) -> tuple[str, ...]:
        """Return a folder's entries, sorted; none if it cannot be listed."""
        try:
            return tuple(sorted(os.listdir(self.path / name)))  # noqa: PTH208 - names only
        except (OSError, ValueError):
            return ()

    def numbered(self, name: str) -> tuple[int, ...]:
        """Return the numbers that are names in a folder, in order."""
        values = (integer(entry) for entry in self.names(name) if entry.isdigit())
        return tuple(sorted(value for value in values if value is not None))

    def target(self, name: str) -> Reading[str]:
        """Return the last part of what a symlink points to."""
        try:
            return os.path.basename(os.readlink(self.path / name))  # noqa: PTH115, PTH119
        except (OSError, ValueError) as error:
            return NotAvailable(f"{name}: {_reason(error)}")


def integer(text: str, *, base: int = 10) -> int | None:
    """Read a whole number that fits 64 bits, or None.

    >>> integer("0x66af", base=16), integer("-1"), integer("1_000"), integer("")
    (26287, -1, None, None)
    """
    if not text.isascii() or "_" in text:
        return None
    try:
        value = int(text, base)
    except ValueError:
        return None
    return value if abs(value) < 1 << WORD_BITS else None


def properties(text: str) -> Mapping[str, int]:
    r"""Read `key number` lines, leaving out whatever is not one.

    >>> properties("simd_count 240\nnonsense\nwidth x\n")
    {'simd_count': 240}
    """
    pairs = (line.split() for line in text.splitlines())
    numbers = ((pair[0], integer(pair[1])) for pair in pairs if len(pair) == 2)  # noqa: PLR2004
    return {key: value for key, value in numbers if value is not None}


def printable(text: str) -> str:
    """Replace what could drive a terminal or not be encoded, keeping line ends and tabs."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def _first_bytes(path: Path) -> bytes:
    # Non-blocking, so that a pipe where a file belongs cannot hold us up.
    # Windows has neither flag.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags)
    with os.fdopen(handle, "rb", buffering=0) as file:
        return file.read(TEXT_LIMIT) or b""


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "cannot be read"
