"""Hold the options of every task against the documentation of its module.

Neither ansible-playbook --syntax-check nor ansible-lint looks at the options of Windows
modules: a misspelt one is found on the workstation, or never.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from vega_image.checks.ansible_tasks import Node, Task, is_null, line_of, pairs, tasks_of
from vega_image.checks.finding import Finding
from vega_image.checks.module_docs import ModuleDoc, Option

UNQUALIFIED, UNKNOWN = "ansible-unqualified-module", "ansible-unknown-module"
DEPRECATED, ARGUMENTS = "ansible-deprecated-module", "ansible-text-arguments"
OPTION, MISSING = "ansible-unknown-option", "ansible-missing-option"
TYPE, CHOICE = "ansible-wrong-type", "ansible-wrong-choice"
TWICE = "ansible-option-twice"

# These take names of their own beside the documented options.
OPEN = frozenset(
    {"ansible.builtin.set_fact", "ansible.builtin.add_host", "ansible.windows.win_dsc"}
)
# How a command line or a file name is given without an option's name.
FREE = frozenset({"free_form", "free-form", "_raw_params", "key_value"})
# Documented as text, while a mapping is what everybody gives them.
ANYTHING = frozenset(
    {
        ("ansible.builtin.debug", "msg"),
        ("ansible.builtin.include_tasks", "apply"),
        ("ansible.builtin.include_role", "apply"),
        ("ansible.builtin.copy", "content"),
    }
)
TRUTHS = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0", "y", "n", "t", "f"})
NUMBER_TAGS = {"int": ("int",), "float": ("int", "float"), "bits": ("int",), "bytes": ("int",)}
TEXTS = frozenset({"str", "path", "sid"})


def modules_of(root: Path) -> set[str]:
    """Return the fully named modules that the tasks below `root` use."""
    tasks = (task for task in tasks_of(root) if isinstance(task, Task))
    return {task.module for task in tasks if task.module.count(".") > 1}


def check_options(root: Path, docs: Mapping[str, ModuleDoc]) -> Iterator[Finding]:
    """Check every task of playbooks/ below `root` against docs (read_docs)."""
    for entry in tasks_of(root):
        if isinstance(entry, Finding):
            yield entry
        else:
            yield from check_task(entry, docs)


def check_task(task: Task, docs: Mapping[str, ModuleDoc]) -> Iterator[Finding]:
    """Yield what is wrong with one task."""
    doc = docs.get(task.module)
    # namespace.collection.module
    if task.module.count(".") <= 1:
        yield _of_task(task, UNQUALIFIED, f"{task.module}: write namespace.collection.module")
    elif doc is None:
        yield _of_task(
            task, UNKNOWN, f"{task.module}: the installed collection has no such module"
        )
    else:
        if doc.deprecated:
            yield _of_task(task, DEPRECATED, f"{task.module}: {doc.deprecated}")
        yield from _arguments(task, doc)


def _arguments(task: Task, doc: ModuleDoc) -> Iterator[Finding]:
    free = any(option.name in FREE for option in doc.options)
    if isinstance(task.arguments, Mapping):
        checker = _Checker(task.path, task.module)
        given = dict(task.arguments)
        yield from checker.options(
            given, doc.options, line=task.line, closed=doc.name not in OPEN, whole=task.complete
        )
        return
    node = task.arguments
    if is_null(node):
        checker = _Checker(task.path, task.module)
        yield from checker.options({}, doc.options, line=task.line, closed=True, whole=True)
    elif not (free and isinstance(node, yaml.ScalarNode)):
        message = f"{task.module}: options are written as a mapping, or nobody can check them"
        yield _of_task(task, ARGUMENTS, message)


def _of_task(task: Task, rule: str, message: str) -> Finding:
    return Finding(rule=rule, path=task.path, line=task.line, message=message)


class _Checker:
    """Walks the values of one task; all findings are of one file and one module."""

    def __init__(self, path: str, module: str) -> None:
        self.path = path
        self.module = module

    def finding(self, rule: str, line: int, message: str) -> Finding:
        return Finding(
            rule=rule, path=self.path, line=line, message=f"{self.module}: {message}"
        )

    def options(
        self,
        given: Mapping[str, Node],
        known: Sequence[Option],
        *,
        line: int,
        closed: bool,
        whole: bool,
    ) -> Iterator[Finding]:
        """Check names, what is missing, then each value."""
        by_name = {name: option for option in known for name in (option.name, *option.aliases)}
        set_by: dict[str, str] = {}
        for name, node in given.items():
            option = by_name.get(name)
            if option is None:
                if closed:
                    yield self.finding(OPTION, line_of(node), _unknown(name, by_name))
                continue
            if option.name in set_by:
                message = f"{name} and {set_by[option.name]} are the same option"
                yield self.finding(TWICE, line_of(node), message)
            set_by[option.name] = name
            yield from self.value(name, node, option)
        for option in known:
            if whole and option.required and option.name not in {*set_by, *FREE}:
                yield self.finding(MISSING, line, f"{option.name} is required")

    def value(self, name: str, node: Node, option: Option) -> Iterator[Finding]:
        """Check one value; what Jinja will compute cannot be known here."""
        if _templated(node) or is_null(node) or (self.module, option.name) in ANYTHING:
            return
        if option.type == "list":
            yield from self.sequence(name, node, option)
            return
        yield from self.single(name, node, option, option.type)

    def sequence(self, name: str, node: Node, option: Option) -> Iterator[Finding]:
        """Check a list; a lone text or number counts as a list of one, as Ansible reads it."""
        if isinstance(node, yaml.MappingNode):
            yield self.finding(TYPE, line_of(node), f"{name} is a list, not a mapping")
            return
        for item in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not _templated(item):
                yield from self.single(name, item, option, option.elements)

    def single(self, name: str, node: Node, option: Option, kind: str) -> Iterator[Finding]:
        """Check one value, or one element of a list."""
        if not _fits(node, kind):
            message = f"{name} is {_article(kind)}, not {_seen(node)}"
            yield self.finding(TYPE, line_of(node), message)
            return
        if option.choices and isinstance(node, yaml.ScalarNode):
            text = node.value.lower() if node.tag.endswith(":bool") else node.value
            if text not in option.choices:
                message = f"{name} is one of {', '.join(option.choices)}, not {node.value}"
                yield self.finding(CHOICE, line_of(node), message)
        if option.options and isinstance(node, yaml.MappingNode):
            given = {key: value for key, _, value in pairs(node)}
            yield from self.options(
                given, option.options, line=line_of(node), closed=True, whole=True
            )


def _unknown(name: str, known: Mapping[str, Option]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"no option {name}" + (f"; did you mean {near[0]}?" if near else "")


def _templated(node: Node) -> bool:
    if not isinstance(node, yaml.ScalarNode):
        return False
    # A tag of Ansible's own (!vault, !unsafe) hides the value as well.
    return "{{" in node.value or "{%" in node.value or node.tag.startswith("!")


def _fits(node: Node, kind: str) -> bool:
    if kind in {"raw", "json", "jsonarg", "any", "complex"}:
        return True
    if kind == "dict":
        return isinstance(node, yaml.MappingNode)
    if kind == "list":
        return isinstance(node, yaml.SequenceNode)
    if not isinstance(node, yaml.ScalarNode):
        return False
    tag = node.tag.rpartition(":")[2]
    if kind == "bool":
        return node.value.lower() in TRUTHS
    if kind in NUMBER_TAGS:
        return tag in NUMBER_TAGS[kind] or (tag == "str" and _number(node.value, kind))
    # YAML reads yes and no as truths, and PowerShell then gets the text "True".
    return kind not in TEXTS or tag != "bool"


def _number(text: str, kind: str) -> bool:
    if kind in {"bits", "bytes"}:
        return text[:1].isdigit()
    try:
        float(text) if kind == "float" else int(text)
    except ValueError:
        return False
    return True


def _article(kind: str) -> str:
    return {"int": "a whole number", "bool": "true or false", "dict": "a mapping"}.get(
        kind, f"a {kind}"
    )


def _seen(node: Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return repr(node.value)
