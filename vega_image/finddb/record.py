"""A record of the find-db: a problem's key and the solvers MIOpen measured for it.

An item has one of two written forms: 1.0 `ALGO:SOLVER,ms,bytes,ALGO_or_cache_key,<unused>`
and 2.0 `SOLVER:ms,bytes,ALGO` (MIOpen, src/db_record.cpp). An item that was read keeps its
text, so that it can be written again byte for byte.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from vega_image.finddb.problem import FormError, Problem, parse_key

UNUSED = "<unused>"
AS_READ, LEGACY, CURRENT = "as read", "1.0", "2.0"
FORMS = (AS_READ, LEGACY, CURRENT)
PREFIX = "miopenConvolution"
STEMS = {"F": "Fwd", "B": "BwdData", "W": "BwdWeights"}
FAMILIES = ("GEMM", "Direct", "FFT", "Winograd", "ImplicitGEMM")

_NAME = "[^,;:=\\s]+"
_TIME = "(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_BYTES = "[0-9]{1,18}"
LEGACY_ITEM = re.compile(
    f"(?P<algorithm>{_NAME}):(?P<solver>{_NAME}),(?P<time>{_TIME}),(?P<workspace>{_BYTES})"
    f",(?P<fourth>[^,;=\\s]+),{UNUSED}"
)
CURRENT_ITEM = re.compile(
    f"(?P<solver>{_NAME}):(?P<time>{_TIME}),(?P<workspace>{_BYTES}),(?P<algorithm>{_NAME})"
)


def algorithm(direction: str, family: str) -> str:
    """Return MIOpen's name of a family of algorithms in a direction.

    >>> algorithm("W", "GEMM")
    'miopenConvolutionBwdWeightsAlgoGEMM'
    """
    return f"{PREFIX}{STEMS[direction]}Algo{family}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One solver of a record. `time` in ms, `workspace` in bytes.

    `text` is how it was read ("" for an item made here); it takes no part in comparisons.
    """

    solver: str
    time: float
    workspace: int
    algorithm: str
    text: str = field(default="", compare=False)

    @property
    def form(self) -> str:
        """Return the form of the text, 2.0 for an item made here."""
        return LEGACY if self.text.startswith(f"{self.algorithm}:{self.solver},") else CURRENT

    def written(self, form: str = AS_READ) -> str:
        """Return the item as text in a form; its time keeps the digits it was read with."""
        if self.text and form in (AS_READ, self.form):
            return self.text
        time = self._time_text()
        if form == LEGACY:
            rest = f"{time},{self.workspace},{self.algorithm},{UNUSED}"
            return f"{self.algorithm}:{self.solver},{rest}"
        return f"{self.solver}:{time},{self.workspace},{self.algorithm}"

    def _time_text(self) -> str:
        if not self.text:
            return f"{self.time:g}"
        fields = self.text.split(",")
        return fields[1] if self.form == LEGACY else fields[0].rpartition(":")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A key and its items, in the order written; `line` (from 1) is 0 for one made here."""

    key: str
    items: tuple[Item, ...]
    line: int = field(default=0, compare=False)

    @property
    def problem(self) -> Problem:
        """Return the problem; raises FormError where the key is none."""
        return parse_key(self.key)

    @property
    def fastest(self) -> Item:
        """Return the item MIOpen prefers: the least time, the first of equals."""
        return min(self.items, key=lambda item: item.time)

    def written(self, form: str = AS_READ) -> str:
        """Return the line, without its end."""
        return f"{self.key}={';'.join(item.written(form) for item in self.items)}"


def parse_item(text: str) -> Item:
    """Read one item of either form.

    Raises FormError; nothing is guessed where a field is missing or no number.
    """
    match = LEGACY_ITEM.fullmatch(text) or CURRENT_ITEM.fullmatch(text)
    if match is None:
        raise _form_error(text)
    time = float(match["time"])
    if not math.isfinite(time):
        msg = "the time is beyond any number"
        raise FormError(msg, match.start("time") + 1)
    return Item(
        solver=match["solver"],
        time=time,
        workspace=int(match["workspace"]),
        algorithm=match["algorithm"],
        text=text,
    )


def _form_error(text: str) -> FormError:
    """Say how far the text is an item of the form it begins as."""
    legacy = text.partition(":")[0].startswith(PREFIX)
    at = 0
    for wanted, pattern in _LEGACY_PARTS if legacy else _CURRENT_PARTS:
        match = re.compile(pattern).match(text, at)
        if match is None:
            return FormError(f"expected {wanted}", at + 1)
        at = match.end()
    return FormError("expected the end of the item", at + 1)


_TAIL = (
    ("the time in ms", f",{_TIME}(?=,|$)"),
    ("the workspace in bytes", f",{_BYTES}(?=,|$)"),
)
_LEGACY_PARTS = (
    ("an algorithm, as in ALGO:SOLVER", f"{_NAME}(?=:)"),
    ("a solver after ALGO:", f":{_NAME}(?=,|$)"),
    *_TAIL,
    ("the algorithm or cache key", ",[^,;=\\s]+(?=,|$)"),
    (f"a last field {UNUSED}", f",{UNUSED}"),
)
_CURRENT_PARTS = (
    ("a solver and ':'", f"{_NAME}:"),
    ("the time in ms", f"{_TIME}(?=,|$)"),
    _TAIL[1],
    ("the algorithm", f",{_NAME}"),
)
