"""Secrets in PowerShell: written as literals, or printed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vega_image.checks.powershelltree import (
    Command,
    Script,
    line_of,
    literal,
    nodes_below,
    sole,
    text_of,
)
from vega_image.checks.secretwords import is_secret, keys_in

if TYPE_CHECKING:
    from tree_sitter import Node

_PRINTS = frozenset({"out-file", "add-content", "set-content", "tee-object", "out-host"})
_NAMES, _VALUES = frozenset({"-name", "-property"}), frozenset({"-value", "-propertyvalue"})


def written_secrets(script: Script) -> Iterator[tuple[int, str]]:
    """Yield literals that are assigned or handed over as a secret, and keys anywhere."""
    for line, what in keys_in(script.text):
        yield line, f"{what} is written here"
    for node in script.of("assignment_expression", "script_parameter", "hash_entry"):
        name, value = _named(node)
        if is_secret(name) and value is not None and _filled(value):
            yield line_of(node), f"{name} holds a literal"
    for command in script.commands:
        yield from _handed_over(command)


def _filled(value: Node) -> bool:
    return bool(literal(value))


def _named(node: Node) -> tuple[str, Node | None]:
    """Return the name that is assigned and its value."""
    if node.type == "assignment_expression":
        left = text_of(node.children[0]).strip(" ]'\"")
        return left, node.child_by_field_name("value")
    if node.type == "hash_entry":
        return text_of(node.named_children[0]).strip("'\""), node.named_children[-1]
    names = [item for item in node.children if item.type == "variable"]
    default = next((i for i in node.children if i.type == "script_parameter_default"), None)
    return text_of(names[0]) if names else "", default.children[-1] if default else None


def _handed_over(command: Command) -> Iterator[tuple[int, str]]:
    pairs = dict(command.pairs())
    plain = command.name == "convertto-securestring" and command.has("-asplaintext")
    if plain and any(_filled(word) for word in command.words):
        yield command.line, "ConvertTo-SecureString of a literal"
    for name, value in pairs.items():
        if is_secret(name) and _said(value):
            yield line_of(value), f"{name} is given a literal"
    named = next((pairs[item] for item in sorted(_NAMES) if item in pairs), None)
    given = next((pairs[item] for item in sorted(_VALUES) if item in pairs), None)
    if named is None or given is None or not _said(given):
        return
    if is_secret(literal(named) or text_of(named)):
        yield line_of(given), f"{text_of(named)} is given a literal"


def _said(value: Node) -> bool:
    return _filled(value) or value.type == "generic_token"


def printed_secrets(script: Script) -> Iterator[tuple[int, str]]:
    """Yield commands that write a variable named like a secret to a screen, log or file."""
    for command in script.commands:
        if not command.name.startswith("write-") and command.name not in _PRINTS:
            continue
        for word in command.words:
            shown = next((node for node in nodes_below(word) if _is_shown(node)), None)
            if shown is not None:
                yield line_of(shown), f"{command.name} shows {text_of(shown)}"


def _is_shown(node: Node) -> bool:
    if node.type == "member_name":
        return is_secret(text_of(sole(node)))
    if node.type not in {"variable", "braced_variable"}:
        return False
    return is_secret(text_of(node).strip("${}"))
