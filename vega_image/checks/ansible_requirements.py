"""playbooks/requirements.yml: every collection that is used, at a version that is installed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from vega_image.ansibletool import environment, program
from vega_image.checks.ansible_tasks import Task, compose, get, items, line_of, tasks_of
from vega_image.checks.finding import Finding
from vega_image.checks.module_docs import BUILTIN, absent
from vega_image.errors import EngineError
from vega_image.process import run

UNLISTED, VERSION = "ansible-collection-unlisted", "ansible-collection-version"
FILE = "playbooks/requirements.yml"
_BOUND = re.compile(r"^(>=|<=|==|!=|>|<)?\s*(\d+(?:\.\d+)*)$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One entry of requirements.yml."""

    name: str
    version: str
    line: int


def wanted(root: Path) -> list[Wanted]:
    """Read requirements.yml; nothing when there is none."""
    path = root / FILE
    node = compose(path, root) if path.is_file() else None
    if not isinstance(node, yaml.Node):
        return []
    rows = [(get(row, "name"), get(row, "version")) for row in items(get(node, "collections"))]
    return [
        Wanted(str(name.value), str(version.value) if version else "", line_of(name))
        for name, version in rows
        if name is not None
    ]


def check_requirements(root: Path, installed: Mapping[str, str]) -> Iterator[Finding]:
    """Compare what tasks use, what is listed and what is installed.

    Raises EngineError COLLECTION_ABSENT when a listed collection is not installed.
    """
    listed = wanted(root)
    for entry in listed:
        have = installed.get(entry.name)
        if have is None:
            raise absent(entry.name)
        if not within(have, entry.version):
            message = (
                f"{entry.name} {have} is installed, wanted is {entry.version or 'nothing'}"
            )
            yield Finding(rule=VERSION, path=FILE, line=entry.line, message=message)
    names = {entry.name for entry in listed} | {BUILTIN}
    for task in (task for task in tasks_of(root) if isinstance(task, Task)):
        collection = task.module.rpartition(".")[0]
        if "." in collection and collection not in names:
            message = f"{collection} is not in {FILE}"
            yield Finding(rule=UNLISTED, path=task.path, line=task.line, message=message)


def read_installed(*, scratch: Path, config: Path) -> dict[str, str]:
    """Ask ansible-galaxy which collections are installed: name -> version.

    Raises EngineError TOOL_ABSENT, or TOOL_FAILED when its answer cannot be read.
    """
    argv = [program("ansible-galaxy"), "collection", "list", "--format", "json"]
    done = run(argv, env=environment(scratch, config=config))
    start = done.output.find("{")
    try:
        rows = cast("dict[str, dict[str, Any]]", json.loads(done.output[start:] or "{}"))
        return {
            name: str(entry["version"])
            for place in rows.values()
            for name, entry in place.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        msg = f"ansible-galaxy ({done.returncode}): {done.output.strip()[:300]}"
        raise EngineError("TOOL_FAILED", msg, hint=done.command) from None


def within(have: str, wanted_range: str) -> bool:
    """Whether a version lies in a range; an empty or unreadable range holds nothing.

    >>> within("3.3.0", ">=3.3.0,<4.0.0"), within("4.0.0", ">=3.3.0,<4.0.0")
    (True, False)
    """
    return all(_bound(_parts(have), part.strip()) for part in wanted_range.split(","))


def _bound(have: tuple[int, ...], text: str) -> bool:
    match = _BOUND.match(text)
    if match is None:
        return False
    sign, limit = match.group(1) or "==", _parts(match.group(2))
    return {
        ">=": have >= limit,
        "<=": have <= limit,
        "==": have == limit,
        "!=": have != limit,
        ">": have > limit,
        "<": have < limit,
    }[sign]


def _parts(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", text)[:4]]
    return (*numbers, *([0] * (4 - len(numbers))))
