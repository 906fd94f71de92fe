"""The usual line of a find-db to its fallback, without making values of it: 2-D, NCHW, legacy.

What is in any way unusual gives None and goes the careful way, `fallback.fallback_items`. Both
ways give the same text; a test holds them together over the real file.
"""

from __future__ import annotations

import re

from vega_image.finddb.fallback import (
    GEMM_RATE,
    LEAST_MS,
    NAIVE,
    NAIVE_RATE,
    POINT,
    REST,
    STRIDED,
)
from vega_image.finddb.record import UNUSED, algorithm
from vega_image.finddb.workspace import COLUMNS, TRANSPOSED

_N = "([1-9][0-9]{0,17})"
_P = "(0|[1-9][0-9]{0,17})"
KEY = re.compile(
    f"{_N}-{_N}-{_N}-{_N}x{_N}-{_N}-{_N}-{_N}-{_N}-{_P}x{_P}-{_N}x{_N}-{_N}x{_N}"
    f"-0-NCHW-(FP32|FP16|BF16)-([FBW])(?:_g(?!1(?:_|$)){_N})?"
)
FIELDS = 5
SIZE = {"FP32": 4, "FP16": 2, "BF16": 2}
_GEMM = {direction: algorithm(direction, "GEMM") for direction in "FBW"}
_DIRECT = {direction: algorithm(direction, "Direct") for direction in "FBW"}

Recorded = dict[str, tuple[str, int, str]]


def usual(line: bytes, unless: frozenset[str]) -> tuple[str, tuple[str, ...], str, int] | None:
    """Return (key, recorded solvers, fallback as text, its items); None for any other line.

    A line that names a solver of `unless` is not usual either.
    """
    if not line.isascii() or b" " in line or b"\t" in line:
        return None
    key, _, value = line.decode("ascii").partition("=")
    match = KEY.fullmatch(key)
    if match is None or "=" in value:
        return None
    recorded = _recorded(value)
    if recorded is None or not unless.isdisjoint(recorded):
        return None
    text, count = _fallback(match, recorded)
    return key, tuple(recorded), text, count


def _recorded(value: str) -> Recorded | None:
    found: Recorded = {}
    for item in value.split(";"):
        fields = item.split(",")
        if len(fields) != FIELDS or fields[4] != UNUSED or not fields[3]:
            return None
        head, mark, solver = fields[0].partition(":")
        time, space = fields[1], fields[2]
        plain = time.replace(".", "", 1).isdecimal() and space.isdecimal()
        if not mark or not head or not solver or ":" in solver or solver in found:
            return None
        if not plain or len(space) > 18 or not time.strip("0."):  # noqa: PLR2004 - as the grammar
            return None
        found[solver] = (time, int(space), head)
    return found


def _fallback(match: re.Match[str], recorded: Recorded) -> tuple[str, int]:
    """Compute GEMM's name, workspace and order as `fallback` does for a Problem."""
    first, h1, w1, high, wide, last, h2, w2, batch, ph, pw, sh, sw = map(
        int, match.groups()[:13]
    )
    dtype, direction, groups = match[16], match[17], int(match[18] or 1)
    if direction == "F":
        x, y, places = first, last, h2 * w2
    else:
        x, y, places = last, first, h1 * w1
    window = high * wide
    name = REST[direction]
    if window == 1 and not ph and not pw:
        if sh == sw == 1:
            name = POINT[direction]
        elif sh == sw == 2:  # noqa: PLR2004 - the stride these kernels are for
            name = STRIDED.get(direction, name)
    need = 0
    if name in COLUMNS:
        need = x * window * places * SIZE[dtype]
    elif name in TRANSPOSED:
        need = batch * (x + y) * places * SIZE[dtype]
    macs = batch * y * places * (x // groups * window)
    gemm = (name, need, _GEMM[direction], macs / GEMM_RATE)
    naive = (NAIVE[direction], 0, _DIRECT[direction], macs / NAIVE_RATE)
    return _written((gemm, naive), recorded)


def _written(
    items: tuple[tuple[str, int, str, float], ...], recorded: Recorded
) -> tuple[str, int]:
    there = []
    rest = []
    for name, need, algo, nominal in items:
        known = recorded.get(name)
        if known is None:
            rest.append((name, need, algo, nominal))
        else:
            space = max(known[1], need)
            there.append((float(known[0]), f"{name}:{known[0]},{space},{algo}"))
    there.sort(key=lambda one: one[0])
    slowest = there[-1][0] if there else 0.0
    texts = [text for _, text in there]
    for name, need, algo, nominal in rest:
        slowest = max(nominal, LEAST_MS, 2 * slowest)
        texts.append(f"{name}:{slowest:g},{need},{algo}")
    return ";".join(texts), len(texts)
