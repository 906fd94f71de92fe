"""Which card a container gets: the first gfx906 this host lets us compute on. Pure."""

from __future__ import annotations

from pathlib import Path

from vega_image.errors import HostError
from vega_image.selftest.facts import Card, Facts
from vega_image.selftest.finding import Finding
from vega_image.selftest.findings import judge_facts
from vega_image.selftest.judge_card import judge_card
from vega_image.serving.sandbox import GpuChoice

CPU_HINT = "; or --cpu to go on without a GPU (slow)"


def choose_gpu(facts: Facts, *, slot: str | None = None) -> GpuChoice:
    """Return the card at PCI address `slot`, or the first one without a refusal.

    Raises HostError with the code of what is wrong: NO_GPU, WRONG_GPU, VRAM_TOO_SMALL,
    NO_PCIE_ATOMICS and the others of selftest/judge_*.py; NO_SUCH_CARD for an unknown slot.
    """
    refused = [one for one in judge_facts(facts) if one.severity == "refuse"]
    if not facts.cards:
        raise _error(refused[0]) if refused else _absent()
    cards = [card for card in facts.cards if slot in {None, card.pci_slot}]
    if not cards:
        known = ", ".join(str(card.pci_slot) for card in facts.cards)
        msg = f"no gfx906 card at {slot}; there is {known}"
        raise HostError("NO_SUCH_CARD", msg, hint="vega-image doctor")
    host = _of_the_host(refused, facts)
    if host:
        raise _error(host[0])
    usable = [card for card in cards if not _refusals(card)]
    if not usable:
        raise _error(_refusals(cards[0])[0])
    return _choice(usable[0], facts)


def _of_the_host(refused: list[Finding], facts: Facts) -> list[Finding]:
    cards = [one for card in facts.cards for one in _refusals(card)]
    return [one for one in refused if one not in cards and not _harmless(one.code)]


def _harmless(code: str) -> bool:
    # The container gets the nodes' groups by number and none of our environment.
    return code == "FOREIGN_VARIABLE" or code.endswith("_DENIED")


def _refusals(card: Card) -> list[Finding]:
    return [one for one in judge_card(card) if one.severity == "refuse"]


def _choice(card: Card, facts: Facts) -> GpuChoice:
    groups = {gid for gid in (facts.kfd.gid, card.render.gid) if isinstance(gid, int)}
    slot = card.pci_slot if isinstance(card.pci_slot, str) else None
    return GpuChoice(
        name=f"{card.gfx} at {slot or f'KFD node {card.node}'}",
        render_node=Path(card.render.path),
        groups=tuple(sorted(groups - {0})),
        pci_address=slot,
    )


def _error(finding: Finding) -> HostError:
    message = f"{finding.title} ({finding.detail})"
    return HostError(finding.code, message, hint=finding.action + CPU_HINT)


def _absent() -> HostError:
    return HostError("NO_GPU", "no gfx906 card here", hint="vega-image doctor" + CPU_HINT)
