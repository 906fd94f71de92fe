"""Accounts of a .wsl archive: none of people, and no password that anybody could know. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from vega_image.checks.finding import Finding
from vega_image.wsl.spec import FIRST_UID, LAST_UID

LOCKED: Final = "wsl-password"
PERSON: Final = "wsl-account"
_FILES: Final = ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow")
# `x` sends the reader of passwd and group to the shadow file; `!` and `*` match no password.
_LOCKED: Final = re.compile(r"[!*]+")
_NUMBER: Final = 2


def judge_accounts(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield what is wrong in the account files among `files`, by file and line."""
    if "etc/passwd" not in files:
        yield _finding(PERSON, "etc/passwd", 0, "must be there, a small file")
    for path in _FILES:
        text = files.get(path, b"").decode(errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            fields = line.split(":")
            yield from _password(path, number, fields)
            if path == "etc/passwd":
                yield from _person(number, fields)


def _password(path: str, line: int, fields: list[str]) -> Iterator[Finding]:
    sends_on = path in {"etc/passwd", "etc/group"} and fields[1:2] == ["x"]
    if len(fields) > 1 and (sends_on or _LOCKED.fullmatch(fields[1])):
        return
    what = "an empty password" if fields[1:2] == [""] else "a password or its hash"
    message = f"{fields[0]} has {what}; every entry is locked (`!` or `*`)"
    yield _finding(LOCKED, path, line, message)


def _person(line: int, fields: list[str]) -> Iterator[Finding]:
    uid = fields[_NUMBER] if len(fields) > _NUMBER else ""
    if not uid.isdigit():
        yield _finding(PERSON, "etc/passwd", line, "not an account's line")
    elif FIRST_UID <= int(uid) <= LAST_UID:
        message = f"{fields[0]} ({uid}): accounts of people are made at the first start"
        yield _finding(PERSON, "etc/passwd", line, message)
    elif int(uid) == 0 and fields[0] != "root":
        yield _finding(PERSON, "etc/passwd", line, f"{fields[0]} is a second root")


def _finding(rule: str, path: str, line: int, message: str) -> Finding:
    return Finding(rule=rule, path=path, line=line, message=message)
