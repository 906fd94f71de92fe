"""Numbers as people read them."""

from __future__ import annotations

MINUTE = 60
HOUR = 3600


def megabytes(size: int) -> str:
    """Write bytes as MB (1 MB = 1,000,000 bytes).

    >>> megabytes(1_234_567), megabytes(345_678_901)
    ('1.2 MB', '346 MB')
    """
    value = size / 1e6
    return f"{value:.1f} MB" if value < 100 else f"{value:,.0f} MB"  # noqa: PLR2004


def duration(seconds: float) -> str:
    """Write a time span with the two units that matter.

    >>> duration(0.42), duration(75), duration(7260)
    ('0.4 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{int(seconds) // MINUTE} min {int(seconds) % MINUTE} s"
    return f"{int(seconds) // HOUR} h {int(seconds) % HOUR // MINUTE} min"
