"""Guards beside a card's outputs, where its own kernels find them.

torch hands out a card's memory from blocks it keeps. Holes of exactly the outputs' sizes are
made between guards and let go: the smallest block that fits is taken, so that is where the
next outputs of these sizes come to lie. Written against that rule; tested with a pool that
follows it, since no card was at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNIT = 512
"""The pool rounds sizes up to this, so a stray write of less stays inside the block."""
SMALL = 1 << 20
"""What is larger comes from other blocks than what is not."""
SPARE = 2
"""Holes of each size: a workspace of the same size may take one."""
MISSES = 64
MOST = 1 << 30
"""Bytes to spend at most on holes of one size that do not join their guards."""
Fill = Callable[[int], Any]


@dataclass(frozen=True)
class Fence:
    """Guards that stand; `holes` are begin and end of what lay between two of them.

    `plugs` fill the places that would be taken before the holes.
    """

    guards: Sequence[Any]
    holes: Sequence[tuple[int, int]]
    plugs: Sequence[Any]

    def between(self, begin: int, end: int) -> bool:
        """Whether an output has a guard on either side."""
        return any(first <= begin and end <= last for first, last in self.holes)


def lay(sizes: Iterable[int], *, guard: Fill, hole: Fill) -> Fence:
    """Make holes of `sizes` bytes between guards; `guard` and `hole` fill n bytes of memory.

    What they return has `data_ptr()`. A guard is as large as it must be to come from the same
    blocks as its hole. Pieces that do not join are kept as plugs until all are laid, so that
    the next ones come from one larger block, where they do.
    """
    guards: list[Any] = []
    plugs: list[Any] = []
    holes: list[tuple[int, int]] = []
    let_go: list[Any] = []
    middle = None
    for size in sorted({_rounded(size) for size in sizes}):
        beside = UNIT if size <= SMALL else SMALL + UNIT
        wanted = SPARE
        for _ in range(max(SPARE, min(MISSES, MOST // size))):
            before, middle, after = guard(beside), hole(size), guard(beside)
            guards += [before, after]
            begin = middle.data_ptr()
            joined = before.data_ptr() + beside == begin
            joined = joined and begin + size == after.data_ptr()
            (let_go if joined else plugs).append(middle)
            if joined:
                holes.append((begin, begin + size))
                wanted -= 1
            if not wanted:
                break
    del middle
    let_go.clear()
    return Fence(guards, holes, plugs)


def overrun(
    fence: Fence, results: Mapping[str, Any], intact: Callable[[Any], bool]
) -> tuple[str, ...]:
    """Name the outputs beside which a guard was written over."""
    broken = [block for block in fence.guards if not intact(block)]
    if not broken:
        return ()
    spans = [_span(block) for block in broken]
    named = []
    for name, item in results.items():
        begin, end = _span(item)
        if any(last == begin or first == end for first, last in spans):
            named.append(f"memory beside output {name} was overwritten")
    return tuple(named) or ("memory beside the outputs was overwritten",)


def _span(item: Any) -> tuple[int, int]:
    storage = item.untyped_storage()
    begin = int(storage.data_ptr())
    return begin, begin + _rounded(storage.nbytes())


def _rounded(size: int) -> int:
    return max(-(-size // UNIT), 1) * UNIT
