"""Indexing and movement: right to the bit, or wrong."""

from __future__ import annotations

from typing import Any

from vega_image.selftest.suites.ops.op import (
    FP32,
    Exact,
    Op,
    Variant,
    constant,
    distinct,
    flag,
    index,
    integer,
)

FAMILY = "index"
MAIN = (33, 129)
SORTED = ("fp32", "fp16")


def _embedding_bag(t: Any, i: Any, w: Any) -> Any:
    bags = t.arange(0, 40, 5, device=i.device)
    return t.nn.functional.embedding_bag(i, w, bags, mode="sum")


def _scatter_add(t: Any, a: Any, i: Any) -> Any:
    return t.zeros(33, 65, dtype=a.dtype, device=a.device).scatter_add(1, i, a)


def _index_put(t: Any, v: Any, i: Any) -> Any:
    target = t.zeros(13, v.shape[1], dtype=v.dtype, device=v.device)
    return target.index_put((i,), v, accumulate=True)


def _unique(t: Any, i: Any) -> Any:
    found = t.unique(i, return_inverse=True, return_counts=True)
    return tuple(part.float() for part in found)


def _pad(t: Any, a: Any) -> Any:
    pad = t.nn.functional.pad
    sides = (1, 2, 3, 4)
    return pad(a, sides), pad(a, sides, mode="reflect"), pad(a, sides, mode="replicate")


OPS = (
    Op("op72", "embedding", (index(1000, 4, 77), integer(1000, 64)),
       lambda t, i, w: t.nn.functional.embedding(i, w), Exact(moved=True),
       shapes="(4,77) of 1000x64", risk="backward sorts repeated indices",
       opinfo="nn.functional.embedding"),
    Op("op73", "embedding_bag", (index(100, 40), integer(100, 16)), _embedding_bag, Exact(),
       dtypes=FP32, shapes="8 bags of 5", opinfo="nn.functional.embedding_bag"),
    Op("op74", "gather", (integer(33, 65), index(65, 33, 20)), lambda _, a, i: a.gather(1, i),
       Exact(moved=True), shapes="(33,65)"),
    Op("op75", "scatter_add", (integer(33, 20), index(65, 33, 20)), _scatter_add, Exact(),
       shapes="(33,20) into 65, repeated indices",
       risk="gfx906 has no fp16 atomic: a loop of compare-and-swap"),
    Op("op76", "index_select", (integer(65, 33), index(65, 100)),
       lambda _, a, i: a.index_select(0, i), Exact(moved=True), shapes="100 of 65 rows"),
    Op("op77", "index_put_accumulate", (integer(100, 8), index(13, 100)), _index_put, Exact(),
       shapes="100 into 13; 250 ones into 1", risk="pytorch PR#198199: sums that stall",
       opinfo="index_put", variants=(Variant("r2", (constant(1.0, 250, 8), index(1, 250))),)),
    Op("op78", "masked_fill", (integer(*MAIN), flag(*MAIN)),
       lambda _, a, m: (a.masked_fill(m, 7.0), a.masked_select(m)),
       Exact(moved=True), shapes="(33,129)", opinfo="masked_fill, masked_select"),
    Op("op79", "sort", (distinct(17, 120),), lambda t, a: t.sort(a, 1)[0], Exact(),
       dtypes=SORTED, shapes="(17,120); 2^20 at r3", risk="rocPRIM radix sort",
       variants=(Variant("r3", (distinct(1, 1 << 11),)),)),
    Op("op80", "topk", (distinct(17, 120),), lambda t, a: t.topk(a, 7, 1)[0], Exact(),
       dtypes=SORTED, shapes="7 of 120; of 2048 at r3", risk="radix select on waves of 64",
       variants=(Variant("r3", (distinct(2, 1 << 10),)),)),
    Op("op81", "unique", (index(50, 1000),), _unique, Exact(), dtypes=FP32, grad=False,
       shapes="1000 of 50"),
    Op("op82", "cat_split", (integer(5, 7, 9), integer(5, 3, 9)),
       lambda t, a, b: t.cat([a, b], 1).split([4, 6], 1),
       Exact(moved=True), shapes="(5,7,9), (5,3,9)", opinfo="cat, split"),
    Op("op83", "pad", (integer(2, 3, 9, 11),), _pad, Exact(moved=True),
       shapes="constant, reflect, edge", opinfo="nn.functional.pad"),
    Op("op84", "permute_contiguous", (integer(3, 5, 7, 9),),
       lambda _, a: (a.permute(3, 1, 0, 2).contiguous(), a.flip(1), a.roll(3, 2)),
       Exact(moved=True), shapes="(3,5,7,9)", opinfo="permute, flip, roll"),
)  # fmt: skip
"""One row per operation."""
