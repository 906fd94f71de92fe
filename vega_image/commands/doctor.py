"""vega-image doctor: this host and its card as findings, before any image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from vega_image.digest import Json
from vega_image.hostcheck import HostProbe, check_host
from vega_image.selftest.encode import encode
from vega_image.selftest.facts import Facts
from vega_image.selftest.finding import Finding, in_order
from vega_image.selftest.findings import judge_facts, refused

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
