"""All static checks of a rendered Windows tree, but for its playbooks, which need a folder.

See `ansible.check_playbooks` for those. None of this runs Windows: a tree without findings is
well-formed and keeps our rules, no more.
"""

from __future__ import annotations

from collections.abc import Mapping

from vega_image.checks import answerfile, cmdfile, crossrefs, powershell, secrets
from vega_image.checks.answerfile import check_answer_files
from vega_image.checks.cmdfile import check_cmd_files
from vega_image.checks.crossrefs import check_references
from vega_image.checks.finding import Finding
from vega_image.checks.packer import CORE, check_packer
from vega_image.checks.powershell import check_powershell
from vega_image.checks.secrets import check_secrets
from vega_image.checks.textform import Newline
from vega_image.windows.spec import Platform

WINDOWS_RULES: Mapping[str, str] = {
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
    **powershell.RULES,
    **answerfile.RULES,
    **cmdfile.RULES,
    **crossrefs.RULES,
    **secrets.RULES,
}
# What they find, `secrets` finds on the same line once more.
_SECRETS = frozenset({"PKR003", "PS005", "ANS013", "ANS015", "ANS020", "CMD009"})
_PLAYBOOKS = "playbooks/"


def check_windows_tree(files: Mapping[str, bytes], *, platform: Platform) -> list[Finding]:
    """Return the findings in a rendered tree (path -> bytes), by file and line.

    Raises EngineError TOOL_ABSENT or TOOL_TOO_OLD when packer or tree-sitter is missing: a
    check that did not run must not look like one that passed. On `metal` a tree may do without
    packer.
    """
    found = [*check_answer_files(files, platform=platform), *check_cmd_files(files)]
    found += [*_scripts(files), *check_references(files)]
    if platform is not Platform.METAL or any(path.startswith(f"{CORE}/") for path in files):
        found += check_packer(files)
    named = {(item.path, item.line) for item in found if item.rule in _SECRETS}
    found += [item for item in check_secrets(files) if (item.path, item.line) not in named]
    return sorted(set(found), key=lambda item: (item.path, item.line, item.rule, item.message))


def _scripts(files: Mapping[str, bytes]) -> list[Finding]:
    """Check scripts; those of playbooks may have either line end, for Ansible reads both."""
    played = {path: data for path, data in files.items() if path.startswith(_PLAYBOOKS)}
    found = check_powershell({path: files[path] for path in files if path not in played})
    for path, data in played.items():
        newline: Newline = "crlf" if b"\r\n" in data else "lf"
        found += check_powershell({path: data}, newline=newline)
    return found
