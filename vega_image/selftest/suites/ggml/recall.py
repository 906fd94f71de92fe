"""Attention whose answer is known: each query names one key, and gets its value."""

from __future__ import annotations

import numpy as np

from vega_image.selftest.external.ggml.table import Row
from vega_image.selftest.suites.ggml.streams import Numbers, integers, words

SHARED = 2


def recall(row: Row) -> Numbers:
    """Return out[query][head][size]: one half's value, the other's, or their exact mean."""
    half = row.c // 2
    values = integers(row.id, "v", row.b // SHARED * row.c * row.a, 30)
    values = values.reshape(row.b // SHARED, row.c, row.a)
    targets = (words(row.id, "target", row.b * row.d) % np.uint64(half)).astype(np.int64)
    targets = targets.reshape(row.b, row.d)
    hidden = (words(row.id, "hidden", row.d) % np.uint64(3)).tolist()
    out = np.empty((row.d, row.b, row.a))
    for query, head in np.ndindex(row.d, row.b):
        near = values[head // SHARED, targets[head, query]]
        far = values[head // SHARED, targets[head, query] + half]
        out[query, head] = (far, near, (near + far) / 2)[hidden[query]]
    return out
