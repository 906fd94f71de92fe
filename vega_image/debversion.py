"""The order of Debian versions (deb-version(7))."""

from __future__ import annotations

import re
from functools import cmp_to_key
from itertools import zip_longest

_PARTS = re.compile(r"([^0-9]*)([0-9]*)")


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1 as `left` is older than, as old as, or newer than `right`.

    >>> compare("1.0~rc1-1", "1.0-1"), compare("1:0.9", "2.0"), compare("1.0", "1.0-0")
    (-1, 1, 0)
    """
    for a, b in zip(_split(left), _split(right), strict=True):
        order = _compare_part(a, b)
        if order:
            return order
    return 0


sort_key = cmp_to_key(compare)


def _split(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, dash, revision = rest.rpartition("-")
    return (epoch, upstream, revision) if dash else (epoch, rest, "0")


def _compare_part(left: str, right: str) -> int:
    pairs = zip_longest(_PARTS.findall(left), _PARTS.findall(right), fillvalue=("", ""))
    for (text_a, number_a), (text_b, number_b) in pairs:
        for a, b in zip_longest(text_a, text_b, fillvalue=""):
            if _weight(a) != _weight(b):
                return -1 if _weight(a) < _weight(b) else 1
        a, b = int(number_a or 0), int(number_b or 0)
        if a != b:
            return -1 if a < b else 1
    return 0


def _weight(letter: str) -> int:
    """Sort a tilde before the end, the end before letters, letters before the rest."""
    if letter == "~":
        return -1
    if not letter:
        return 0
    return ord(letter) if letter.isalpha() else ord(letter) + 256
