"""How workstations are reached: pinned, encrypted, without Basic and without passwords."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from vega_image.ansibletool import environment, program
from vega_image.checks.ansible_tasks import Node, compose, get, items, line_of, pairs
from vega_image.checks.finding import Finding
from vega_image.errors import EngineError
from vega_image.process import run

BASIC, PLAIN, CERTIFICATE = "transport-basic", "transport-unencrypted", "transport-certificate"
HOST_KEY, PASSWORD, CONNECTION = "transport-host-key", "transport-password", "transport-kind"
UNPINNED, VARIABLE = "transport-unpinned", "transport-variable"

_FALSE = r"['\"]?(false|no|off|0)['\"]?\s*$"
_TRUE = r"['\"]?\$?(true|yes|on|1)\b"
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (BASIC, r"ansible_(psrp_auth|winrm_transport)\s*[:=].*\b(basic|plaintext)\b", "Basic"),
    (BASIC, r"(?<![A-Za-z])Basic\s*=\s*" + _TRUE, "Basic is switched on"),
    (PLAIN, r"ansible_(psrp_protocol|winrm_scheme)\s*[:=]\s*['\"]?http['\"]?\s*$", "no TLS"),
    (PLAIN, r"ansible_psrp_message_encryption\s*[:=]\s*['\"]?never", "no encryption"),
    (PLAIN, r"ansible(_psrp|_winrm)?_port\s*[:=]\s*['\"]?5985", "the port without TLS"),
    (PLAIN, r"AllowUnencrypted(Traffic)?\s*=\s*" + _TRUE, "unencrypted is allowed"),
    (CERTIFICATE, r"cert_validation\s*[:=]\s*['\"]?ignore", "any certificate is accepted"),
    (CERTIFICATE, r"Skip(CA|CN|Revocation)Check", "the certificate is not checked"),
    (HOST_KEY, r"StrictHostKeyChecking[= ]['\"]?(no|off|ask|accept-new)\b", "any host key"),
    (HOST_KEY, r"UserKnownHostsFile[= ]\\?['\"]*/dev/null", "no host keys are kept"),
    (HOST_KEY, r"host_key_checking\s*[:=]\s*" + _FALSE, "host keys are not checked"),
    (CONNECTION, r"ansible_connection\s*[:=]\s*['\"]?(ansible\.builtin\.)?winrm\b", "use psrp"),
    (CONNECTION, r"ansible_winrm_\w+\s*[:=]", "a variable of winrm; use psrp"),
    (PASSWORD, r"PasswordAuthentication[= ]['\"]?yes", "passwords are accepted"),
)
SECRETS = re.compile(r"^ansible_\w*(password|pass|passphrase)$")
SWITCHES = {"AllowBasic": BASIC, "AllowUnencryptedTraffic": PLAIN}
OURS = re.compile(r"^ansible_(psrp|ssh)_")
PLUGINS = ("ansible.builtin.psrp", "ansible.builtin.ssh")
TEXTS = frozenset(
    {".yaml", ".yml", ".cfg", ".ini", ".j2", ".ps1", ".cmd", ".json", ".conf", ""}
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A connection variable and the values its documentation allows; none: any."""

    name: str
    choices: tuple[str, ...]


def check_transport(root: Path, known: Mapping[str, Variable]) -> Iterator[Finding]:
    """Check every text file of playbooks/ and inventory/; `known` as of read_variables."""
    for folder in (root / "playbooks", root / "inventory"):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if path.suffix in TEXTS:
                yield from _file(path, root, known)


