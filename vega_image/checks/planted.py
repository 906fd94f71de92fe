"""Which check looks at which file: a fault is planted, and the check must name the file.

That a check reads a file proves nothing; that it refuses the file once it is spoilt does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from vega_image.checks.finding import Finding
from vega_image.checks.windows import tree_checks
from vega_image.windows.spec import Platform

REFERENCES: Final = "cross-references"
ANSIBLE: Final = "ansible"
# Kinds of files, and what no reader of such a kind can take.
_BROKEN: Mapping[str, Mapping[tuple[str, ...], bytes]] = {
    "answer-files": {(".xml",): b"<\r\n"},
    "cmd-files": {(".cmd", ".bat"): b"if exist x (\r\n"},
    "powershell": {(".ps1",): b"if (\r\n"},
    "packer": {(".hcl",): b"{\n"},
    ANSIBLE: {(".yaml", ".yml"): b"\n]\n"},
    # In five groups of five, as Microsoft writes them; this one is none.
    "secrets": {("",): ("\n" + "-".join(5 * ["Q7W4E"]) + "\n").encode()},
}


def refusing(
    files: Mapping[str, bytes],
    *,
    platform: Platform,
    play: Callable[[Mapping[str, bytes]], Iterable[Finding]],
    look_for: Iterable[str],
) -> dict[str, set[str]]:
    """Return which checks refuse a fault in which file: path -> names of checks.

    `play` is the check of playbooks, of a tree. The files `look_for` are taken away, each by
    itself, for the check of references. Raises EngineError TOOL_ABSENT, TOOL_TOO_OLD or
    COLLECTION_ABSENT, and what the checks raise.
    """
    found: dict[str, set[str]] = {path: set() for path in files}
    for name, kinds in _BROKEN.items():
        spoilt = {path: data + _fault(path, kinds) for path, data in files.items()}
        checks = tree_checks(spoilt, platform=platform)
        checks[ANSIBLE] = partial(play, spoilt)
        if name in checks:
            _note(found, name, checks[name]())
    for lost in look_for:
        kept = {path: data for path, data in files.items() if path != lost}
        if any(True for _ in tree_checks(kept, platform=platform)[REFERENCES]()):
            found[lost].add(REFERENCES)
    return found


def checks_planted() -> frozenset[str]:
    """Return the checks for which there is a fault."""
    return frozenset({*_BROKEN, REFERENCES})


def _fault(path: str, kinds: Mapping[tuple[str, ...], bytes]) -> bytes:
    suffix = PurePosixPath(path).suffix
    return b"".join(fault for of, fault in kinds.items() if suffix in of or "" in of)


def _note(found: dict[str, set[str]], name: str, findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.path in found:
            found[finding.path].add(name)
