"""Write docs/windows.md's table: `python -m vega_image.commands.windows.claimsdoc FILE`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vega_image.checks import ansible
from vega_image.checks.finding import Finding
from vega_image.checks.planted import ANSIBLE, refusing
from vega_image.checks.windows import CHECK_RULES
from vega_image.commands.windows.check import examine, played, refuse_findings
from vega_image.errors import UsageError, VegaError
from vega_image.factory import Factory
from vega_image.selftest.out import show
from vega_image.store import write_atomic
from vega_image.windows.claims import Claims, Seen, claims, markdown, rows
from vega_image.windows.prepared import PreparedWindows, prepare_windows, windows_lock
from vega_image.windows.spec import Platform, WindowsTarget

TARGET: Final = "windows-ltsc"
BEGIN: Final = (
    "<!-- Made by `python -m vega_image.commands.windows.claimsdoc docs/windows.md`: "
    "do not edit. -->"
)
END: Final = "<!-- The end of what was made. -->"
_BY: Mapping[str, str] = {
    "powershell": "tree-sitter and our own rules",
    "packer": "packer 1.6.6 or newer and our own rules",
    ANSIBLE: "ansible-playbook, ansible-lint, the collections' documentation, our own rules",
}


def written(seen: Seen, table: Claims) -> str:
    """Return what stands between the marks; raises UsageError CLAIMS_UNFIT."""
    return f"{BEGIN}\n\n{markdown(rows(seen, table))}\n{_legend()}\n{END}"


def see(factory: Factory) -> Seen:
    """Render every platform and try the checks.

    Raises UsageError CHECK_FAILED; EngineError where a check cannot be run: what was not looked
    at must not stand in the table as looked at.
    """
    target = factory.spec(TARGET)
    assert isinstance(target, WindowsTarget)
    lock = windows_lock(factory, target)
    trees = {
        platform: prepare_windows(factory, target, lock, platform=platform)
        for platform in [target.platform, *(p for p in Platform if p is not target.platform)]
    }
    held: dict[str, set[str]] = {}
    for prepared in trees.values():
        # What a check looks at depends on a file's name and kind, which are the same on each.
        new = [path for path in prepared.files if path not in held]
        if new:
            held |= {
                path: found for path, found in _tried(prepared, new).items() if path in new
            }
    kinds = {name: factory.spec(name).kind for name in factory.names()}
    return Seen(trees, held, tuple(name for name, kind in kinds.items() if kind == "wsl"))


def _tried(prepared: PreparedWindows, new: list[str]) -> dict[str, set[str]]:
    shared = [path for path in prepared.job.parts.shared if path in new]
    outcome = examine(prepared, playbooks=bool(shared))
    refuse_findings(prepared, outcome)
    for error in outcome.not_run.values():
        raise error

    def play(files: Mapping[str, bytes]) -> list[Finding]:
        return played({path: files[path] for path in shared}) if shared else []

    return refusing(prepared.files, platform=prepared.platform, play=play, look_for=new)


def _legend() -> str:
    lines = ["| check | rules | by |", "| --- | --- | --- |"]
    for name, rules in {**CHECK_RULES, ANSIBLE: ansible.RULES}.items():
        ids = sorted(rules)
        span = f"{ids[0]} to {ids[-1]}" if name != ANSIBLE else "`ansible-...`"
        lines.append(f"| {name} | {len(ids)}: {span} | {_BY.get(name, 'our own rules')} |")
    return "\n".join(lines) + "\n"


def replaced(page: str, made: str) -> str:
    """Return a page with other text between the marks; raises UsageError NO_MARKS."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        msg = "the page lacks the two marks between which the table goes"
        raise UsageError("NO_MARKS", msg, hint=f"put them in: {BEGIN} and {END}")
    return f"{before}{made}{after}"


def main(path: Path) -> int:
    """Write the table into a page; says what is wrong and returns the exit code of it."""
    try:
        page = path.read_text(encoding="utf-8")
        replaced(page, "")
        seen = see(Factory.find(None, cwd=Path.cwd()))
        made = replaced(page, written(seen, claims()))
    except VegaError as error:
        show(f"{error.code}: {error.message}")
        return error.exit_code
    write_atomic(path, made.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
