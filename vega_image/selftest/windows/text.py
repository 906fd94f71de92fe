"""Read the text that Windows programs write: any of its encodings, strict JSON inside."""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

LIMIT = 1 << 20
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class UnreadableError(Exception):
    """A gathered file that does not say what it must; `file` is its name, `why` the fault."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file = file
        self.why = why


def read_bytes(folder: Path, name: str) -> bytes:
    """Return a plain file's bytes, at most 1 MiB. Raises UnreadableError."""
    # A pipe where a file belongs must not hold us up.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(folder / name, flags)
    except (OSError, ValueError) as error:
        raise UnreadableError(name, _reason(error)) from error
    try:
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnreadableError(name, "no plain file")
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise UnreadableError(name, _reason(error)) from error
    if len(data) > LIMIT:
        raise UnreadableError(name, "longer than 1 MiB")
    return data


def decode_text(data: bytes) -> str:
    r"""Decode UTF-8 or UTF-16, with or without a mark. Raises ValueError for anything else.

    Line ends become `\n`. Without a mark, zero bytes tell UTF-16: Windows programs write no
    NUL into text.

    >>> decode_text("ok\r\n".encode("utf-16")), decode_text(b"ok"), decode_text(b"o\0k\0")
    ('ok\n', 'ok', 'ok')
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _lines(data[len(mark) :].decode(encoding))
    if b"\0" in data:
        even = data[0::2].count(0) > data[1::2].count(0)
        return _lines(data.decode("utf-16-be" if even else "utf-16-le"))
    return _lines(data.decode("utf-8"))


def _lines(text: str) -> str:
    if "\0" in text:
        msg = "a NUL in text"
        raise ValueError(msg)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decode_json(name: str, data: bytes) -> dict[str, object]:
    """Return the one object a JSON file holds. Raises UnreadableError."""
    try:
        text = decode_text(data)
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(
            name, f"no JSON text: {str(error) or type(error).__name__}"
        ) from error
    if not isinstance(value, dict):
        raise UnreadableError(name, "no JSON object")
    return value


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        msg = "a name twice"
        raise ValueError(msg)
    return value


def _no_constant(word: str) -> NoReturn:
    msg = f"{word} is no number"
    raise ValueError(msg)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "cannot be read"
