"""All static checks of playbooks/ and inventory/: nothing is contacted, nothing is changed."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vega_image.ansibletool import environment, program
from vega_image.checks import (
    ansible_inventory,
    ansible_tasks,
    ansible_transport,
    module_options,
)
from vega_image.checks import ansible_requirements as requirements
from vega_image.checks.finding import Finding
from vega_image.checks.module_docs import ModuleDoc, read_docs
from vega_image.errors import EngineError, UsageError
from vega_image.process import Completed, run

SYNTAX, LINT = "ansible-syntax", "ansible-lint"
RULES: Mapping[str, str] = {
    ansible_tasks.YAML_RULE: "a file of playbooks/ or inventory/ is no YAML",
    ansible_tasks.TASK_RULE: "a task does not name exactly one module as a key",
    SYNTAX: "ansible-playbook --syntax-check refuses a playbook",
    LINT: "ansible-lint refuses something in its production profile",
    module_options.UNQUALIFIED: "a module is not named namespace.collection.module",
    module_options.UNKNOWN: "the installed collection has no such module",
    module_options.DEPRECATED: "a module is deprecated or has moved to another collection",
    module_options.ARGUMENTS: "options are written as one text, so nobody can check them",
    module_options.OPTION: "a module has no such option",
    module_options.MISSING: "a required option is missing",
    module_options.TYPE: "a value is not of its option's type",
    module_options.CHOICE: "a value is none of its option's choices",
    module_options.TWICE: "an option is given twice, by two of its names",
    ansible_inventory.SHAPE: "an inventory is not groups of hosts, children and vars",
    ansible_inventory.HOSTS: "a play names hosts that no inventory has",
    requirements.UNLISTED: "a collection is used but not in requirements.yml",
    requirements.VERSION: "an installed collection is not of the version in requirements.yml",
    ansible_transport.BASIC: "Basic authentication is possible",
    ansible_transport.PLAIN: "a connection without encryption is possible",
    ansible_transport.CERTIFICATE: "a certificate is not checked",
    ansible_transport.HOST_KEY: "a host key is not checked",
    ansible_transport.PASSWORD: "a password is in clear text, or accepted over ssh",
    ansible_transport.CONNECTION: "another connection than psrp or ssh",
    ansible_transport.UNPINNED: "psrp without https, validation and the office's CA",
    ansible_transport.VARIABLE: "a connection variable that nothing reads, or a wrong value",
}
CONFIG = """[defaults]
host_key_checking = True
retry_files_enabled = False
"""
LINT_CONFIG = """profile: production
offline: true
kinds:
  - requirements: "**/requirements.yml"
"""
# What ansible-lint finds is an error of the lint run itself, not of the text.
_PLACE = re.compile(r"(?:Origin: |in ')(?P<path>[^\n:']+)(?:', line |:)(?P<line>\d+)")


def check_playbooks(root: Path) -> list[Finding]:
    """Check playbooks/ and inventory/ below `root`; findings are sorted by file and line.

    Raises EngineError TOOL_ABSENT or COLLECTION_ABSENT when something that must look is not
    installed: a check that did not run is none. UsageError PLAYBOOKS_ABSENT without playbooks.
    """
    if not any((root / "playbooks").glob("*.yaml")):
        msg = f"{root / 'playbooks'}: no playbooks here"
        raise UsageError("PLAYBOOKS_ABSENT", msg, at=str(root / "playbooks"))
    with tempfile.TemporaryDirectory(prefix="vega-image-ansible-") as folder:
        scratch = Path(folder).resolve()
        tree = _copy(root, scratch)
        config = scratch / "ansible.cfg"
        config.write_text(CONFIG)
        modules = module_options.modules_of(tree)
        known = read_known(modules, scratch=scratch, config=config)
        found = list(own_findings(tree, known))
        # Their programs stop at a file that is no YAML, and ours has named it.
        if not any(finding.rule == ansible_tasks.YAML_RULE for finding in found):
            refused = list(_syntax(tree, scratch, config))
            found += refused or _lint(tree, scratch, config)
    return sorted(set(found), key=lambda finding: (finding.path, finding.line, finding.rule))


def _copy(root: Path, scratch: Path) -> Path:
    # ansible-lint writes beside what it reads, and the factory may be read-only.
    tree = scratch / "tree"
    for name in ("playbooks", "inventory"):
        if (root / name).is_dir():
            ignored = shutil.ignore_patterns(".*", "__pycache__", "logs")
            shutil.copytree(root / name, tree / name, ignore=ignored)
    return tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the installed Ansible documents: modules, connection variables, collections."""

    modules: Mapping[str, ModuleDoc]
    variables: Mapping[str, ansible_transport.Variable]
    collections: Mapping[str, str]


