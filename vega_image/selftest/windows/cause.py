"""One reason to hold a Windows machine out of service, and the table of their codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vega_image.selftest.gate import Reason, State

CODES: Mapping[str, str] = {
    "PROVEN": "the card computed right numbers, and nothing has changed since",
    "RUNNING": "a self-test is running",
    "CARD_ABSENT": "no accepted card on the PCI bus",
    "OTHER_CARD": "another Vega 20 card than the image is for",
    "SEVERAL_CARDS": "more than one accepted card",
    "CARD_PROBLEM": "Plug and Play reports a problem with the card",
    "DRIVER_MISSING": "the card has no AMD driver",
    "DRIVER_BRANCH": "the driver is not of the branch that knows the card",
    "VC_RUNTIME_MISSING": "a file of the Visual C++ runtime is missing",
    "VC_RUNTIME_OLD": "the Visual C++ runtime is older than the compiler used",
    "DLL_MISSING": "a HIP library is missing",
    "DLL_SHADOWED": "Windows loads another copy of a HIP library than the image's",
    "HIP_SDK": "HIP comes from an installed HIP SDK",
    "HIP_PAL_GAP": "PCI shows the card, HIP does not: its PAL back end lists no gfx9 part",
    "HIP_FAILED": "hipInfo failed in another way",
    "WRONG_ARCH": "HIP calls the card something else than gfx906",
    "XNACK_ON": "HIP reports xnack+, for which no code object was made",
    "FACTS_UNREADABLE": "something the gate needs could not be read",
    "FACTS_OLD": "what was gathered is too old, or from the future",
    "TDR_RESET": "Windows reset the display driver during or after the proof",
    "WRONG_NUMBERS": "the card computed wrong numbers",
    "CARD_LOST": "the run ended because the card or the host failed",
    "UNPROVEN": "nothing has proven this card yet, or not enough",
    "STALE": "card, driver, DLLs, Windows, image, find-db or suite changed",
    "STOPPED": "a run began and never finished",
    "FUTURE_DATED": "the record comes from the future",
    "RECORD_DAMAGED": "the record is no record",
    "REPORT_UNFIT": "the report is not one of the run that began",
}


@dataclass(frozen=True)
class Cause:
    """Why not, with what was seen and the next thing to do."""

    code: str
    detail: str
    hint: str
    state: State = State.FAIL
    reason: Reason = Reason.HOST


def unread(why: str) -> Cause:
    """Say that a fact is missing; `why` names its file."""
    return Cause(
        "FACTS_UNREADABLE",
        why,
        "run gather-facts.ps1 as SYSTEM or Administrator again and read its log",
        State.PENDING,
        Reason.KEY_UNREADABLE,
    )
