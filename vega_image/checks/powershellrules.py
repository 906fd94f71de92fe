"""Our own rules for PowerShell scripts: each names what it prevents. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from vega_image.checks import powershellnames as names
from vega_image.checks.powershellnative import unchecked_programs
from vega_image.checks.powershellsecrets import printed_secrets, written_secrets
from vega_image.checks.powershelltree import (
    Command,
    Script,
    line_of,
    literal,
    nodes_below,
    parents,
    sole,
    text_of,
)
from vega_image.checks.textform import line_at

if TYPE_CHECKING:
    from tree_sitter import Node

Found: TypeAlias = Iterator[tuple[int, str]]
_FETCH = frozenset({"downloadstring", "downloadfile", "downloaddata", "getstringasync"})
_PREFERENCE = re.compile(r"\$(script:|global:)?erroractionpreference")
_NEWER_TEXT = re.compile(
    r"\?\?=?|&&|\|\||[\w)\]'}]\s+\?\s+[^|{}\n]*?\s:\s|\$\{\w+\}\?[.\[]", re.IGNORECASE
)
_REQUIRES = re.compile(
    r"^(?:\xef\xbb\xbf)?[ \t]*#Requires[ \t]+-(\w+)[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE
)
_OWN = "5.1"


def _statements(script: Script) -> list[Node]:
    """Return the statements of the script itself, without functions that are only defined."""
    found: list[Node] = []
    for node in script.root.named_children:
        found += node.named_children if node.type == "statement_list" else []
    return [node for node in found if node.type not in {"comment", "ERROR"}]


def _command_in(script: Script, statement: Node) -> Command | None:
    return next((c for c in script.commands if c.node.id == sole(statement).id), None)


def _is_preference(statement: Node) -> str | None:
    """Return what a statement sets $ErrorActionPreference to; None if it is no such one."""
    node = sole(statement)
    if node.type != "assignment_expression":
        return None
    if not _PREFERENCE.fullmatch(text_of(node.children[0]).strip().lower()):
        return None
    value = node.child_by_field_name("value")
    return (literal(value) if value is not None else None) or ""


def _is_strict(script: Script, statement: Node) -> bool:
    command = _command_in(script, statement)
    return command is not None and command.name == "set-strictmode" and command.has("-version")


def _not_strict(script: Script) -> Found:
    for statement in _statements(script):
        if _is_strict(script, statement):
            break
        if _is_preference(statement) is None:
            yield line_of(statement), "code runs before Set-StrictMode -Version"
            break
    else:
        yield line_at(script.data, len(script.data)), "no Set-StrictMode -Version"
    for command in script.commands:
        if command.name == "set-strictmode" and command.has("-off"):
            yield command.line, "strict mode is turned off again"


def _not_stopping(script: Script) -> Found:
    for statement in _statements(script):
        value = _is_preference(statement)
        if value is not None:
            break
        if not _is_strict(script, statement):
            yield line_of(statement), "code runs before $ErrorActionPreference = 'Stop'"
            break
    else:
        yield line_at(script.data, len(script.data)), "no $ErrorActionPreference = 'Stop'"
    for node in script.of("assignment_expression"):
        value = _is_preference(node)
        if value is None or value.lower() == "stop":
            continue
        # In a function it ends with the function: programs that write to stderr need that.
        own = any(
            above.type in {"function_statement", "script_block"} for above in parents(node)
        )
        if not own or text_of(node).lower().startswith(("$script:", "$global:")):
            yield line_of(node), "errors of the whole script would no longer stop it"


def _computed(script: Script) -> Found:
    for command in script.commands:
        if command.name in {"invoke-expression", "iex"}:
            yield command.line, "Invoke-Expression runs whatever a text says"
        if any(word.startswith("-enc") or word == "-ec" for word in command.parameters()):
            shell = command.name.removesuffix(".exe").endswith(("powershell", "pwsh"))
            if shell or command.has("-encodedcommand"):
                yield command.line, "-EncodedCommand hides what is run"
    for node in script.of("invokation_expression"):
        text = text_of(node).lower()
        if text.startswith("[scriptblock]::create"):
            yield line_of(node), "[scriptblock]::Create runs whatever a text says"
        if _member(node) == "downloadstring":
            yield line_of(node), "DownloadString: fetched text that nobody hashed"
    for node in script.nodes:
        said = literal(node) if node.type.endswith(("characters", "literal")) else None
        if said and re.search(r"(?i)\s-enc(odedcommand)?\s", f" {said} "):
            yield line_of(node), "-EncodedCommand hides what is run"


def _member(invocation: Node) -> str:
    found = (text_of(node) for node in invocation.children if node.type == "member_name")
    return next(found, "").lower()


def _unhashed(script: Script) -> Found:
    if any(command.name == "get-filehash" for command in script.commands):
        return
    for command in script.commands:
        fetches = command.name.removesuffix(".exe") in names.DOWNLOADS
        if fetches or (
            command.name.startswith("certutil") and "-urlcache" in text_of(command.node)
        ):
            yield command.line, f"{command.name} fetches, and no Get-FileHash looks at it"
    for node in script.of("member_name"):
        if text_of(node).lower() in _FETCH - {"downloadstring"}:
            yield line_of(node), f"{text_of(node)} fetches, and no Get-FileHash looks at it"


def _empty_catch(script: Script) -> Found:
    for clause in script.of("catch_clause"):
        if all(node.type != "statement_list" for node in nodes_below(clause)):
            yield line_of(clause), "a catch block that does nothing swallows every error"


def _newer(script: Script) -> Found:
    for found in _NEWER_TEXT.finditer(script.code):
        yield line_at(script.data, found.start()), f"{found[0].strip()[:20]}: PowerShell 7 only"
    for command in script.commands:
        if command.name in names.NEWER_COMMANDS:
            yield command.line, f"{command.name}: PowerShell 7 only"
        for parameter in command.parameters():
            if (command.name, parameter) in names.NEWER_PARAMETERS:
                yield command.line, f"{command.name} {parameter}: PowerShell 7 only"
        if command.name == "join-path" and _values(command) > 2:  # noqa: PLR2004 - path, child
            yield command.line, "Join-Path with three parts: PowerShell 7 only"
    for node in script.of("variable"):
        if text_of(node).lower() in names.NEWER_VARIABLES:
            yield line_of(node), f"{text_of(node)}: PowerShell 7 only"


def _values(command: Command) -> int:
    return sum(word.type != "command_parameter" for word in command.words)


def _no_version(script: Script) -> Found:
    told = {found[1].lower(): found for found in _REQUIRES.finditer(script.text)}
    version, edition = told.get("version"), told.get("psedition")
    if version is None:
        yield 1, f"no #Requires -Version {_OWN}"
    elif version[2] != _OWN:
        line = line_at(script.data, version.start())
        yield line, f"#Requires -Version {version[2]}: the machine has {_OWN}"
    if edition is not None and edition[2].lower() != "desktop":
        yield line_at(script.data, edition.start()), "the machine has the Desktop edition"


def _alias(script: Script) -> Found:
    for command in script.commands:
        if command.name in names.ALIASES and command.name not in script.functions:
            yield command.line, f"{command.name} is an alias: write the cmdlet's name"


def _policy(script: Script) -> Found:
    for command in script.commands:
        if command.name != "set-executionpolicy":
            continue
        scope = dict(command.pairs()).get("-scope")
        if scope is None or text_of(scope).strip("'\"").lower() != "process":
            yield command.line, "the machine's execution policy is the office's"


RULES: Mapping[str, tuple[str, Callable[[Script], Found]]] = {
    "PS002": ("a script does not begin with Set-StrictMode", _not_strict),
    "PS003": ("a script does not begin with $ErrorActionPreference = 'Stop'", _not_stopping),
    "PS004": ("nobody reads the exit code of a native program", unchecked_programs),
    "PS005": ("a secret or key is written into a script", written_secrets),
    "PS006": ("a script runs text that it computed, fetched or hid", _computed),
    "PS007": ("a script fetches a file and computes no digest", _unhashed),
    "PS008": ("a catch block is empty", _empty_catch),
    "PS009": ("a construct that only PowerShell 7 knows", _newer),
    "PS010": ("a script does not say #Requires -Version 5.1", _no_version),
    "PS011": ("an alias instead of a cmdlet's name", _alias),
    "PS012": ("a secret is printed or logged", printed_secrets),
    "PS013": ("the machine's execution policy is changed", _policy),
}