def read_variables(*, scratch: Path, config: Path) -> dict[str, Variable]:
    """Ask ansible-doc which variables the two connection plugins read.

    Raises EngineError TOOL_ABSENT, or TOOL_FAILED when its answer cannot be read.
    """
    argv = [program("ansible-doc"), "--json", "--type", "connection", *PLUGINS]
    done = run(argv, env=environment(scratch, config=config))
    try:
        rows = cast("dict[str, Any]", json.loads(done.output))
        options = [row for name in PLUGINS for row in rows[name]["doc"]["options"].values()]
        found = [
            Variable(str(entry["name"]), tuple(map(str, row.get("choices") or ())))
            for row in options
            for entry in row.get("vars") or ()
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        msg = f"ansible-doc ({done.returncode}): {done.output.strip()[:300]}"
        raise EngineError("TOOL_FAILED", msg, hint=done.command) from None
    return {variable.name: variable for variable in found}


def _file(path: Path, root: Path, known: Mapping[str, Variable]) -> Iterator[Finding]:
    name = path.relative_to(root).as_posix()
    node = compose(path, root) if path.suffix in {".yaml", ".yml"} else None
    if isinstance(node, yaml.Node):
        statements = list(_statements(node))
        for mapping in _mappings(node):
            yield from _mapping(mapping, name, known)
    else:
        lines = path.read_text("utf-8", errors="replace").splitlines()
        statements = list(enumerate(lines, start=1))
    for line, text in statements:
        if not text.lstrip().startswith(("#", ";")):
            yield from _statement(text, name, line)


def _statement(text: str, name: str, line: int) -> Iterator[Finding]:
    for rule, pattern, why in PATTERNS:
        if re.search(pattern, text, re.IGNORECASE):
            yield Finding(rule=rule, path=name, line=line, message=f"{text.strip()}: {why}")


def _statements(node: Node) -> Iterator[tuple[int, str]]:
    for mapping in _mappings(node):
        for key, at, value in pairs(mapping):
            leaves = items(value) or [value]
            text = " ".join(str(leaf.value) for leaf in leaves if _scalar(leaf))
            if text:
                yield line_of(at), f"{key}: {text}"


def _scalar(node: Node) -> bool:
    return isinstance(node, yaml.ScalarNode)


def _mappings(node: Node) -> Iterator[yaml.MappingNode]:
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, yaml.MappingNode):
            yield here
            waiting += [value for _, value in reversed(here.value)]
        waiting += reversed(items(here))


def _mapping(node: Node, name: str, known: Mapping[str, Variable]) -> Iterator[Finding]:
    for key, at, value in pairs(node):
        line = line_of(at)
        if SECRETS.match(key) and _scalar(value) and not _hidden(value):
            message = f"{key}: a secret in clear text; take it from a vault or a variable"
            yield Finding(rule=PASSWORD, path=name, line=line, message=message)
        if OURS.match(key):
            yield from _variable(key, value, name, known)
        if key == "ansible_connection" and str(value.value).endswith("psrp"):
            yield from _pinned(node, name, line)
    switch = get(node, "name")
    rule = SWITCHES.get(str(switch.value)) if switch is not None else None
    data = get(node, "data")
    if rule and data is not None and str(data.value) not in {"0", "false"}:
        message = f"{switch.value if switch else ''} is switched on"
        yield Finding(rule=rule, path=name, line=line_of(data), message=message)


def _hidden(node: Node) -> bool:
    return "{{" in str(node.value) or node.tag.startswith("!")


def _variable(
    key: str, value: Node, name: str, known: Mapping[str, Variable]
) -> Iterator[Finding]:
    variable, text = known.get(key), str(value.value)
    if variable is None:
        message = f"{key}: no connection reads this variable"
    elif variable.choices and "{{" not in text and text not in variable.choices:
        message = f"{key} is one of {', '.join(variable.choices)}, not {text}"
    else:
        return
    yield Finding(rule=VARIABLE, path=name, line=line_of(value), message=message)


def _pinned(node: Node, name: str, line: int) -> Iterator[Finding]:
    wanted = {"ansible_psrp_cert_validation": "validate", "ansible_psrp_protocol": "https"}
    for key, value in wanted.items():
        found = get(node, key)
        if found is None or str(found.value) != value:
            message = f"psrp without {key}: {value} beside it"
            yield Finding(rule=UNPINNED, path=name, line=line, message=message)
    if not any(
        get(node, key) for key in ("ansible_psrp_ca_cert", "ansible_psrp_cert_trust_path")
    ):
        message = "psrp without ansible_psrp_ca_cert beside it: the office's CA is not pinned"
        yield Finding(rule=UNPINNED, path=name, line=line, message=message)
