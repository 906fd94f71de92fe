"""PS004: every native program's exit code is looked at. Pure.

`$ErrorActionPreference = 'Stop'` stops at errors of cmdlets, never at a program that fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING

from vega_image.checks.powershellnames import PROGRAMS
from vega_image.checks.powershelltree import (
    Command,
    Script,
    is_exit_code,
    line_of,
    nodes_below,
    parents,
    sole,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_SUFFIXES = frozenset({".exe", ".com", ".cmd", ".bat", ".ps1"})
_START = "a process is started and nobody reads its ExitCode (-Wait -PassThru)"
_STARTS = ("[system.diagnostics.process]::start(", "[diagnostics.process]::start(")
_THROUGH = frozenset({"sub_expression", "array_expression", "parenthesized_expression"})


def unchecked_programs(script: Script) -> Iterator[tuple[int, str]]:
    """Yield each native program whose exit code nobody reads, by its line."""
    native = {
        command.node.id: command for command in script.commands if _is_native(script, command)
    }
    for command in native.values():
        if not _is_checked(script, command, native):
            said = f"nothing reads $LASTEXITCODE after {_shown(command)}"
            yield command.line, said
    for command in script.commands:
        if command.name in {"start-process", "saps"} and not _is_awaited(script, command):
            yield command.line, _START
    for node in script.of("invokation_expression"):
        starts = text_of(node).lower().startswith(_STARTS)
        if starts and not _reads_exit(script, _scope(node), node.end_byte):
            yield line_of(node), _START


def _shown(command: Command) -> str:
    return f"{command.operator} {text_of(command.target)}".strip()[:60]


def _is_native(script: Script, command: Command) -> bool:
    if command.operator == ".":
        return False
    name = command.name
    if name in script.functions:
        return False
    if name:
        path = PureWindowsPath(name)
        known = not command.operator and name in PROGRAMS
        return known or path.suffix in _SUFFIXES or (bool(command.operator) and "-" not in name)
    if not command.operator:
        return False
    target = sole(command.target)
    if target.type == "script_block_expression":
        return False
    return target.type != "variable" or not _is_block(script, text_of(target).lower())


def _is_block(script: Script, name: str) -> bool:
    """Whether a variable is declared as, or only ever assigned, a script block."""
    for node in script.of("script_parameter"):
        declared = next((item for item in node.children if item.type == "variable"), None)
        if declared is not None and text_of(declared).lower() == name:
            return "[scriptblock]" in text_of(node).lower()
    values = [
        node.child_by_field_name("value")
        for node in script.of("assignment_expression")
        if text_of(node.children[0]).lower() == name
    ]
    kinds = {sole(value).type for value in values if value is not None}
    return kinds == {"script_block_expression"}


def _is_checked(script: Script, command: Command, native: dict[int, Command]) -> bool:
    node = command.node
    while True:
        statement = _statement(node)
        if statement is None or statement.parent is None:
            return False
        if _after(statement, command.node.end_byte, native):
            return True
        for sibling in statement.parent.named_children:
            if (
                sibling.start_byte <= statement.start_byte
                or sibling.type == "function_statement"
            ):
                continue
            verdict = _first(sibling, native)
            if verdict is not None:
                return verdict
        above = _container(statement.parent)
        if above is None:
            return False
        if above.type == "script_block_expression":
            return _handed_to_checker(script, above)
        node = above


def _statement(node: Node) -> Node | None:
    below = node
    for above in parents(node):
        if above.type in {"statement_list", "program"}:
            return below
        below = above
    return None


def _after(statement: Node, offset: int, native: dict[int, Command]) -> bool:
    """Whether the rest of the statement reads the exit code before it runs another program."""
    for node in nodes_below(statement):
        if node.start_byte >= offset:
            if is_exit_code(node):
                return True
            if node.id in native:
                return False
    return False


def _first(node: Node, native: dict[int, Command]) -> bool | None:
    """Return True where the exit code is read first, False where a program runs first."""
    for item in nodes_below(node):
        if is_exit_code(item):
            return True
        if item.id in native:
            return False
    return None


def _container(statements: Node) -> Node | None:
    """Return what goes on after this list has ended, where control surely does."""
    for above in parents(statements):
        if above.type in {"script_block_expression", "try_statement"} | _THROUGH:
            return above
        if above.type not in {"statement_block", "script_block", "script_block_body"}:
            return None
    return None


def _handed_to_checker(script: Script, block: Node) -> bool:
    """Whether the block is an argument of a function that reads the exit code."""
    for above in parents(block):
        if above.type == "command":
            name = above.child_by_field_name("command_name")
            return name is not None and script.functions.get(text_of(name).lower(), False)
        if above.type == "statement_list":
            return False
    return False


def _scope(node: Node) -> Node:
    """Return the function a node is in, else the whole script."""
    last = node
    for above in parents(node):
        if above.type == "function_statement":
            return above
        last = above
    return last


def _is_awaited(script: Script, command: Command) -> bool:
    splat = any(text_of(word).startswith("@") for word in command.words)
    if not splat and not command.has("-passthru"):
        return False
    return _reads_exit(script, _scope(command.node), command.node.end_byte)


def _reads_exit(script: Script, scope: Node, offset: int) -> bool:
    """Whether ExitCode is read after `offset`, here or in a function that is called."""
    readers = _exit_readers(script)
    for node in nodes_below(scope):
        if node.start_byte < offset:
            continue
        if node.type == "member_name" and text_of(node).lower() == "exitcode":
            return True
        if node.type == "command_name" and text_of(node).lower() in readers:
            return True
    return False


def _exit_readers(script: Script) -> set[str]:
    readers: set[str] = set()
    for function in script.of("function_statement"):
        members = (node for node in nodes_below(function) if node.type == "member_name")
        if any(text_of(node).lower() == "exitcode" for node in members):
            name = next(item for item in function.children if item.type == "function_name")
            readers.add(text_of(name).lower())
    return readers
