"""The card that the shim describes, and MIOpen's file name for it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vega_image.errors import UsageError

DECIMAL_UNITS = 64
ARCH = re.compile(r"gfx[0-9a-f]{3,5}(:sramecc[+-])?(:xnack[+-])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the library is told; `memory` in bytes."""

    arch: str = "gfx906:sramecc+:xnack-"
    cu: int = 60
    memory: int = 16 << 30

    @property
    def processor(self) -> str:
        """Return the architecture without its features."""
        return self.arch.partition(":")[0]

    @property
    def base_name(self) -> str:
        """Return the stem of the database's file name (MIOpen, handle.hpp).

        >>> Card().base_name, Card(arch="gfx908", cu=120).base_name
        ('gfx906_60', 'gfx90878')
        >>> Card(arch="gfx906:xnack+").base_name
        'gfx906_xnack_60'
        """
        xnack = "_xnack" if ":xnack+" in self.arch else ""
        units = f"_{self.cu}" if self.cu <= DECIMAL_UNITS else f"{self.cu:x}"
        return f"{self.processor}{xnack}{units}"


def card_of(arch: str | None, cu: int | None) -> Card:
    """Return the card of the options; raises UsageError ARCH_INVALID."""
    default = Card()
    if arch is not None and not ARCH.fullmatch(arch):
        msg = f"{arch!r} is no architecture"
        raise UsageError("ARCH_INVALID", msg, at=arch, hint="gfx906:sramecc+:xnack-")
    return Card(arch=arch or default.arch, cu=cu or default.cu)
