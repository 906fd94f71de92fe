"""The options of `selftest gate`, and what they ask for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from vega_image.selftest.case import LEVELS
from vega_image.selftest.errors import SelftestError

SPAN = 4 * 3600.0


@dataclass(frozen=True)
class GateWish:
    """What `gate` was asked. `span` is how many seconds a run that begins may take."""

    facts: Path
    state: Path
    level: str
    begin: bool
    again: bool
    finish: bool
    report: Path | None
    span: float
    recorded: bool
    json: bool


def add_options(word: argparse.ArgumentParser) -> None:
    """Describe the word's options."""
    add = word.add_argument
    add("--facts", type=Path, required=True, metavar="DIR", help="what gather-facts.ps1 wrote")
    add("--state", type=Path, required=True, metavar="FILE", help="the gate's record")
    add("--level", choices=LEVELS, default="r2", help="the least level that will do")
    act = word.add_mutually_exclusive_group()
    act.add_argument("--begin", action="store_true", help="write that a run begins")
    act.add_argument("--finish", action="store_true", help="write how the run ended")
    add("--report", type=Path, metavar="FILE", help="with --finish: report.json of the run")
    add("--again", action="store_true", help="with --begin: although wrong numbers were seen")
    add("--span", type=_span, default=SPAN, metavar="SECONDS", help="longest run; 4 hours")
    add("--recorded", action="store_true", help="facts of any age; told in the verdict")


def parse_gate(options: argparse.Namespace) -> GateWish:
    """Turn options into a wish. Raises SelftestError (2)."""
    if options.finish != (options.report is not None):
        raise SelftestError(
            "USAGE", "--finish and --report FILE go together", hint="selftest gate --help"
        )
    if options.again and not options.begin:
        raise SelftestError("USAGE", "--again is for --begin", hint="selftest gate --help")
    if options.recorded and (options.begin or options.finish):
        raise SelftestError(
            "USAGE",
            "a run begins and ends on facts of now, so --recorded only asks",
            hint="selftest gate --facts DIR --state FILE --recorded",
        )
    names = GateWish.__dataclass_fields__
    return GateWish(**{name: getattr(options, name) for name in names})


def _span(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:  # noqa: PLR2004 - eleven days
        raise ValueError(text)
    return value
