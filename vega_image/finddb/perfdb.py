"""The perf-db: which configuration a tunable solver uses; as text, or SQLite (read only).

Grammar: MIOpen 3.5.1, a key of 21 numbers, layout, data type and direction joined by `x`, and
`Solver:params` items joined by `;`. As in find-db keys, the numbers called in are those of dy
in B and W. Output sizes are no part of the key.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from vega_image.errors import UsageError
from vega_image.finddb.problem import FormError, Problem
from vega_image.finddb.text import FindDb

COLUMNS = (
    "spatial_dim", "in_channels", "in_h", "in_w", "in_d", "fil_h", "fil_w", "fil_d",
    "out_channels", "batchsize", "pad_h", "pad_w", "pad_d", "conv_stride_h", "conv_stride_w",
    "conv_stride_d", "dilation_h", "dilation_w", "dilation_d", "bias", "group_count", "layout",
    "data_type", "direction",
)  # fmt: skip
NUMBERS = 21
_NAMES = "x(?P<layout>[A-Z]+[0-9a-zA-Z]*?)x(?P<dtype>[A-Z0-9]+)x(?P<direction>[FBW])"
KEY = re.compile(f"(?P<numbers>[0-9]{{1,18}}(?:x[0-9]{{1,18}}){{{NUMBERS - 1}}}){_NAMES}")
ITEM = re.compile("(?P<solver>[^,;:=\\s]+):(?P<params>[^;=\\s]*)")


@dataclass(frozen=True, slots=True)
class Config:
    """The key of a perf-db: numbers in the order of COLUMNS, then three names."""

    numbers: tuple[int, ...]
    layout: str
    dtype: str
    direction: str

    @property
    def key(self) -> str:
        """Return the key as text."""
        return "x".join((*map(str, self.numbers), self.layout, self.dtype, self.direction))

    def number(self, column: str) -> int:
        """Return a number by the name of its column."""
        return self.numbers[COLUMNS.index(column)]


@dataclass(frozen=True, slots=True)
class Tuned:
    """The configurations of one problem: (solver, params) in the order written."""

    config: Config
    items: tuple[tuple[str, str], ...]

    def written(self) -> str:
        """Return the line, without its end."""
        return f"{self.config.key}=" + ";".join(f"{name}:{text}" for name, text in self.items)


def config_of(problem: Problem) -> Config:
    """Return the perf-db's key of a problem."""
    forward = problem.direction == "F"
    channels, size = problem.x_channels, problem.x_size
    others = problem.y_channels
    if not forward:
        channels, size, others = problem.y_channels, problem.y_size, problem.x_channels

    def box(sizes: tuple[int, ...], absent: int) -> tuple[int, int, int]:
        return (sizes[-2], sizes[-1], sizes[0] if len(sizes) > 2 else absent)  # noqa: PLR2004

    numbers = (
        problem.dims, channels, *box(size, 1), *box(problem.filter, 1), others, problem.batch,
        *box(problem.pads, 0), *box(problem.strides, 0), *box(problem.dilations, 0),
        problem.bias, problem.groups,
    )  # fmt: skip
    return Config(numbers, problem.layout.split("-")[0], problem.dtype, problem.direction)


def parse_config(text: str) -> Config:
    """Read a key; raises FormError."""
    match = KEY.fullmatch(text)
    if match is None:
        good = re.match("(?:[0-9]{1,18}x){0,21}", text)
        column = good.end() + 1 if good else 1
        msg = f"expected {NUMBERS} numbers, layout, data type and direction joined by 'x'"
        raise FormError(msg, column)
    numbers = tuple(map(int, match["numbers"].split("x")))
    config = Config(numbers, match["layout"], match["dtype"], match["direction"])
    if config.key != text:
        msg = "MIOpen writes numbers without leading zeros"
        raise FormError(msg, 1)
    return config


def parse_tuned(text: str) -> Tuned:
    """Read a line; raises FormError with its column."""
    key, mark, value = text.partition("=")
    if not mark:
        msg = "expected '=' after the key"
        raise FormError(msg, len(text) + 1)
    config = parse_config(key)
    items: list[tuple[str, str]] = []
    at = len(key) + 1
    for part in value.split(";"):
        match = ITEM.fullmatch(part)
        if match is None:
            msg = "expected Solver:params"
            raise FormError(msg, at + 1)
        items.append((match["solver"], match["params"]))
        at += len(part) + 1
    return Tuned(config, tuple(items))


def tuned_lines(db: FindDb) -> Iterator[tuple[int, Tuned | FormError]]:
    """Yield (line, what it says or why it says nothing) for every line that is not blank."""
    for number, line in enumerate(db.lines):
        if line:
            try:
                yield number + 1, parse_tuned(line.removesuffix(b"\r").decode("ascii"))
            except UnicodeDecodeError as error:
                yield number + 1, FormError("a byte that is not ASCII", error.start + 1)
            except FormError as error:
                yield number + 1, error


def write(records: Iterable[Tuned]) -> bytes:
    """Return records as a file, in their order."""
    return "".join(f"{record.written()}\n" for record in records).encode()


def is_perf_line(line: bytes) -> bool:
    """Whether a line begins as a perf-db's key does."""
    return re.match(rb"(?:[0-9]+x){8}", line) is not None


def read_sqlite(path: Path) -> Iterator[Tuned]:
    """Yield the configurations of an SQLite perf-db, which is opened for reading only.

    Raises UsageError PERFDB_FOREIGN where the tables are not a perf-db's.
    """
    columns = ", ".join(f"c.{name}" for name in COLUMNS)
    query = (
        f"SELECT c.id, {columns}, p.solver, p.params FROM config c "  # noqa: S608 - constants
        "JOIN perf_db p ON p.config = c.id ORDER BY c.id, p.id"
    )
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as base:
            yield from _grouped(base.execute(query))
    except (sqlite3.Error, ValueError, OverflowError) as error:
        msg = f"{path} is no perf-db: {error}"
        raise UsageError("PERFDB_FOREIGN", msg, at=str(path)) from error


def _grouped(rows: Iterable[tuple[object, ...]]) -> Iterator[Tuned]:
    now: object = None
    config: Config | None = None
    items: list[tuple[str, str]] = []
    for number, *fields, solver, params in rows:
        if number != now:
            if config:
                yield Tuned(config, tuple(items))
            names = [str(field) for field in fields[NUMBERS:]]
            numbers = tuple(int(str(field)) for field in fields[:NUMBERS])
            now, items, config = number, [], Config(numbers, names[0], names[1], names[2])
        items.append((str(solver), str(params)))
    if config:
        yield Tuned(config, tuple(items))
