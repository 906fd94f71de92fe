"""What a Dockerfile reaches for outside its own context; a stage may not reach anywhere.

`FROM` and `ADD` run in the engine, not in the stage's empty network, so they are refused by
reading, before anything starts. Classic syntax only; pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vega_image.errors import UsageError

BASE_ARG = "BASE"
_BASE = frozenset({"$BASE", "${BASE}"})
_REMOTE = re.compile(r"://|^git@")
_ESCAPE = re.compile(r"^#\s*escape\s*=\s*(\S)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: the line it starts on (from 1), its word in capitals, the rest."""

    line: int
    word: str
    rest: str

    @property
    def flags(self) -> tuple[str, ...]:
        """The leading `--name=value` words."""
        words = self.rest.split()
        return tuple(words[: _flag_count(words)])

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the flags, quotes and brackets of the JSON form taken off."""
        words = self.rest.split()
        return tuple(word.strip('[]",') for word in words[_flag_count(words) :])


def instructions(text: str) -> Iterator[Instruction]:
    r"""Yield the instructions with continued lines joined.

    >>> [(i.line, i.word, i.rest) for i in instructions("FROM a\n# no\nRUN x \\\n  y\n")]
    [(1, 'FROM', 'a'), (3, 'RUN', 'x    y')]
    """
    lines = text.splitlines()
    found = _ESCAPE.match(lines[0]) if lines else None
    escape = found.group(1) if found else "\\"
    start, joined = 0, ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        start = start or number
        stripped = line.rstrip()
        if stripped.endswith(escape):
            joined += stripped[:-1] + " "
            continue
        yield _instruction(start, joined + stripped)
        start, joined = 0, ""
    if joined.strip():
        yield _instruction(start, joined)


def check_closed(text: str, *, at: str) -> None:
    """Refuse a Dockerfile that reaches outside or does not end on the parent's tree.

    Raises UsageError STAGE_REACHES_OUT or STAGE_WITHOUT_BASE, naming the line.
    """
    on_base: dict[str, bool] = {}
    last = False
    for item in instructions(text):
        if item.word == "FROM":
            last = _check_from(item, on_base, at)
        elif item.word in {"ADD", "COPY"}:
            _check_copy(item, on_base, at)
    if not last:
        msg = f"{at}: the last FROM is not ${{{BASE_ARG}}}, the tree the stage builds on"
        hint = f"begin with: ARG {BASE_ARG}, then FROM ${{{BASE_ARG}}}"
        raise UsageError("STAGE_WITHOUT_BASE", msg, at=at, hint=hint)


def _check_from(item: Instruction, on_base: dict[str, bool], at: str) -> bool:
    words = item.arguments
    image = words[0] if words else ""
    known = on_base.get(image.lower())
    if image not in _BASE and known is None and image != "scratch":
        raise _reaches_out(item, f"FROM {image}", at)
    result = image in _BASE or bool(known)
    on_base[str(len({k for k in on_base if k.isdigit()}))] = result
    if len(words) == 3 and words[1].upper() == "AS":  # noqa: PLR2004 - image AS name
        on_base[words[2].lower()] = result
    return result


def _check_copy(item: Instruction, on_base: dict[str, bool], at: str) -> None:
    for flag in item.flags:
        name, _, value = flag.partition("=")
        if name == "--from" and value.lower() not in on_base:
            raise _reaches_out(item, f"{item.word} {flag}", at)
    for source in item.arguments[:-1]:
        if item.word == "ADD" and (_REMOTE.search(source) or "$" in source):
            raise _reaches_out(item, f"ADD {source}", at)


def _reaches_out(item: Instruction, what: str, at: str) -> UsageError:
    where = f"{at}:{item.line}"
    msg = f"{where}: {what}: a stage has no network and sees nothing but its context"
    hint = "name it under sources: in the spec and lock it"
    return UsageError("STAGE_REACHES_OUT", msg, at=where, hint=hint)


def _instruction(line: int, text: str) -> Instruction:
    word, _, rest = text.strip().partition(" ")
    return Instruction(line, word.upper(), rest.strip())


def _flag_count(words: list[str]) -> int:
    return next((i for i, word in enumerate(words) if not word.startswith("--")), len(words))
