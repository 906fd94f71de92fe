"""Read the tasks of playbooks and roles with the line of everything in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from vega_image.checks.finding import Finding

Node: TypeAlias = yaml.Node
KEYWORDS = frozenset(
    [
        "any_errors_fatal",
        "args",
        "async",
        "become",
        "become_exe",
        "become_flags",
        "become_method",
        "become_user",
        "changed_when",
        "check_mode",
        "collections",
        "connection",
        "debugger",
        "delay",
        "delegate_facts",
        "delegate_to",
        "diff",
        "environment",
        "failed_when",
        "ignore_errors",
        "ignore_unreachable",
        "listen",
        "loop",
        "loop_control",
        "module_defaults",
        "name",
        "no_log",
        "notify",
        "poll",
        "port",
        "register",
        "remote_user",
        "retries",
        "run_once",
        "tags",
        "throttle",
        "timeout",
        "until",
        "vars",
        "when",
    ]
)
BLOCKS = ("block", "rescue", "always")
LISTS = ("pre_tasks", "tasks", "post_tasks", "handlers")
HIDING = frozenset({"action", "local_action"})
DEEPEST = 40
YAML_RULE = "ansible-yaml"
TASK_RULE = "ansible-task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task: the module it names, its arguments as YAML nodes, the file and line.

    `complete` is false for module_defaults, which need not give what is required.
    """

    module: str
    arguments: Mapping[str, Node] | Node
    path: str
    line: int
    complete: bool = True


def line_of(node: Node) -> int:
    """Return a node's line in its file, from 1."""
    return int(node.start_mark.line) + 1


def pairs(node: Node | None) -> Iterator[tuple[str, Node, Node]]:
    """Yield key, key's node, value's node of a mapping; nothing for other nodes."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag.endswith(":merge"):
                for merged in items(value) or [value]:
                    yield from pairs(merged)
            else:
                yield str(key.value), key, value


def get(node: Node | None, name: str) -> Node | None:
    """Return the value of a key of a mapping node."""
    return next((value for key, _, value in pairs(node) if key == name), None)


def items(node: Node | None) -> list[Node]:
    """Return the nodes of a sequence; none for other nodes."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def is_null(node: Node) -> bool:
    """Whether a value is empty or null."""
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def yaml_files(root: Path) -> list[Path]:
    """List the YAML files of playbooks/ and inventory/ below `root`, sorted."""
    folders = (root / "playbooks", root / "inventory")
    found = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if path.suffix in {".yaml", ".yml"})


def compose(path: Path, root: Path) -> Node | Finding | None:
    """Read a YAML file as nodes; None when empty, a finding when it is not YAML."""
    name = path.relative_to(root).as_posix()
    try:
        return yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        return Finding(rule=YAML_RULE, path=name, line=line, message=str(error.problem))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        return Finding(rule=YAML_RULE, path=name, line=0, message=str(error))


def tasks_of(root: Path) -> Iterator[Task | Finding]:
    """Yield every task of the playbooks and roles below `root`; findings for what is none."""
    for path in yaml_files(root):
        inside = path.relative_to(root).parts
        if inside[0] != "playbooks" or not _holds_tasks(inside):
            continue
        node = compose(path, root)
        if isinstance(node, Finding):
            yield node
            continue
        name = path.relative_to(root).as_posix()
        if inside[1] == "roles":
            yield from _list(node, name, 0)
        else:
            yield from _playbook(node, name)


def _holds_tasks(inside: tuple[str, ...]) -> bool:
    if len(inside) > 4 and inside[1] == "roles":  # noqa: PLR2004 - playbooks/roles/NAME/KIND/FILE
        return inside[3] in {"tasks", "handlers"}
    return len(inside) == 2 and inside[1] != "requirements.yml"  # noqa: PLR2004 - playbooks/FILE


def _playbook(node: Node | None, path: str) -> Iterator[Task | Finding]:
    for play in items(node):
        for name in LISTS:
            yield from _list(get(play, name), path, 0)
        yield from _defaults(play, path)
        for key, at, _ in pairs(play):
            if "." in key:
                argument = get(play, key)
                assert argument is not None
                yield Task(module=key, arguments=argument, path=path, line=line_of(at))


def _list(node: Node | None, path: str, depth: int) -> Iterator[Task | Finding]:
    if node is not None and not isinstance(node, yaml.SequenceNode):
        yield _none(path, line_of(node), "tasks are written as a list")
    for entry in items(node):
        yield from _entry(entry, path, depth)


def _entry(node: Node, path: str, depth: int) -> Iterator[Task | Finding]:
    if depth > DEEPEST:
        yield _none(path, line_of(node), "blocks are nested too deep")
        return
    keys = [key for key, _, _ in pairs(node)]
    if any(name in keys for name in BLOCKS):
        for name in BLOCKS:
            yield from _list(get(node, name), path, depth + 1)
        yield from _defaults(node, path)
        return
    yield from _defaults(node, path)
    yield _task(node, path)


def _task(node: Node, path: str) -> Task | Finding:
    named = [
        (key, at, value)
        for key, at, value in pairs(node)
        if key not in KEYWORDS and not key.startswith("with_")
    ]
    if len(named) != 1:
        found = ", ".join(key for key, _, _ in named) or "none"
        return _none(path, line_of(node), f"a task names one module; found: {found}")
    module, at, value = named[0]
    if module in HIDING:
        message = f"{module}: hides the module; write the module as the key"
        return _none(path, line_of(at), message)
    more = {key: inner for key, _, inner in pairs(get(node, "args"))}
    arguments: Mapping[str, Node] | Node = value
    if isinstance(value, yaml.MappingNode) or (more and is_null(value)):
        arguments = {**{key: inner for key, _, inner in pairs(value)}, **more}
    return Task(module=module, arguments=arguments, path=path, line=line_of(at))


def _defaults(node: Node, path: str) -> Iterator[Task]:
    for module, at, value in pairs(get(node, "module_defaults")):
        if not module.startswith("group/"):
            arguments = {key: inner for key, _, inner in pairs(value)}
            yield Task(
                module=module, arguments=arguments, path=path, line=line_of(at), complete=False
            )


def _none(path: str, line: int, message: str) -> Finding:
    return Finding(rule=TASK_RULE, path=path, line=line, message=message)
