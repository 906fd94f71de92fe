"""Variables as files set them: environment files, profile scripts, units, a process. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from vega_image.finddb.effective import ALIEN, LOADER, PREFIX, Assignment

# Folders and what names in them are read; units and their drop-ins may set what a service sees.
FILES = (
    ("etc/environment", ""),
    ("etc/environment.d", ".conf"),
    ("usr/lib/environment.d", ".conf"),
    ("etc/profile", ""),
    ("etc/bash.bashrc", ""),
    ("etc/profile.d", ".sh"),
    ("etc/default", ""),
    ("etc/systemd/system.conf", ""),
    ("etc/systemd/system.conf.d", ".conf"),
)
UNITS = "etc/systemd/system"
_ASSIGNED = re.compile(r"^\s*(?:export\s+|setenv\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
_UNIT = re.compile(r"^\s*(?:Default)?Environment=(.*)$")
_EXPORTS = re.compile(r"\bexport\s+([A-Za-z_][A-Za-z0-9_]*=.*)$")


def concerns(name: str) -> bool:
    """Whether a variable means anything to MIOpen, or to which MIOpen is loaded."""
    return name in LOADER or name.startswith((PREFIX, *ALIEN))


def assignments(text: str, place: str) -> Iterator[Assignment]:
    """Yield what a file sets, in its order; comments and what is no assignment are skipped."""
    for line in text.replace("\\\n", "").split("\n"):
        if line.lstrip().startswith(("#", ";")):
            continue
        unit = _UNIT.match(line)
        if unit:
            yield from (_named(word, place) for word in _words(unit[1]) if "=" in word)
            continue
        match = _ASSIGNED.match(line) or _EXPORTS.search(line)
        if match:
            whole = line.strip().removeprefix("export ").strip()
            yield from _shell(whole if match.re is _ASSIGNED else match[1], place)


def of_process(data: bytes, place: str) -> Iterator[Assignment]:
    """Yield the variables of a process: NAME=VALUE in lines, or ended by NUL."""
    mark = b"\0" if b"\0" in data else b"\n"
    for row in data.split(mark):
        text = row.decode("utf-8", "replace").removesuffix("\r")
        if "=" in text:
            yield _named(text, place)


def _shell(text: str, place: str) -> Iterator[Assignment]:
    """Read `A=1 B='2'` as a shell would, without expanding anything."""
    for word in _words(text):
        name, mark, _ = word.partition("=")
        if not mark or not name.isidentifier():
            return
        yield _named(word, place)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def _named(word: str, place: str) -> Assignment:
    name, _, value = word.partition("=")
    return Assignment(name, value, place)
