"""What the files of a rendered Windows tree say, without comments, each piece with its line."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from vega_image.checks.answerxml import AnswerXmlError, parse
from vega_image.checks.cmdlines import Batch
from vega_image.checks.hcl import STRING, Block, HclError, tokens
from vega_image.checks.hcl import parse as parse_hcl
from vega_image.checks.mediapaths import as_pattern, paths_in

_PLACED = re.compile(r"\$\{path\.(root|cwd)\}/")
# Attributes whose strings are files, relative to where packer runs: the tree's root.
_CD, _FILES = frozenset({"cd_files"}), frozenset({"floppy_files", "script", "scripts"})


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of text: file and line, the text, and what it names beside what it contains."""

    path: str
    line: int
    text: str
    names: tuple[str, ...] = ()
    cd: bool = False

    def patterns(self) -> Iterator[str]:
        """Yield the paths of the tree that it names."""
        yield from self.names
        yield from paths_in(self.text)


def said_in(files: Mapping[str, bytes]) -> Iterator[Said]:
    """Yield every piece of text in files that can name others; other kinds say nothing.

    Read are answer files, HCL, batch files, PowerShell, README.md (its code blocks) and the
    playbooks. What is no XML or no HCL is another check's finding.
    """
    readers = {".xml": _answer, ".hcl": _hcl, ".cmd": _batch, ".bat": _batch, ".ps1": _script}
    for path in sorted(files):
        name = PurePosixPath(path)
        text = files[path].decode("utf-8", "replace")
        reader = readers.get(name.suffix.lower())
        if path == "README.md":
            yield from _code_blocks(path, text)
        elif path.startswith("playbooks/") and name.suffix in {".yaml", ".yml"}:
            yield from _rows(path, text, "#")
        elif reader is not None:
            yield from reader(path, text)


def _rows(path: str, text: str, comment: str) -> Iterator[Said]:
    for number, row in enumerate(text.split("\n"), 1):
        if not row.lstrip().startswith(comment):
            yield Said(path, number, row)


def _answer(path: str, text: str) -> Iterator[Said]:
    try:
        root = parse(text.encode())
    except AnswerXmlError:
        return
    for element in root.walk():
        if element.text:
            yield Said(path, element.line, element.text)


def _batch(path: str, text: str) -> Iterator[Said]:
    batch = Batch()
    batch.read(text)
    for command in batch.commands:
        yield Said(path, command.line, command.text)


def _script(path: str, text: str) -> Iterator[Said]:
    yield from _rows(path, _without_blocks(text), "#")


def _without_blocks(text: str) -> str:
    """Return a script without its `<# #>` comments, every line at its place."""
    kept, at = "", 0
    while (begin := text.find("<#", at)) >= 0 and (end := text.find("#>", begin)) >= 0:
        kept += text[at:begin] + "\n" * text.count("\n", begin, end)
        at = end + len("#>")
    return kept + text[at:]


def _code_blocks(path: str, text: str) -> Iterator[Said]:
    inside = False
    for number, row in enumerate(text.split("\n"), 1):
        if row.lstrip().startswith("```"):
            inside = not inside
        elif inside:
            yield Said(path, number, row)


def _hcl(path: str, text: str) -> Iterator[Said]:
    try:
        root, found = parse_hcl(text), tokens(text)
    except HclError:
        return
    for token in found:
        if token.kind == STRING:
            yield Said(path, token.line, token.text)
    for block in root.walk():
        yield from _attributes(path, block)


def _attributes(path: str, block: Block) -> Iterator[Said]:
    for attribute in block.attributes:
        file = block.type == "provisioner" and block.labels == ("file",)
        named = attribute.name in _CD | _FILES or (file and attribute.name == "source")
        for token in attribute.tokens if named else ():
            place = _place(path, token.text) if token.kind == STRING else ""
            if place:
                cd = attribute.name in _CD
                yield Said(path, token.line, "", (place,), cd=cd)


def _place(path: str, text: str) -> str:
    """Return a packer path as a path of the tree; empty where only the build knows it."""
    roots = {"root": posixpath.dirname(path) + "/", "cwd": ""}
    placed = _PLACED.sub(lambda found: roots[found[1]], text)
    return "" if placed.startswith(("${", "/")) else as_pattern(posixpath.normpath(placed))
