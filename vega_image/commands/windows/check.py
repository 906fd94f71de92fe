"""vega-image check of a Windows target: every check of its tree, and what could not be run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from vega_image.checks.ansible import check_playbooks
from vega_image.checks.finding import Finding
from vega_image.checks.planted import ANSIBLE
from vega_image.checks.windows import Outcome, run_checks, tree_checks
from vega_image.clioptions import Call
from vega_image.commands.windows.tree import write_tree
from vega_image.digest import Json
from vega_image.errors import EngineError, UsageError
from vega_image.windows.prepared import PreparedWindows, prepare_windows, windows_lock
from vega_image.windows.references import unsupported
from vega_image.windows.spec import Platform, WindowsTarget

# Each of these refuses by itself, before there is a tree.
FIRST = ("spec", "lock", "render")


def check_windows_target(
    call: Call, target: WindowsTarget, *, platform: Platform | None
) -> int:
    """Run all checks for one platform, or for every one that the spec can have.

    Raises UsageError CHECK_FAILED with the findings, one per line; EngineError TOOL_ABSENT,
    TOOL_TOO_OLD or COLLECTION_ABSENT when a check could not be run and the others found
    nothing.
    """
    factory = call.factory
    lock = windows_lock(factory, target)
    ran: dict[str, None] = dict.fromkeys(FIRST)
    for chosen in [platform] if platform else _possible(target):
        prepared = prepare_windows(factory, target, lock, platform=chosen)
        outcome = examine(prepared, playbooks=chosen == (platform or target.platform))
        refuse_findings(prepared, outcome)
        _refuse_unrun(prepared, outcome)
        ran |= dict.fromkeys(outcome.ran)
        call.console.say(f"{target.name} for {chosen}: no findings")
    value: Json = {"target": target.name, "checks": list(ran), "findings": []}
    call.console.result([f"{target.name}: {', '.join(ran)}: no findings"], value)
    return 0


def examine(prepared: PreparedWindows, *, playbooks: bool = True) -> Outcome:
    """Run the checks of a tree; its playbooks are the same on every platform."""
    checks = dict(tree_checks(prepared.files, platform=prepared.platform))
    if playbooks:
        shared = prepared.job.parts.shared
        checks[ANSIBLE] = partial(played, {path: prepared.files[path] for path in shared})
    return run_checks(checks)


def refuse_findings(prepared: PreparedWindows, outcome: Outcome) -> None:
    """Raise UsageError CHECK_FAILED when there are findings."""
    if not outcome.findings:
        return
    name, platform = prepared.target.name, prepared.platform
    lines = "\n".join(finding.text() for finding in outcome.findings)
    msg = f"{name} for {platform}: {len(outcome.findings)} findings\n{lines}"
    hint = f"vega-image render {name} --platform {platform} -o DIR shows the files"
    raise UsageError("CHECK_FAILED", msg, at=outcome.findings[0].path, hint=hint)


def _refuse_unrun(prepared: PreparedWindows, outcome: Outcome) -> None:
    if not outcome.not_run:
        return
    rows = [f"  {name}: {error.message}" for name, error in outcome.not_run.items()]
    head = f"{prepared.target.name}: {len(rows)} checks could not be run, so nothing is passed:"
    first = next(iter(outcome.not_run.values()))
    msg = "\n".join([head, *rows])
    raise EngineError(first.code, msg, hint=first.hint, at=first.at)


def _possible(target: WindowsTarget) -> list[Platform]:
    """Return the spec's own platform, and the others that its features go with."""
    others = [item for item in Platform if item is not target.platform]
    return [target.platform, *(item for item in others if not any(unsupported(target, item)))]


def played(files: Mapping[str, bytes]) -> list[Finding]:
    """Check the playbooks and the inventory of a tree, which want a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="vega-image-check-") as name:
        folder = Path(name) / "tree"
        write_tree(files, folder)
        return check_playbooks(folder)
