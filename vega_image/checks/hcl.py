"""The structure of an HCL2 file: blocks, attributes, strings, each with its line. Pure.

No evaluation: an expression stays a run of tokens. Enough for rules that packer itself, which
checks no secrets and stops at the first unknown plugin, cannot give. Grammar: HCL native
syntax specification, without splitting templates inside strings. Not python-hcl2: its
`with_meta`, the only way to a line, does nothing since version 8 (its issue 291).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

STRING, WORD, MARK, END = "string", "word", "mark", "end"
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|(?:\#|//)[^\n]*|/\*.*?\*/)
    |(?P<end>\n)
    |(?P<heredoc><<(?P<flush>-?)(?P<tag>[A-Za-z_][\w-]*)\r?\n)
    |(?P<quote>")
    |(?P<word>[^\W\d][\w-]*|\d[\w.]*)
    |(?P<mark>[^\s\w"])""",
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = {"{": "}", "[": "]", "(": ")"}, {"}", "]", ")"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_DEEPEST = 60


class HclError(ValueError):
    """The text is no HCL: why, and at which line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _refuse(message: str, line: int) -> NoReturn:
    raise HclError(message, line)


class Token(NamedTuple):
    """A word, a mark, a line's end, or a string (unescaped, `${...}` kept as written)."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """`name = expression`."""

    name: str
    line: int
    tokens: tuple[Token, ...]

    @property
    def literal(self) -> str | None:
        """The value, where the expression is one string or word; else None."""
        one = self.tokens[0] if len(self.tokens) == 1 else None
        return one.text if one is not None and one.kind in {STRING, WORD} else None

    @property
    def text(self) -> str:
        """The expression's tokens without space, for comparing: `var.name`."""
        return "".join(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Block:
    """`type "label" ... { ... }`; the file itself is a block without type."""

    type: str
    labels: tuple[str, ...]
    line: int
    attributes: tuple[Attribute, ...]
    blocks: tuple[Block, ...]

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute with this name."""
        return next((item for item in self.attributes if item.name == name), None)

    def walk(self) -> Iterator[Block]:
        """Yield the block and all below it."""
        yield self
        for block in self.blocks:
            yield from block.walk()


def tokens(text: str) -> list[Token]:
    """Split a text; raises HclError for a string, heredoc or comment without an end."""
    found: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            _refuse("this is no HCL", line)
        if match.group() == "/" and text.startswith("/*", at):
            _refuse("a comment has no end", line)
        after = match.end()
        kind = match.lastgroup
        if kind == "quote":
            after = _string_end(text, after, line)
            found.append(Token(STRING, _unescaped(text[match.end() : after - 1]), line))
        elif match["heredoc"] is not None:
            after = _heredoc_end(text, after, match["tag"], line)
            body = text[match.end() : after].rpartition("\n")[0]
            found.append(Token(STRING, body, line))
        elif kind == "end":
            found.append(Token(END, "\n", line))
        elif kind != "space":
            found.append(Token(WORD if kind == "word" else MARK, match.group(), line))
        line += text.count("\n", at, after)
        at = after
    return found


def parse(text: str) -> Block:
    """Return a file as one block; raises HclError."""
    reader = _Reader(tokens(text))
    return reader.body(Token(WORD, "", 1), (), depth=0)


def _string_end(text: str, at: int, line: int, nested: int = 0) -> int:
    """Return the index after the closing quote; templates may hold strings of their own."""
    if nested > _DEEPEST:
        _refuse("strings are nested too deep", line)
    depth = 0
    while at < len(text):
        char, pair = text[at], text[at : at + 2]
        if char == "\n" and not depth:
            break
        if char == "\\":
            at += 2
        elif pair in {"${", "%{"} and text[at - 1 : at] != pair[0]:
            depth, at = depth + 1, at + 2
        elif depth and char == '"':
            at = _string_end(text, at + 1, line, nested + 1)
        elif depth and char in "{}":
            depth, at = depth + (1 if char == "{" else -1), at + 1
        elif char == '"':
            return at + 1
        else:
            at += 1
    _refuse("a string has no end", line)


def _heredoc_end(text: str, at: int, tag: str, line: int) -> int:
    last = re.compile(rf"^[ \t]*{re.escape(tag)}[ \t\r]*$", re.MULTILINE).search(text, at)
    if last is None:
        msg = f"the heredoc {tag} has no end"
        _refuse(msg, line)
    return last.end()


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


def _closes(token: Token) -> bool:
    return token.kind == MARK and token.text == "}"


def _close(token: Token, open_: list[str]) -> None:
    if not open_ or token.text != open_.pop():
        _refuse(f"{token.text!r} closes something else", token.line)


class _Reader:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self, wanted: str) -> Token:
        token = self._peek()
        if token is None:
            _refuse(f"the file ends where {wanted} should be", self._last())
        self._at += 1
        return token

    def _last(self) -> int:
        return self._tokens[-1].line if self._tokens else 1

    def body(self, head: Token, labels: tuple[str, ...], *, depth: int) -> Block:
        attributes: list[Attribute] = []
        blocks: list[Block] = []
        if depth > _DEEPEST:
            _refuse("blocks are nested too deep", head.line)
        while (token := self._peek()) is not None and not _closes(token):
            self._at += 1
            if token.kind == END:
                continue
            if token.kind != WORD:
                _refuse(f"{token.text!r} where a name should be", token.line)
            item = self._item(token, depth)
            if isinstance(item, Block):
                blocks.append(item)
            else:
                attributes.append(item)
        if depth:
            self._next("a closing brace")
        elif token is not None:
            _refuse("a closing brace too many", token.line)
        return Block(head.text, labels, head.line, tuple(attributes), tuple(blocks))

    def _item(self, name: Token, depth: int) -> Attribute | Block:
        labels: list[str] = []
        while True:
            token = self._next("'=' or '{'")
            if token == (MARK, "=", token.line) and not labels:
                return Attribute(name.text, name.line, self._expression(name))
            if token == (MARK, "{", token.line):
                return self.body(name, tuple(labels), depth=depth + 1)
            if token.kind not in {STRING, WORD}:
                _refuse(f"{token.text!r} where '=' or '{{' should be", token.line)
            labels.append(token.text)

    def _expression(self, name: Token) -> tuple[Token, ...]:
        """Take tokens to the line's end, or to the brace that closes a one-line block."""
        found: list[Token] = []
        open_: list[str] = []
        while (token := self._peek()) is not None:
            if not open_ and (token.kind == END or _closes(token)):
                break
            self._at += 1
            if token.kind == MARK and token.text in _OPEN:
                open_.append(_OPEN[token.text])
            elif token.kind == MARK and token.text in _CLOSE:
                _close(token, open_)
            found.append(token)
        if open_ or not found:
            _refuse(f"the value of {name.text} has no end", name.line)
        return tuple(token for token in found if token.kind != END)
