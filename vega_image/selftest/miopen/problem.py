"""MIOpen's name of a convolution problem (MIOpen 3.5.1, problem_description.cpp).

In keys of the backward directions the first group of numbers is dy, not x: what the forward
key calls C-H-W-...-K-Ho-Wo stands as K-Ho-Wo-...-C-H-W.
"""

from __future__ import annotations

import re

DIRECTIONS = ("F", "B", "W")
FORWARD_2D = re.compile(
    r"([0-9]+-[0-9]+-[0-9]+)-([0-9]+x[0-9]+)-([0-9]+-[0-9]+-[0-9]+)"
    r"-([0-9]+-[0-9]+x[0-9]+-[0-9]+x[0-9]+-[0-9]+x[0-9]+-[01])"
    r"-(NCHW|NHWC(?:-NHWC-NHWC)?)-(FP32|FP16|BF16|FP64)-F(_g[0-9]+)?"
)


def directed_key(forward: str, direction: str) -> str:
    """Return the key of one direction; raises ValueError for a key of another form.

    >>> directed_key("3-8-9-5x4-64-4-6-2-1x1-2x2-1x1-0-NHWC-FP32-F_g1", "W")
    '64-4-6-5x4-3-8-9-2-1x1-2x2-1x1-0-NHWC-NHWC-NHWC-FP32-W_g1'
    """
    match = FORWARD_2D.fullmatch(forward)
    if not match or direction not in DIRECTIONS:
        msg = f"not a forward key and a direction: {forward} {direction}"
        raise ValueError(msg)
    x, window, y, rest, layout, dtype, groups = match.groups()
    first, last = (x, y) if direction == "F" else (y, x)
    layout = layout if layout == "NCHW" else "NHWC-NHWC-NHWC"
    return f"{first}-{window}-{last}-{rest}-{layout}-{dtype}-{direction}{groups or ''}"
