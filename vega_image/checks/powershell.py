"""All static checks of PowerShell scripts: parsed, then our own rules. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from vega_image.checks import powershellrules
from vega_image.checks.finding import Finding
from vega_image.checks.powershelltree import (
    Script,
    functions_in,
    line_of,
    nodes_below,
    powershell_parser,
    text_of,
)
from vega_image.checks.textform import Newline, line_ends, not_ascii, tabs

if TYPE_CHECKING:
    from tree_sitter import Node

RULES: Mapping[str, str] = {
    "PS001": "tree-sitter cannot read a script: a syntax error, or outside our subset",
    **{rule: said for rule, (said, _) in powershellrules.RULES.items()},
    "PS014": "a script is not ASCII without a byte order mark",
    "PS015": "a script's lines do not end as Windows expects them",
    "PS016": "a script has a tab",
}


def check_powershell(files: Mapping[str, bytes], *, newline: Newline = "crlf") -> list[Finding]:
    """Return the findings in every *.ps1 of a tree (path -> bytes), by file and line.

    `newline` is how lines must end: `lf` for templates, which rendering converts. Functions
    of one script are known in the others. Raises EngineError TOOL_ABSENT without
    tree-sitter-powershell: a check that did not run must not look like one that passed.
    """
    parser = powershell_parser()
    paths = sorted(path for path in files if path.lower().endswith(".ps1"))
    trees = {path: parser.parse(files[path]) for path in paths}
    functions: dict[str, bool] = {}
    for tree in trees.values():
        functions |= functions_in(tree.root_node)
    findings: set[Finding] = set()
    for path, tree in trees.items():
        script = Script(path, files[path], tree.root_node, functions)
        findings |= {
            Finding(rule=rule, path=path, line=line, message=message)
            for rule, line, message in _judged(script, newline)
        }
    return sorted(findings, key=lambda item: (item.path, item.line, item.rule, item.message))


def _judged(script: Script, newline: Newline) -> Iterator[tuple[str, int, str]]:
    for line, message in _broken(script):
        yield "PS001", line, message
    for rule, (_, judge) in powershellrules.RULES.items():
        for line, message in judge(script):
            yield rule, line, message
    forms = (
        ("PS014", not_ascii(script.data)),
        ("PS015", line_ends(script.data, newline)),
        ("PS016", tabs(script.data)),
    )
    for rule, found in forms:
        for line, message in found:
            yield rule, line, message


def _broken(script: Script) -> Iterator[tuple[int, str]]:
    if not script.root.has_error:
        return
    last = script.data.rstrip().count(b"\n") + 1
    for node in script.nodes:
        if node.is_missing:
            yield min(line_of(node), last), f"{node.type} is missing"
        elif node.is_error and not any(map(_is_worse, node.children)):
            yield (
                min(_first_line(node), last),
                f"not understood: {text_of(node).strip()[:40]!r}",
            )


def _is_worse(node: Node) -> bool:
    return any(item.is_error or item.is_missing for item in nodes_below(node))


def _first_line(node: Node) -> int:
    """Return where the error's text begins: its node begins at the blanks before."""
    text = text_of(node)
    return line_of(node) + text[: len(text) - len(text.lstrip())].count("\n")
