"""The right answers of the exact cases but the products and attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vega_image.selftest.external.ggml.table import Row
from vega_image.selftest.suites.ggml.products import BLOCK, product, product_by_expert
from vega_image.selftest.suites.ggml.recall import recall
from vega_image.selftest.suites.ggml.streams import Numbers, integers, shuffled, words

ROW_LIMITS = {"Q4_0": 7, "Q8_0": 127}


def answer(row: Row) -> Numbers | None:
    """Return the elements that must come out, or None for a case with a bound."""
    if row.profile == "REAL":
        return None
    return np.asarray(MAKERS[row.op](row), dtype=np.float64).reshape(-1) + 0.0


def _whole(row: Row, slot: str, limit: int) -> Numbers:
    shape = (row.c, row.b, row.a)
    return integers(row.id, slot, row.a * row.b * row.c, limit).reshape(shape)


def _pair(row: Row) -> Numbers:
    a = _whole(row, "a", 1000)
    b = integers(row.id, "b", row.a, 1000) if row.d else _whole(row, "b", 1000)
    return {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}[row.op](a, b)


def _copied(row: Row) -> Numbers:
    if row.type == "F16":
        return integers(row.id, "a", row.a * row.b, 60000).astype(np.float16).astype(np.float64)
    limit, peak = {"Q8_0": (126, 127), "Q4_0": (7, 8)}[row.type]
    values = integers(row.id, "a", row.a * row.b, limit)
    word = words(row.id, "peak", values.size // BLOCK)
    places = np.arange(word.size) * BLOCK + (word % np.uint64(BLOCK)).astype(np.int64)
    up = (word >> np.uint64(63)).astype(bool) & (row.type == "Q8_0")
    values[places] = np.where(up, peak, -peak)
    return values


def _table(row: Row, slot: str, shape: tuple[int, ...]) -> Numbers:
    unit = 0.25 if row.type in ROW_LIMITS else 1.0
    limit = ROW_LIMITS.get(row.type, 2048)
    return unit * integers(row.id, slot, int(np.prod(shape)), limit).reshape(shape)


def _get_rows(row: Row) -> Numbers:
    picks = (words(row.id, "ids", row.c) % np.uint64(row.b)).astype(np.int64)
    return np.asarray(_table(row, "a", (row.b, row.a))[picks], dtype=np.float64)


def _set_rows(row: Row) -> Numbers:
    table = _table(row, "a", (row.b, row.a))
    source = integers(row.id, "b", row.c * row.a, 126)
    source[5::BLOCK] = 127
    places = shuffled(row.id, "ids", row.b, row.c)[: row.c].astype(np.int64)
    table[places] = source.reshape(row.c, row.a)
    return table


def _concat(row: Row) -> Numbers:
    first = [row.c, row.b, row.a]
    second = list(first)
    second[2 - row.d] += 3
    parts = _table(row, "a", tuple(first)), _table(row, "b", tuple(second))
    return np.asarray(np.concatenate(parts, axis=2 - row.d), dtype=np.float64)


def _ordered(row: Row) -> Numbers:
    lines = [shuffled(row.id, f"r{j:02d}", row.a, row.a) for j in range(row.b)]
    table = np.stack(lines)
    if row.op == "ARGMAX":
        made: Numbers = np.argmax(table, axis=1).astype(np.float64)
        return made
    return np.argsort(-table if row.d else table, axis=1).astype(np.float64)


def _soft_max(row: Row) -> Numbers:
    lines = np.zeros((row.b, row.a))
    for line, choice in zip(lines, words(row.id, "mask", row.b).tolist(), strict=True):
        kept = 1 << min(choice % 6, row.a.bit_length() - 1)
        stride = row.a // kept
        line[(choice >> 32) % stride :: stride][:kept] = 1 / kept
    return lines


def _saturated(row: Row, slot: str) -> Numbers:
    step = integers(row.id, slot, row.a * row.b, 7)
    made: Numbers = 32 * step + 96 * np.sign(step)
    return made


def _activated(row: Row) -> Numbers:
    out = np.maximum(_saturated(row, "a"), 0)
    return out * _saturated(row, "b") if row.op in {"SWIGLU", "GEGLU"} else out


MAKERS: dict[str, Callable[[Row], Numbers]] = {
    "MUL_MAT": product,
    "MUL_MAT_ID": product_by_expert,
    **dict.fromkeys(("ADD", "SUB", "MUL"), _pair),
    "SCALE": lambda row: _whole(row, "a", 1000) / 8,
    "CPY": _copied,
    "CPY_FROM": lambda row: integers(row.id, "a", row.a * row.b, 2048),
    "CONT": lambda row: _whole(row, "a", 100000).transpose(1, 2, 0),
    "GET_ROWS": _get_rows,
    "SET_ROWS": _set_rows,
    "CONCAT": _concat,
    "REPEAT": lambda row: np.tile(_table(row, "a", (row.b, row.a)), (2, 3)),
    "SUM_ROWS": lambda row: _table(row, "a", (row.b, row.a)).sum(axis=1),
    **dict.fromkeys(("ARGMAX", "ARGSORT"), _ordered),
    "SOFT_MAX": _soft_max,
    "ROPE": lambda row: integers(row.id, "a", row.a * row.b * row.c, 1 << 16) / (1 << 13),
    **dict.fromkeys(("SILU", "GELU", "RELU", "SWIGLU", "GEGLU"), _activated),
    **dict.fromkeys(("ATTENTION", "FLASH_ATTN"), recall),
}
