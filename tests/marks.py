"""Bad fixtures say themselves which line must be refused, by which rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

CASES = Path(__file__).resolve().parent / "cases" / "windows"
_MARK = re.compile(r"refuse(-next)?: ([A-Z]+\d+)")


def wanted(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield line and rule of each `refuse: RULE` and `refuse-next: RULE`."""
    for number, line in enumerate(data.decode("latin-1").split("\n"), 1):
        for mark in _MARK.finditer(line):
            yield number + bool(mark[1]), mark[2]


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rule_of(path: Path) -> str:
    """Return the rule that a fixture is named after."""
    return path.name.split("-")[0].split(".")[0]


def differing(case: Path, good: dict[str, bytes]) -> tuple[dict[str, bytes], set[str]]:
    """Return a good tree with a case's differences, and the findings (`PATH:LINE RULE`) of it.

    `tree/` holds the files that differ; `expect.txt` says `refuse ...` and `remove PATH`.
    """
    files = dict(good)
    if (case / "tree").is_dir():
        files |= tree(case / "tree")
    refused: set[str] = set()
    for row in (case / "expect.txt").read_text().splitlines():
        word, _, rest = row.partition(" ")
        if word == "remove":
            del files[rest]
        else:
            refused.add(rest)
    return files, refused
