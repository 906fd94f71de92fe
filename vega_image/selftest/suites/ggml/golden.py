"""`golden.def`: the SHA-256 of each exact case's right answer, as little-endian doubles."""

from __future__ import annotations

import hashlib

from vega_image.selftest.external.ggml.table import rows
from vega_image.selftest.suites.ggml.answers import answer


def golden_text(cases: str) -> str:
    """Write golden.def for the text of cases.def."""
    lines = ["/* Written by vega_image.selftest.suites.ggml.golden; not by hand. */"]
    for row in rows(cases):
        right = answer(row)
        if right is not None:
            lines.append(f'GOLDEN("{row.id}", "{digest(right.astype("<f8").tobytes())}")')
    return "\n".join(lines) + "\n"


def digest(data: bytes) -> str:
    """Hash bytes."""
    return hashlib.sha256(data).hexdigest()
