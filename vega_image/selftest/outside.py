"""A run of an external suite: what it may be asked, and what its results say of the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from vega_image.selftest.arguments import Wish
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.adapter import FAULTS, Asked
from vega_image.selftest.external.ggml.place import OpenPlace, Wanted, device_name
from vega_image.selftest.external.ggml.program import cases
from vega_image.selftest.external.ggml.results import judge_ggml
from vega_image.selftest.external.ggml.upstream import case_in
from vega_image.selftest.external.protocol import parse_line
from vega_image.selftest.facts import read_facts
from vega_image.selftest.finding import Finding
from vega_image.selftest.identity import Known, card_known, not_opened
from vega_image.selftest.result import Result

GGML = "ggml"
NOT_OURS = ("only", "budget", "soak", "record")
SHOWN = 3


@dataclass(frozen=True)
class Outcome:
    """What a run came to: its results, the device as it is known by then, what to say of it."""

    known: Known
    results: tuple[Result, ...]
    device: str = ""
    found: tuple[Finding, ...] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)


def known_before(wish: Wish) -> Known:
    """Check what an external suite is asked, and read about a card without touching it.

    Vulkan may turn out to be a software renderer, so it is no card before it has spoken.

    Raises SelftestError: usage (2), or a machine that must not compute (7).
    """
    device_name(wish.device)
    asked_of(wish)
    if not wish.device.startswith("hip"):
        return Known("cpu", {}, not_opened)
    facts = read_facts(Path("/"), os.environ, uid=os.getuid(), gids=os.getgroups())
    return card_known(facts, wish.device)


def asked_of(wish: Wish) -> Asked:
    """Return what vega-ggml is asked; raises SelftestError for what it has no word for."""
    for name in NOT_OURS:
        if getattr(wish, name) not in {None, ()}:
            _refuse("USAGE", f"--suite ggml has no such choice: {name}", "--case, --plant")
    if wish.sweeps:
        _refuse("USAGE", "--suite ggml has no solvers to choose", "--suite own")
    if wish.plant and wish.plant not in FAULTS:
        _refuse("UNKNOWN_FAULT", f"no such fault: {wish.plant}", f"one of {', '.join(FAULTS)}")
    return Asked(wish.level, tuple(_chosen(wish)), wish.plant)


def dry_lines(wish: Wish) -> tuple[str, ...]:
    """List the cases that would run."""
    return tuple(row.id for row in asked_of(wish).rows)


def judge_outside(
    wish: Wish, known: Known, open_place: OpenPlace, heard: Callable[[str, bool], None]
) -> Outcome:
    """Run the suite; `heard` gets each case and whether it is wrong, while it runs."""
    wanted = Wanted(wish.target, wish.device, wish.timeout)

    def told(text: str) -> None:
        line = parse_line(text) or case_in(text, "")
        if line is not None:
            heard(line.case, line.verdict.value in {"MISMATCH", "NOT_FINITE"})

    judged = judge_ggml(asked_of(wish), wanted, open_place, told)
    # What the card's files say of it is more than what its library says.
    identity = {**judged.identity, **known.identity}
    return Outcome(
        known=replace(known, source=judged.source, identity=identity),
        results=judged.results,
        device=judged.name,
        flags={"target": judged.target, "software": judged.software},
        digests=judged.digests,
    )


def _chosen(wish: Wish) -> list[str]:
    known = [row.id for row in cases("r4")]
    found: list[str] = []
    for name in wish.cases:
        fits = [case for case in known if fnmatchcase(case, name)]
        if not fits:
            close = [case for case in known if case.startswith(name[:4])] or known
            _refuse("UNKNOWN_CASE", f"no such case: {name}", ", ".join(close[:SHOWN]))
        found += fits
    return found


def _refuse(code: str, text: str, hint: str) -> None:
    raise SelftestError(code, text, hint=hint)
