"""The convolutions of networks by name: selftest's table of cases, seen as problems."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from vega_image.finddb.problem import Problem, parse_key
from vega_image.selftest.miopen.problem import directed_key

TABLE = "conv.jsonl"
BATCH = re.compile(r"_n(\d+)$")
# Cases at the edges of kernels and sweeps over channels are no networks.
SWEEPS = re.compile(r"(edge|c3_k|dil|dw|grp|grouped|small|mid|k)[0-9_]")

Geometry = tuple[object, ...]


def geometry(problem: Problem) -> Geometry:
    """Return what two problems share that differ in batch, data type, layout and direction."""
    return (
        problem.x_channels,
        problem.x_size,
        problem.y_channels,
        problem.filter,
        problem.pads,
        problem.strides,
        problem.dilations,
        problem.groups,
    )


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution of a named network (or of a sweep), forward."""

    name: str
    family: str
    problem: Problem

    @property
    def network(self) -> str:
        """Return the name without its batch."""
        return BATCH.sub("", self.name)

    @property
    def of_network(self) -> bool:
        """Whether the name is a network's rather than a sweep's."""
        return not SWEEPS.match(self.name)


@lru_cache(maxsize=1)
def layers() -> tuple[Layer, ...]:
    """Return every named convolution."""
    text = (files("vega_image.selftest") / "data" / TABLE).read_text(encoding="utf-8")
    rows = map(json.loads, text.splitlines())
    return tuple(
        Layer(row["name"], row["family"], parse_key(directed_key(row["miopen_key"], "F")))
        for row in rows
    )


@lru_cache(maxsize=1)
def network_geometries() -> frozenset[Geometry]:
    """Return the geometries that some network has."""
    return frozenset(geometry(one.problem) for one in layers() if one.of_network)


def named(name: str) -> Iterator[Layer]:
    """Yield the layers of a name: `resnet50_n1` with its batch, `ResNet-50` at any."""
    wanted = re.sub("[^a-z0-9]", "", name.lower())
    found = [one for one in layers() if wanted == re.sub("[^a-z0-9]", "", one.name)]
    yield from found or (
        one for one in layers() if wanted == re.sub("[^a-z0-9]", "", one.network)
    )
