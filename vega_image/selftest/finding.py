"""One thing worth saying about a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["refuse", "warn", "info"]
ORDER: tuple[Severity, ...] = ("refuse", "warn", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`code` is UPPER_SNAKE and never changes its meaning; `hazards` are catalogue ids.

    `action` is the next thing a person types or does; `refuse` means: do not compute here.
    """

    code: str
    severity: Severity
    title: str
    detail: str
    action: str
    hazards: tuple[str, ...] = ()


def in_order(found: list[Finding]) -> tuple[Finding, ...]:
    """Put the gravest first, otherwise keep the order."""
    return tuple(sorted(found, key=lambda finding: ORDER.index(finding.severity)))
