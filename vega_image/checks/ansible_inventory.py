"""The shape of inventory/*.yaml, and that each play names hosts that some inventory has.

Ansible only warns about both, and then provisions nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from vega_image.checks.ansible_tasks import (
    Node,
    compose,
    get,
    is_null,
    items,
    line_of,
    pairs,
    yaml_files,
)
from vega_image.checks.finding import Finding

SHAPE, HOSTS = "ansible-inventory", "ansible-unknown-hosts"
KEYS = frozenset({"hosts", "children", "vars"})
ALWAYS = frozenset({"all", "localhost"})
# A pattern of several names, an exclusion or a template is left to Ansible.
PATTERN = frozenset(":,*!&[]{}~ ")


def check_inventory(root: Path) -> Iterator[Finding]:
    """Check the inventories and the plays' hosts below `root`."""
    names: set[str] = set()
    for path in sorted((root / "inventory").glob("*.yaml")):
        node = compose(path, root)
        if isinstance(node, yaml.Node):
            yield from _group_of_groups(node, path.relative_to(root).as_posix(), names, 0)
    if names:
        yield from _plays(root, names)


def _group_of_groups(node: Node, path: str, names: set[str], depth: int) -> Iterator[Finding]:
    if not isinstance(node, yaml.MappingNode) or depth > 20:  # noqa: PLR2004 - an anchor in itself
        yield _shape(path, node, "groups are written as a mapping")
        return
    for name, _, group in pairs(node):
        names.add(name)
        if is_null(group):
            continue
        if not isinstance(group, yaml.MappingNode):
            yield _shape(path, group, f"{name}: a group is a mapping of hosts, children, vars")
            continue
        for key, at, value in pairs(group):
            if key not in KEYS:
                yield _shape(path, at, f"{name}: a group has no key {key}")
            elif not isinstance(value, yaml.MappingNode) and not is_null(value):
                yield _shape(path, value, f"{name}: {key} is written as a mapping")
            elif key == "hosts":
                names.update(host for host, _, _ in pairs(value))
            elif key == "children" and not is_null(value):
                yield from _group_of_groups(value, path, names, depth + 1)


def _plays(root: Path, names: set[str]) -> Iterator[Finding]:
    for path in yaml_files(root):
        if path.parent != root / "playbooks":
            continue
        node = compose(path, root)
        for play in items(node) if isinstance(node, yaml.Node) else []:
            hosts = get(play, "hosts")
            for one in [] if hosts is None else items(hosts) or [hosts]:
                text = str(one.value)
                if not PATTERN & set(text) and text not in names | ALWAYS:
                    message = f"no inventory has a group or host {text}"
                    name = path.relative_to(root).as_posix()
                    yield Finding(rule=HOSTS, path=name, line=line_of(one), message=message)


def _shape(path: str, node: Node, message: str) -> Finding:
    return Finding(rule=SHAPE, path=path, line=line_of(node), message=message)
