"""All static checks of a rendered Windows tree, but for its playbooks, which need a folder.

See `ansible.check_playbooks` for those. None of this runs Windows: a tree without findings is
well-formed and keeps our rules, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from vega_image.checks import answerfile, cmdfile, crossrefs, powershell, secrets
from vega_image.checks.answerfile import check_answer_files
from vega_image.checks.cmdfile import check_cmd_files
from vega_image.checks.crossrefs import check_references
from vega_image.checks.finding import Finding
from vega_image.checks.packer import CORE, check_packer
from vega_image.checks.powershell import check_powershell
from vega_image.checks.secrets import check_secrets
from vega_image.checks.textform import Newline
from vega_image.errors import EngineError
from vega_image.windows.spec import Platform

_PACKER: Mapping[str, str] = {
    "PKR001": "a file of packer is not formatted as `packer fmt` does",
    "PKR002": "a file is no HCL, or packer refuses it",
    "PKR003": "a secret is written into a file of packer",
    "PKR004": "a variable that is a secret is not sensitive, or has a default",
    "PKR005": "a file of packer names an address to fetch from",
    "PKR006": "an ISO without a SHA-256",
    "PKR007": "WinRM without encryption or with basic authentication",
    "PKR008": "a certificate is not checked",
    "PKR009": "a core file has what packer 1.6.6 does not know",
    "PKR010": "a QEMU guest is not heard on its serial line",
}
# The rules of each check of `tree_checks`, by its name.
CHECK_RULES: Mapping[str, Mapping[str, str]] = {
    "answer-files": answerfile.RULES,
    "cmd-files": cmdfile.RULES,
    "powershell": powershell.RULES,
    "cross-references": crossrefs.RULES,
    "packer": _PACKER,
    "secrets": secrets.RULES,
}
WINDOWS_RULES: Mapping[str, str] = {
    rule: said for rules in CHECK_RULES.values() for rule, said in rules.items()
}
# What they find, `secrets` finds on the same line once more.
_SECRETS = frozenset({"PKR003", "PS005", "ANS013", "ANS015", "ANS020", "CMD009"})
_PLAYBOOKS = "playbooks/"
NOT_RUN = frozenset({"TOOL_ABSENT", "TOOL_TOO_OLD", "COLLECTION_ABSENT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What checks found; `not_run` are those whose tool is missing: they say nothing."""

    findings: tuple[Finding, ...]
    ran: tuple[str, ...]
    not_run: Mapping[str, EngineError]


def check_windows_tree(files: Mapping[str, bytes], *, platform: Platform) -> list[Finding]:
    """Return the findings in a rendered tree (path -> bytes), by file and line.

    Raises EngineError TOOL_ABSENT or TOOL_TOO_OLD when packer or tree-sitter is missing: a
    check that did not run must not look like one that passed. On `metal` a tree may do without
    packer.
    """
    outcome = run_checks(tree_checks(files, platform=platform))
    for error in outcome.not_run.values():
        raise error
    return list(outcome.findings)


def tree_checks(
    files: Mapping[str, bytes], *, platform: Platform
) -> dict[str, Callable[[], Iterable[Finding]]]:
    """Return every check of a rendered tree by its name, none of them run yet."""
    checks: dict[str, Callable[[], Iterable[Finding]]] = {
        "answer-files": partial(check_answer_files, files, platform=platform),
        "cmd-files": partial(check_cmd_files, files),
        "powershell": partial(_scripts, files),
        "cross-references": partial(check_references, files),
    }
    if platform is not Platform.METAL or any(path.startswith(f"{CORE}/") for path in files):
        checks["packer"] = partial(check_packer, files)
    return {**checks, "secrets": partial(check_secrets, files)}


def run_checks(checks: Mapping[str, Callable[[], Iterable[Finding]]]) -> Outcome:
    """Run checks; one whose tool is absent or too old does not keep the others from running.

    Raises EngineError of any other kind.
    """
    found: dict[str, list[Finding]] = {}
    not_run: dict[str, EngineError] = {}
    for name, check in checks.items():
        try:
            found[name] = list(check())
        except EngineError as error:
            if error.code not in NOT_RUN:
                raise
            not_run[name] = error
    named = {
        (item.path, item.line)
        for rows in found.values()
        for item in rows
        if item.rule in _SECRETS
    }
    kept = {
        item
        for name, rows in found.items()
        for item in rows
        if name != "secrets" or (item.path, item.line) not in named
    }
    order = sorted(kept, key=lambda item: (item.path, item.line, item.rule, item.message))
    return Outcome(findings=tuple(order), ran=tuple(found), not_run=not_run)


def _scripts(files: Mapping[str, bytes]) -> list[Finding]:
    """Check scripts; those of playbooks may have either line end, for Ansible reads both."""
    played = {path: data for path, data in files.items() if path.startswith(_PLAYBOOKS)}
    found = check_powershell({path: files[path] for path in files if path not in played})
    for path, data in played.items():
        newline: Newline = "crlf" if b"\r\n" in data else "lf"
        found += check_powershell({path: data}, newline=newline)
    return found
