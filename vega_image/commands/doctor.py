"""vega-image doctor: this host and its card as findings, before any image."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from vega_image.clioptions import Call
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.hostcheck import HostProbe, check_host, gather
from vega_image.selftest.encode import encode
from vega_image.selftest.facts import Facts, read_facts
from vega_image.selftest.finding import Finding, in_order
from vega_image.selftest.findings import judge_facts, refused
from vega_image.sources.origin import Origin

HEADER = ("SEVERITY", "ID", "WHAT", "ACTION")
EXIT_BUILD_HOST = 5
EXIT_CARD = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was looked at and found; a part that was not looked at is None."""

    build_host: tuple[Finding, ...] | None
    facts: Facts | None
    card: tuple[Finding, ...] | None

    @property
    def exit_code(self) -> int:
        """0, or 7 for the card, or 5 for the build host; the card's refusal outranks."""
        if refused(self.card or ()):
            return EXIT_CARD
        return EXIT_BUILD_HOST if refused(self.build_host or ()) else 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the gravest first."""
        return in_order([*(self.card or ()), *(self.build_host or ())])

    def rows(self) -> list[list[str]]:
        """One row per finding, in the columns of HEADER."""
        return [
            [found.severity, _name(found), f"{found.title}; {found.detail}", found.action]
            for found in self.findings
        ]

    def summary(self) -> list[str]:
        """One line per part: whether it is fit, and the exit code it asks for."""
        return [
            *_verdict("card and host", self.card, EXIT_CARD),
            *_verdict("build host", self.build_host, EXIT_BUILD_HOST),
        ]

    def to_json(self) -> Json:
        """Encode for `--json`; `facts` is null when the card was left out."""
        return {
            "schema": 1,
            "exit": self.exit_code,
            "summary": self.summary(),
            "findings": [
                *_encoded("card", self.card or ()),
                *_encoded("build-host", self.build_host or ()),
            ],
            "facts": self.facts.to_json() if self.facts else None,
        }


def doctor(*, probe: HostProbe | None, facts: Facts | None) -> Report:
    """Judge what was gathered: a build host, a workstation, or both."""
    return Report(
        build_host=None if probe is None else check_host(probe),
        facts=facts,
        card=None if facts is None else judge_facts(facts),
    )


def _name(found: Finding) -> str:
    return f"{found.code} ({', '.join(found.hazards)})" if found.hazards else found.code


def _verdict(part: str, found: tuple[Finding, ...] | None, code: int) -> list[str]:
    if found is None:
        return []
    codes = [finding.code for finding in found if finding.severity == "refuse"]
    if codes:
        return [f"{part}: refused (exit {code}): {', '.join(dict.fromkeys(codes))}"]
    warnings = sum(finding.severity == "warn" for finding in found)
    return [f"{part}: ok" + (f", {warnings} warnings" if warnings else "")]


def _encoded(part: str, found: tuple[Finding, ...]) -> list[Json]:
    rows = (cast("Mapping[str, Json]", encode(finding)) for finding in found)
    return [{"part": part, **row} for row in rows]


MIN_WIDTH = 60


def checkup(call: Call, *, sysroot: Path | None, build_host_only: bool) -> int:
    """Judge this host, or a recorded one under `sysroot`; returns 0, 5 or 7."""
    settings = call.settings
    if sysroot is not None and not (sysroot / "sys").is_dir():
        msg = f"{sysroot}: not the root of a machine (it has no folder sys)"
        hint = "vega-image doctor --sysroot DIR, where DIR/sys was recorded"
        raise UsageError("NO_SYSROOT", msg, at=str(sysroot), hint=hint)
    origin = Origin(
        mirror=settings.mirror, keyring=settings.keyring, snapshots=settings.snapshots
    )
    probe = gather(settings.store, origin, settings.environ) if sysroot is None else None
    facts = None
    if not build_host_only:
        environ = settings.environ if sysroot is None else {}
        gids = {*os.getgroups(), os.getegid()}
        root = sysroot or Path("/")
        facts = read_facts(root, environ, uid=os.geteuid(), gids=gids)
    report = doctor(probe=probe, facts=facts)
    call.console.result(list(_lines(report)), report.to_json())
    return report.exit_code


def _lines(report: Report) -> Iterator[str]:
    """One block per finding: severity and id first, then what, then what to do."""
    width = max(MIN_WIDTH, min(shutil.get_terminal_size().columns, 96)) - 4
    for severity, name, what, action in report.rows():
        yield f"{severity.upper():6}  {name}"
        yield from (f"    {line}" for line in textwrap.wrap(what, width))
        if severity != "info":
            todo = textwrap.wrap(f"do: {action}", width, subsequent_indent="    ")
            yield from (f"    {line}" for line in todo)
    yield ""
    yield from report.summary()
