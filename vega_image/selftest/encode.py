"""Facts and findings as JSON: a fact nobody could read is the words `not available`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TypeAlias

from vega_image.selftest.reading import NotAvailable

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def encode(value: object) -> Json:
    """Encode dataclasses, tuples and scalars.

    >>> encode((1, NotAvailable("no such file")))
    [1, 'not available']
    """
    if isinstance(value, NotAvailable):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    msg = f"not a fact: {type(value).__name__}"
    raise TypeError(msg)


def reasons(value: object, at: str = "") -> dict[str, str]:
    """Say why, for every fact that is not available, by its path.

    >>> reasons((1, NotAvailable("no such file")))
    {'1': 'no such file'}
    """
    if isinstance(value, NotAvailable):
        return {at: value.why}
    found: dict[str, str] = {}
    for name, item in _children(value):
        found.update(reasons(item, f"{at}.{name}" if at else name))
    return found


def _children(value: object) -> list[tuple[str, object]]:
    if isinstance(value, (tuple, list)):
        return [(str(index), item) for index, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    return []