def read_known(modules: Collection[str], *, scratch: Path, config: Path) -> Known:
    """Ask the installed Ansible; raises EngineError as check_playbooks does."""
    return Known(
        modules=read_docs(modules, scratch=scratch, config=config),
        variables=ansible_transport.read_variables(scratch=scratch, config=config),
        collections=requirements.read_installed(scratch=scratch, config=config),
    )


def own_findings(tree: Path, known: Known) -> Iterator[Finding]:
    """Apply our own rules, which start no program."""
    for path in ansible_tasks.yaml_files(tree):
        node = ansible_tasks.compose(path, tree)
        if isinstance(node, Finding):
            yield node
    yield from module_options.check_options(tree, known.modules)
    yield from ansible_transport.check_transport(tree, known.variables)
    yield from ansible_inventory.check_inventory(tree)
    yield from requirements.check_requirements(tree, known.collections)


def _playbooks(tree: Path) -> list[str]:
    return [
        path.relative_to(tree).as_posix()
        for path in sorted((tree / "playbooks").glob("*.yaml"))
    ]


def _syntax(tree: Path, scratch: Path, config: Path) -> Iterator[Finding]:
    env = environment(scratch, config=config)
    env["ANSIBLE_ROLES_PATH"] = str(tree / "playbooks/roles")
    argv = [program("ansible-playbook"), "--inventory", "localhost,", "--syntax-check", "--"]
    done = run([*argv, *_playbooks(tree)], env=env, cwd=tree)
    if done.returncode == 0:
        return
    if done.returncode < 0:
        msg = f"ansible-playbook died ({done.returncode}): {done.output.strip()[-300:]}"
        raise EngineError("TOOL_FAILED", msg, hint=done.command)
    path, line = _place(done, tree)
    message = next((row for row in done.output.splitlines() if "ERROR" in row), "refused")
    yield Finding(rule=SYNTAX, path=path, line=line, message=message)


def _place(done: Completed, tree: Path) -> tuple[str, int]:
    for match in _PLACE.finditer(done.output):
        path = Path(match["path"])
        if path.is_relative_to(tree):
            return path.relative_to(tree).as_posix(), int(match["line"])
    return _playbooks(tree)[0], 0


def _lint(tree: Path, scratch: Path, config: Path) -> list[Finding]:
    settings = scratch / "lint.yaml"
    settings.write_text(LINT_CONFIG)
    words = ["--offline", "--nocolor", "--format", "json", "--config-file", str(settings)]
    argv = [program("ansible-lint"), *words, *_lintables(tree)]
    env = environment(scratch, config=config)
    env["ANSIBLE_ROLES_PATH"] = str(tree / "playbooks/roles")
    done = run(argv, env=env, cwd=tree)
    line = next((row for row in done.output.splitlines() if row.startswith("[")), None)
    try:
        rows = cast("list[dict[str, Any]]", json.loads(line or ""))
        return [_lint_finding(row) for row in rows]
    except (ValueError, KeyError, TypeError):
        msg = f"ansible-lint failed ({done.returncode}): {done.output.strip()[-300:]}"
        raise EngineError("TOOL_FAILED", msg, hint=done.command) from None


def _lintables(tree: Path) -> Sequence[str]:
    """List what lint reads: it follows the roles of playbooks, others are named to it."""
    playbooks = _playbooks(tree)
    texts = "".join((tree / path).read_text("utf-8") for path in playbooks)
    roles = [path for path in sorted((tree / "playbooks/roles").glob("*")) if path.is_dir()]
    rest = [path for path in roles if not re.search(rf"\b{re.escape(path.name)}\b", texts)]
    extra = [
        path
        for path in ansible_tasks.yaml_files(tree)
        if path.is_relative_to(tree / "inventory")
    ]
    extra += [path for path in [tree / requirements.FILE] if path.is_file()]
    return [*playbooks, *(path.relative_to(tree).as_posix() for path in [*rest, *extra])]


def _lint_finding(row: Mapping[str, Any]) -> Finding:
    place = row["location"]
    lines = place.get("lines") or place["positions"]
    begin = lines["begin"]
    line = int(begin["line"] if isinstance(begin, dict) else begin)
    body = (row.get("content") or {}).get("body") or row.get("description") or ""
    message = f"[{row['check_name']}] {body}".strip()
    return Finding(rule=LINT, path=str(place["path"]), line=line, message=message)
