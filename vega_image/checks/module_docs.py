"""The documentation of installed Ansible modules: which options there are, and their types."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vega_image.ansibletool import environment, program
from vega_image.errors import EngineError
from vega_image.process import run

BUILTIN = "ansible.builtin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One documented option; `elements` of a list, `options` of a dict or a list of them."""

    name: str
    type: str
    elements: str
    required: bool
    aliases: tuple[str, ...]
    choices: tuple[str, ...]
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleDoc:
    """A module: its real name (another one when it has moved) and its options."""

    name: str
    options: tuple[Option, ...]
    deprecated: str


def read_docs(modules: Collection[str], *, scratch: Path, config: Path) -> dict[str, ModuleDoc]:
    """Ask ansible-doc once for many modules; an unknown module is missing from the answer.

    Raises EngineError COLLECTION_ABSENT when a module's whole collection is not installed,
    TOOL_ABSENT without Ansible, TOOL_FAILED when its answer cannot be read.
    """
    if not modules:
        return {}
    env = environment(scratch, config=config)
    argv = [program("ansible-doc"), "--json", "--type", "module", "--", *sorted(modules)]
    done = run(argv, env=env)
    # Warnings come as lines of their own before and after the one object.
    start, end = done.output.find("\n{") + 1, done.output.rfind("\n}") + 2
    if done.output.startswith("{"):
        start = 0
    try:
        rows = cast("dict[str, Any]", json.loads(done.output[start:end] or "{}"))
        found = {name: _module(name, row["doc"]) for name, row in rows.items() if "doc" in row}
    except (ValueError, KeyError, TypeError, AttributeError):
        msg = f"ansible-doc ({done.returncode}): {done.output.strip()[:300]}"
        raise EngineError("TOOL_FAILED", msg, hint=done.command) from None
    _collections_exist(set(modules) - set(found), env)
    return found


def _collections_exist(unknown: Collection[str], env: Mapping[str, str]) -> None:
    names = {name.rpartition(".")[0] for name in unknown if name.count(".") > 1}
    for name in sorted(names - {BUILTIN}):
        if not installed(name, env):
            raise absent(name)


def installed(collection: str, env: Mapping[str, str]) -> bool:
    """Whether a collection is installed, as Ansible itself sees it."""
    argv = [program("ansible-doc"), "--json", "--type", "module", "--list", "--", collection]
    return run(argv, env=env).returncode == 0


def absent(collection: str) -> EngineError:
    """Say that a collection is not installed, and which package carries it."""
    msg = f"the Ansible collection {collection} is not installed, so nothing was checked"
    hint = "pip install 'vega-image[check]'"
    return EngineError("COLLECTION_ABSENT", msg, hint=hint, at=collection)


def _module(asked: str, doc: Mapping[str, Any]) -> ModuleDoc:
    name = str(doc.get("plugin_name") or asked)
    deprecated = doc.get("deprecated")
    why = str(deprecated.get("why", "")) if isinstance(deprecated, dict) else ""
    if name != asked:
        why = f"it has moved to {name}"
    return ModuleDoc(name=name, options=_options(doc.get("options")), deprecated=why)


def _options(rows: Mapping[str, Any] | None) -> tuple[Option, ...]:
    return tuple(_option(name, row) for name, row in sorted((rows or {}).items()))


def _option(name: str, row: Mapping[str, Any]) -> Option:
    return Option(
        name=name,
        type=str(row.get("type") or "raw"),
        elements=str(row.get("elements") or "raw"),
        required=row.get("required") is True,
        aliases=tuple(str(alias) for alias in row.get("aliases") or ()),
        # A list, or a mapping whose keys are the choices.
        choices=tuple(_text(choice) for choice in row.get("choices") or ()),
        options=_options(row.get("suboptions")),
    )


def _text(choice: object) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)
