"""Reads the console output of llama.cpp's test-backend-ops.

Its criterion is one error norm over a whole tensor, which a zeroed tile can pass, so what it
calls OK is UPSTREAM_OK and never MATCH. It also prints OK when the back end it was asked for
does not exist: a result needs `Backend NAME: OK` and at least one test that passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vega_image.selftest.external.protocol import Ended, Line
from vega_image.selftest.verdict import Verdict

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
BACKEND = re.compile(r"Backend [0-9]+/[0-9]+: (\S+)")
CASE = re.compile(r"  (?:\[[^\]]*\].*? )?([A-Z0-9_]+\(.*\)): (.*)")
COUNT = re.compile(r"  ([0-9]+)/([0-9]+) tests passed")
SUMMARY = re.compile(r"  Backend (\S+): (OK|FAIL)")


@dataclass(frozen=True)
class Upstream:
    """What was said of one back end. `confirmed`: its own summary says OK, with tests run."""

    lines: tuple[Line, ...]
    confirmed: bool
    passed: int
    total: int


def read_upstream(ended: Ended, backend: str) -> Upstream:
    """Judge a run of `test-backend-ops test -b BACKEND`; no device found is UNPROVEN."""
    section = list(_section(COLOUR.sub("", ended.stdout), backend))
    lines = tuple(line for text in section if (line := case_in(text, backend)) is not None)
    counts = [match for text in section if (match := COUNT.fullmatch(text))]
    passed, total = (int(counts[-1].group(i)) for i in (1, 2)) if counts else (0, 0)
    ok = any(
        (m := SUMMARY.fullmatch(text)) and m.groups() == (backend, "OK") for text in section
    )
    agreed = passed == total == sum(line.verdict is Verdict.UPSTREAM_OK for line in lines)
    confirmed = ok and agreed and passed > 0 and ended.code == 0 and not ended.timed_out
    extra = () if confirmed else (_doubt(ended, backend, found=bool(section)),)
    if any(line.verdict is Verdict.MISMATCH for line in lines) and not ended.timed_out:
        extra = ()
    return Upstream((*lines, *extra), confirmed, passed, total)


def _section(text: str, backend: str) -> Iterator[str]:
    inside = False
    for raw in text.split("\n"):
        line = raw.rstrip()
        header = BACKEND.fullmatch(line)
        if header:
            inside = header.group(1) == backend
        elif inside:
            yield line


def case_in(text: str, backend: str) -> Line | None:
    """Read one line of the console output, or None if it tells of no case."""
    match = CASE.fullmatch(COLOUR.sub("", text).rstrip())
    if not match:
        return None
    case, said = f"upstream:{match.group(1)}", match.group(2)
    if said == "OK":
        return Line(case, Verdict.UPSTREAM_OK, device=backend)
    if said.startswith("not supported"):
        return Line(case, Verdict.UNSUPPORTED, device=backend)
    verdict = Verdict.NOT_FINITE if "NaN" in text or "inf" in said else Verdict.MISMATCH
    return Line(case, verdict, device=backend, detail=said)


def _doubt(ended: Ended, backend: str, *, found: bool) -> Line:
    if ended.timed_out:
        return Line("upstream", Verdict.TIMED_OUT, device=backend)
    if ended.code < 0:
        return Line("upstream", Verdict.CRASHED, device=backend, detail=f"signal {-ended.code}")
    why = "no test passed" if found else f"no back end {backend}, though it may say OK"
    return Line("upstream", Verdict.UNPROVEN, device=backend, detail=why)
