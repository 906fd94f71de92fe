"""How the bytes of a Windows text must look: ASCII, its line ends, no tabs. Pure.

Windows PowerShell 5.1 reads a file without a mark in the machine's code page, and cmd.exe in
the console's: only ASCII is the same in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

Newline: TypeAlias = Literal["crlf", "lf"]
_OTHER = re.compile(rb"[^\x20-\x7e\t\r\n]")
_END: dict[Newline, re.Pattern[bytes]] = {
    "crlf": re.compile(rb"\r(?!\n)|(?<!\r)\n"),
    "lf": re.compile(rb"\r"),
}


def line_at(data: bytes, offset: int) -> int:
    """Return the line, counted from 1, of a byte."""
    return data.count(b"\n", 0, offset) + 1


def not_ascii(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield the first byte that is no printable ASCII, marks of UTF-8 and UTF-16 included."""
    found = _OTHER.search(data)
    if found is not None:
        yield (
            line_at(data, found.start()),
            f"byte 0x{found[0][0]:02x}: only ASCII, without a mark",
        )


def line_ends(data: bytes, newline: Newline) -> Iterator[tuple[int, str]]:
    """Yield the first line that ends otherwise, and a last line without an end."""
    found = _END[newline].search(data)
    if found is not None:
        yield line_at(data, found.start()), f"this line does not end with {newline.upper()}"
    if not data.endswith(b"\n"):
        yield line_at(data, len(data)), "the last line has no end"


def tabs(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield the first tab."""
    at = data.find(b"\t")
    if at >= 0:
        yield line_at(data, at), "a tab"
