"""The find-db as text: one pass finds the lines, records are parsed when they are asked for.

MIOpen skips blank lines, takes the first of equal keys, and skips a line without a key or a
value. So does `FindDb`, but here every line that it skips is a flaw with line and column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from vega_image.finddb.problem import FormError, check_key
from vega_image.finddb.record import AS_READ, CURRENT, Item, Record, parse_item

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, order=True)
class Flaw:
    """A place that does not fit the grammar; line and column count from 1."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class FindDb:
    """A find-db in memory: `data` as read, `name` for messages."""

    data: bytes
    name: str

    @cached_property
    def lines(self) -> list[bytes]:
        """Return the lines without their ends; a CR before an end stays."""
        return self.data.split(b"\n")

    @cached_property
    def index(self) -> dict[bytes, int]:
        """Return for each key the line, from 0, that MIOpen finds: the first. In no order."""
        lines = self.lines
        keys = [line.partition(b"=")[0] for line in lines]
        if all(len(key) < len(line) for key, line in zip(keys, lines, strict=True) if line):
            # Backwards, so that the first of equal keys is the one that stays.
            found = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        else:
            found = _first_lines(lines)
        found.pop(b"", None)
        return found

    def __len__(self) -> int:
        """Return the number of different keys."""
        return len(self.index)

    def __contains__(self, key: str) -> bool:
        """Whether a key has a line."""
        return key.encode() in self.index

    def __getitem__(self, key: str) -> Record:
        """Return the record MIOpen finds for a key.

        Raises KeyError where there is none, FormError where it is no record.
        """
        return self.record(self.index[key.encode()])

    def get(self, key: str) -> Record | None:
        """Return the record MIOpen finds for a key, or None; raises FormError."""
        return self[key] if key in self else None  # noqa: SIM401 - this is that get

    def record(self, number: int) -> Record:
        """Parse a line (from 0); raises FormError."""
        return parse_line(self.lines[number], number + 1)

    def records(self) -> Iterator[Record]:
        """Yield every record MIOpen can find, in the order of lines; flaws are left out.

        Whoever writes what this yields must look at `flaws` first.
        """
        for number in sorted(self.index.values()):
            try:
                yield self.record(number)
            except FormError:
                continue

    def flaws(self) -> Iterator[Flaw]:
        """Yield every place that is not of the grammar, duplicate keys with them."""
        for number, line in enumerate(self.lines):
            if not line.strip():
                continue
            try:
                key = self.record(number).key.encode()
            except FormError as error:
                yield Flaw(number + 1, error.column, error.message)
                continue
            if self.index[key] != number:
                first = self.index[key] + 1
                yield Flaw(number + 1, 1, f"this key is in line {first}, which MIOpen takes")


def _first_lines(lines: list[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for number, line in enumerate(lines):
        key, mark, _ = line.partition(b"=")
        if mark:
            found.setdefault(key, number)
    return found


def parse_line(line: bytes, number: int = 0) -> Record:
    """Read one line; raises FormError with the column."""
    text = _decoded(line.removesuffix(b"\r"))
    key, mark, value = text.partition("=")
    if not mark:
        msg = "expected '=' after the key"
        raise FormError(msg, len(text) + 1)
    try:
        check_key(key)
    except FormError as error:
        raise FormError(error.message, error.column) from error
    return Record(key=key, items=tuple(_items(value, len(key) + 1)), line=number)


def _decoded(line: bytes) -> str:
    try:
        return line.decode("ascii")
    except UnicodeDecodeError as error:
        bom = "; a byte order mark makes MIOpen lose the line" if line.startswith(BOM) else ""
        msg = f"byte {line[error.start]:#04x} is not ASCII{bom}"
        raise FormError(msg, error.start + 1) from error


def _items(value: str, offset: int) -> Iterator[Item]:
    at = offset
    for text in value.split(";"):
        try:
            yield parse_item(text)
        except FormError as error:
            raise FormError(error.message, at + error.column) from error
        at += len(text) + 1


def write(records: Iterable[Record], form: str = CURRENT, *, ordered: bool = True) -> bytes:
    """Return records as a file: sorted by key unless not `ordered`, one line each, LF."""
    lines = [record.written(form) for record in records]
    if ordered:
        lines.sort()
    return "".join(f"{line}\n" for line in lines).encode()


def as_read(records: Iterable[Record]) -> bytes:
    """Return records as they were read, in their order."""
    return write(records, AS_READ, ordered=False)
