"""A PowerShell script as tree-sitter reads it: its nodes by kind, commands with their words.

tree-sitter-powershell reads less than PowerShell does; what it cannot read our scripts do not
use. It says nothing of a stray `else`, of unknown commands and of undefined variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from vega_image.errors import EngineError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_TEXTS = frozenset({"verbatim_string_characters", "expandable_string_literal"})
_HERE = frozenset({"verbatim_here_string_characters", "expandable_here_string_literal"})
STRINGS = _TEXTS | _HERE


def powershell_parser() -> Parser:
    """Return the parser; raises EngineError TOOL_ABSENT where it is not installed."""
    try:
        import tree_sitter  # noqa: PLC0415 - an extra, and native code that --help must not load
        import tree_sitter_powershell  # noqa: PLC0415
    except ImportError as error:
        msg = f"{error.name} is not installed, so no PowerShell script was checked"
        hint = "pip install 'vega-image[check]'"
        raise EngineError("TOOL_ABSENT", msg, hint=hint) from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))


def text_of(node: Node) -> str:
    """Return the node's own bytes as text."""
    return (node.text or b"").decode("latin-1")


def line_of(node: Node) -> int:
    """Return the line, counted from 1, where a node begins."""
    return node.start_point.row + 1


def nodes_below(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, in the order of the text."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def parents(node: Node) -> Iterator[Node]:
    """Yield what a node lies in, the nearest first."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def sole(node: Node) -> Node:
    """Go down while there is only one way: most expressions are chains of one."""
    while node.type not in STRINGS and node.child_count == 1:
        node = node.children[0]
    return node


def literal(node: Node) -> str | None:
    """Return the text of a string, if nothing in it is computed."""
    found = sole(node)
    if found.type not in STRINGS or any(item.type != "text" for item in found.named_children):
        return None
    text = text_of(found)
    return text[2:-2].strip("\r\n") if found.type in _HERE else text[1:-1]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: operator (`&`, `.` or nothing), what is run, and its words in order."""

    node: Node
    operator: str
    target: Node
    words: tuple[Node, ...]

    @property
    def name(self) -> str:
        """The name in lower case, empty where it is computed."""
        if not self.operator:
            return text_of(self.target).lower()
        return (literal(self.target) or "").lower()

    @property
    def line(self) -> int:
        """Where it stands."""
        return line_of(self.node)

    def has(self, parameter: str) -> bool:
        """Whether a switch or parameter is given; `parameter` with its dash, lower case."""
        return any(word == parameter for word in self.parameters())

    def parameters(self) -> Iterator[str]:
        """Yield the parameters given, in lower case, with their dash."""
        for word in self.words:
            if word.type == "command_parameter":
                yield text_of(word).lower().rstrip(":")

    def pairs(self) -> Iterator[tuple[str, Node]]:
        """Yield each parameter that is followed by a value."""
        for name, value in zip(self.words, self.words[1:], strict=False):
            if name.type == "command_parameter" and value.type != "command_parameter":
                yield text_of(name).lower().rstrip(":"), value


def _command(node: Node) -> Command | None:
    target = node.child_by_field_name("command_name")
    if target is None:
        return None
    operator, words = "", []
    for child in node.children:
        if child.type == "command_invokation_operator":
            operator = text_of(child)
        elif child.type == "command_elements":
            words = [item for item in child.named_children if item.type not in _SPACE]
    return Command(node, operator, target, tuple(words))


_SPACE = frozenset({"command_argument_sep", "comment", "redirection"})


@dataclass(frozen=True)
class Script:
    """A parsed script; `functions` are those of all scripts of the tree, by whether they check.

    Names are in lower case; True: the function looks at $LASTEXITCODE itself.
    """

    path: str
    data: bytes
    root: Node
    functions: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, in the order of the text."""
        return tuple(nodes_below(self.root))

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """Every command, in the order of the text."""
        found = (_command(node) for node in self.of("command"))
        return tuple(command for command in found if command is not None)

    @cached_property
    def text(self) -> str:
        """The bytes as text, one character for each byte."""
        return self.data.decode("latin-1")

    @cached_property
    def code(self) -> str:
        """The text with comments blanked and strings as quotes, every byte at its place."""
        shown = bytearray(self.data)
        for node in self.nodes:
            fill = b"'" if node.type in STRINGS else b" " if node.type == "comment" else b""
            if fill:
                part = self.data[node.start_byte : node.end_byte]
                blank = b"\n".join(fill * len(row) for row in part.split(b"\n"))
                shown[node.start_byte : node.end_byte] = blank
        return shown.decode("latin-1")

    def of(self, *kinds: str) -> Iterator[Node]:
        """Yield the nodes of these kinds."""
        return (node for node in self.nodes if node.type in kinds)


def functions_in(root: Node) -> dict[str, bool]:
    """Return the functions a script defines: name -> whether it looks at $LASTEXITCODE."""
    found: dict[str, bool] = {}
    for node in nodes_below(root):
        if node.type == "function_name" and node.parent is not None:
            found[text_of(node).lower()] = any(map(is_exit_code, nodes_below(node.parent)))
    return found


def is_exit_code(node: Node) -> bool:
    """Whether this reads $LASTEXITCODE, as opposed to setting it."""
    if node.type != "variable" or text_of(node).lower() not in _EXIT_CODE:
        return False
    return all(above.type != "left_assignment_expression" for above in parents(node))


_EXIT_CODE = frozenset({"$lastexitcode", "$global:lastexitcode"})
