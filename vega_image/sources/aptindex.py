"""What apt prints and keeps, as values: `--print-uris` lines, Packages and Release files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from vega_image.sources.mirror import deb822

_URI = re.compile(r"^'([^'\n]+)' (\S+) (\d+) (\S*)$", re.MULTILINE)
_SHA256 = re.compile(rb"^SHA256: ?([0-9a-f]{64})$", re.MULTILINE)
_NAME = re.compile(rb"^Package: ?(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Planned:
    """A file apt would download: `name` as apt would store it, `size` in bytes."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Release:
    """The dates of a Release file, seconds since 1970."""

    date: int
    valid_until: int | None


def parse_print_uris(output: str) -> tuple[Planned, ...]:
    """Read `apt-get --print-uris`; raises ValueError on a file without a SHA-256.

    >>> parse_print_uris("'http://h/pool/a_1.deb' a_1.deb 12 SHA256:" + "0" * 64)[0].size
    12
    """
    planned = []
    for _uri, name, size, hashed in _URI.findall(output):
        sha256 = hashed.removeprefix("SHA256:")
        if not re.fullmatch("[0-9a-f]{64}", sha256):
            msg = f"apt gave no SHA-256 for {name}: {hashed!r}"
            raise ValueError(msg)
        planned.append(Planned(name, int(size), sha256))
    return tuple(planned)


def package_names(index: bytes) -> frozenset[str]:
    """List the names in a Packages file."""
    return frozenset(match.decode() for match in _NAME.findall(index))


def stanzas(index: bytes, wanted: AbstractSet[str]) -> Iterator[dict[str, str]]:
    """Find the stanzas of a Packages file whose SHA256 is wanted: field name -> text."""
    for match in _SHA256.finditer(index):
        if match[1].decode() in wanted:
            start = index.rfind(b"\n\n", 0, match.start()) + 1
            end = index.find(b"\n\n", match.end())
            text = index[start : end if end >= 0 else len(index)]
            yield from deb822(text.decode("utf-8", errors="replace"))


def parse_release(data: bytes) -> Release:
    """Read a Release or InRelease file that apt has verified; ValueError without a Date."""
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
    if text.startswith("-----BEGIN PGP SIGNED MESSAGE-----"):
        # The armour's own headers are not signed, so they may not speak for the file.
        text = text.partition("\n\n")[2].partition("\n-----BEGIN PGP SIGNATURE-----")[0]
    stanza = next(deb822(text), {})
    until = stanza.get("valid-until")
    if "date" not in stanza:
        msg = "it has no Date"
        raise ValueError(msg)
    return Release(_seconds(stanza["date"]), None if until is None else _seconds(until))


def _seconds(text: str) -> int:
    return int(parsedate_to_datetime(text).timestamp())
