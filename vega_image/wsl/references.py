"""What in a `wsl` spec does not fit together, beyond what each section says itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The section's own models are part of spec.py, which imports them from this package.
    from vega_image.spec import Target


def wsl_dangling(target: Target) -> Iterator[tuple[str, str]]:
    """Yield (dotted path, what is wrong)."""
    if target.compression.codec != "gzip":
        yield "compression", "a .wsl archive wants `codec: gzip`"
    if target.root.users:
        message = "not in a target of kind wsl: `wsl.default_user` is made at the first start"
        yield "root.users", message
