"""Take values out of decoded JSON: the right type, every name known, or an UnreadableError."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from vega_image.selftest.windows.text import UnreadableError

T = TypeVar("T")
LONGEST = 4096
BIGGEST = 1 << 53
"""Above this, readers of JSON differ in what a number is."""


@dataclass(frozen=True)
class Shape:
    """One JSON object of a file; `at` is where it stands in it, e.g. `devices[0]`."""

    file: str
    values: Mapping[str, object]
    at: str = ""

    def only(self, names: Collection[str]) -> Shape:
        """Demand exactly these names. Raises UnreadableError."""
        wrong = set(self.values) ^ set(names)
        if wrong:
            first = min(wrong)
            word = "unknown" if first in self.values else "missing"
            raise self._bad(first, f"{word} name")
        return self

    def text(self, name: str) -> str:
        """Return a text of one printable line; may be empty. Raises UnreadableError."""
        value = self.values[name]
        if not isinstance(value, str):
            raise self._bad(name, "no text")
        if len(value) > LONGEST or not value.isprintable():
            raise self._bad(name, "no printable line")
        return value.strip()

    def text_or_none(self, name: str) -> str | None:
        """Return a text, or None where null says that nobody could read it."""
        return None if self.values[name] is None else self.text(name)

    def number(self, name: str) -> int:
        """Return a whole number from 0 up. Raises UnreadableError."""
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._bad(name, "no whole number")
        if not 0 <= value < BIGGEST:
            raise self._bad(name, "out of range")
        return value

    def number_or_none(self, name: str) -> int | None:
        """Return a whole number, or None for null."""
        return None if self.values[name] is None else self.number(name)

    def signed(self, name: str) -> int:
        """Return a whole number. Raises UnreadableError."""
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= BIGGEST:
            raise self._bad(name, "no whole number")
        return value

    def flag(self, name: str) -> bool:
        """Return true or false. Raises UnreadableError."""
        value = self.values[name]
        if not isinstance(value, bool):
            raise self._bad(name, "neither true nor false")
        return value

    def items(self, name: str, make: Callable[[Shape], T]) -> tuple[T, ...]:
        """Return what `make` makes of each object of a list. Raises UnreadableError."""
        shapes = []
        for index, item in enumerate(self._list(name)):
            at = f"{self._path(name)}[{index}]"
            if not isinstance(item, dict):
                raise UnreadableError(self.file, f"{at}: no object")
            shapes.append(Shape(self.file, item, at))
        return tuple(make(shape) for shape in shapes)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts. Raises UnreadableError."""
        listed = {str(index): item for index, item in enumerate(self._list(name))}
        inner = Shape(self.file, listed, self._path(name))
        return tuple(inner.text(index) for index in listed)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers. Raises UnreadableError."""
        listed = {str(index): item for index, item in enumerate(self._list(name))}
        inner = Shape(self.file, listed, self._path(name))
        return tuple(inner.number(index) for index in listed)

    def table(self, name: str) -> Mapping[str, str]:
        """Return an object of texts. Raises UnreadableError."""
        value = self.values[name]
        if not isinstance(value, dict):
            raise self._bad(name, "no object")
        inner = Shape(self.file, value, self._path(name))
        return {key: inner.text(key) for key in value}

    def _list(self, name: str) -> list[object]:
        value = self.values[name]
        if not isinstance(value, list):
            raise self._bad(name, "no list")
        return value

    def _path(self, name: str) -> str:
        return f"{self.at}.{name}" if self.at else name

    def _bad(self, name: str, why: str) -> UnreadableError:
        return UnreadableError(self.file, f"{self._path(name)}: {why}")
