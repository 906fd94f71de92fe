"""All linear algebra, in the order of its numbers."""

from __future__ import annotations

from vega_image.selftest.suites.linalg import factor, scalar, solve
from vega_image.selftest.suites.linalg.row import Row


def rows() -> tuple[Row, ...]:
    """Return the rows."""
    return tuple(sorted((*factor.ROWS, *solve.ROWS, *scalar.ROWS), key=lambda row: row.id))
