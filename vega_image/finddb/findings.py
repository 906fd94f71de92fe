"""What can be wrong in a find-db: a code for each, how bad it is, and what MIOpen makes of it.

The consequences were measured with libMIOpen 7.2.4 (immediate mode, no fallback).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)

_SKIPPED = "MIOpen logs an error and skips the line: a miss"
_MISS = "MIOpen logs an error: a miss"
_THROWS = "MIOpen throws, and the whole call fails (status 5), the record's good items with it"
_SORTS_FIRST = "MIOpen reads 0 silently and prefers the item to all others"
_PASSED_OVER = "MIOpen passes the item over, but counts it as a solution"
_COUNTED_NOT_RETURNED = (
    "MIOpen counts solutions and returns none; with its fallback on, a heuristic of another "
    "chip chooses silently"
)
_NEVER_FOUND = "MIOpen looks up only keys as it writes them: the record is never found"

# By code: how bad it is, and the consequence.
KINDS = MappingProxyType(
    {
        "EMPTY_FILE": (ERROR, "every problem is a miss, and MIOpen reports no error"),
        "BYTE_ORDER_MARK": (ERROR, "MIOpen takes it into the key: the first record is lost"),
        "CRLF": (NOTE, "harmless: MIOpen's fields end at white space"),
        "NO_FINAL_NEWLINE": (WARNING, "MIOpen reads the line; was the file cut off?"),
        "BAD_BYTE": (ERROR, "MIOpen compares bytes: a key or a name with it is never found"),
        "NO_EQUALS": (ERROR, _SKIPPED),
        "NO_KEY": (ERROR, _SKIPPED),
        "BAD_KEY": (ERROR, _NEVER_FOUND),
        "IMPOSSIBLE_SIZES": (WARNING, "a problem nobody has is never looked up"),
        "DUPLICATE_KEY": (ERROR, "MIOpen takes the first of them and says nothing"),
        "EMPTY_VALUE": (ERROR, _MISS),
        "ITEM_WITHOUT_COLON": (ERROR, "MIOpen logs an error and skips the item"),
        "EMPTY_RECORD": (ERROR, "no item is left: a miss"),
        "LEGACY_ITEM_SHORT": (ERROR, _MISS),
        "CURRENT_ITEM_SHORT": (ERROR, _THROWS),
        "EXTRA_FIELD": (WARNING, "MIOpen does not look at it"),
        "ODD_FIELD": (WARNING, "MIOpen does not look at it"),
        "WHITE_SPACE": (WARNING, "MIOpen's fields end there: the rest of the field is dropped"),
        "TIME_NOT_A_NUMBER": (ERROR, _SORTS_FIRST),
        "TIME_NOT_POSITIVE": (ERROR, "MIOpen prefers the item to all that were measured"),
        "WORKSPACE_NOT_A_NUMBER": (ERROR, "MIOpen reads 0: the caller allocates nothing"),
        "WORKSPACE_UNDERSTATED": (ERROR, "MIOpen hands it on: the caller allocates too little"),
        "UNKNOWN_ALGORITHM": (ERROR, _THROWS),
        "WRONG_DIRECTION_ALGORITHM": (ERROR, _THROWS),
        "FFT_FOR_WEIGHTS": (ERROR, _THROWS),
        "WRONG_FAMILY": (ERROR, "MIOpen believes it: one algorithm is offered for another"),
        "ALGORITHMS_DIFFER": (ERROR, "MIOpen takes the first and does not compare"),
        "UNKNOWN_SOLVER": (ERROR, _PASSED_OVER),
        "WRONG_DIRECTION_SOLVER": (ERROR, _PASSED_OVER),
        "COMPILED_OUT_SOLVER": (ERROR, _PASSED_OVER),
        "INELIGIBLE_SOLVER": (ERROR, _PASSED_OVER),
        "NO_USABLE_SOLVER": (
            ERROR,
            _COUNTED_NOT_RETURNED,
        ),
        "DUPLICATE_SOLVER": (ERROR, "MIOpen logs an error and takes the first of them"),
        "TOO_MANY_ITEMS": (ERROR, "PyTorch stops in immediate mode (at most 10 solutions)"),
        "USER_RECORD": (WARNING, "it replaces the system's record, it is not merged with it"),
        "USER_HIDES_SYSTEM": (ERROR, "the system's record is hidden: no solution at all"),
        "USER_UNREADABLE": (WARNING, "MIOpen logs an error and takes the system's record"),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong; line and column count from 1, in bytes."""

    line: int
    column: int
    code: str
    detail: str

    @property
    def severity(self) -> str:
        """Return error, warning or note."""
        return KINDS[self.code][0]

    @property
    def message(self) -> str:
        """Say what it is and what MIOpen makes of it."""
        return f"{self.detail}; {KINDS[self.code][1]}"
