"""From facts to what a person should know and do. Pure: same facts, same findings."""

from __future__ import annotations

from vega_image.selftest.facts import Facts
from vega_image.selftest.finding import Finding, in_order
from vega_image.selftest.judge_card import judge_card
from vega_image.selftest.judge_host import judge_host
from vega_image.selftest.judge_presence import judge_presence

__all__ = ["Finding", "judge_facts", "refused"]


def judge_facts(facts: Facts) -> tuple[Finding, ...]:
    """Return every finding, the gravest first; `refuse` means exit 7."""
    found = [*judge_presence(facts), *judge_host(facts)]
    for card in facts.cards:
        found += judge_card(card)
    return in_order(found)


def refused(found: tuple[Finding, ...]) -> bool:
    """Whether any finding forbids computing here."""
    return any(finding.severity == "refuse" for finding in found)
