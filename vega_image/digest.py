"""Content identity: one canonical encoding (RFC 8785), one hash (SHA-256)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

PREFIX = "sha256:"


def canonical(value: Json) -> bytes:
    """Encode a JSON value so that equal values give equal bytes on every platform.

    >>> canonical({"b": 1, "a": [True, None]})
    b'{"a":[true,null],"b":1}'
    """
    import rfc8785  # noqa: PLC0415 - keeps `--help` fast

    return rfc8785.dumps(_plain(value))  # type: ignore[arg-type] # its JSON type is private


def digest(value: Json) -> str:
    """Return `sha256:` + hex of the canonical encoding.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return digest_bytes(canonical(value))


def digest_bytes(data: bytes) -> str:
    """Return `sha256:` + hex of the bytes themselves."""
    return PREFIX + hashlib.sha256(data).hexdigest()


def hex_of(digest_text: str) -> str:
    """Return the 64 hex digits of a `sha256:` digest.

    >>> hex_of("sha256:" + "0" * 64) == "0" * 64
    True
    """
    text = digest_text.removeprefix(PREFIX)
    if len(text) != 64 or set(text) - set("0123456789abcdef"):  # noqa: PLR2004 - SHA-256
        msg = f"not a sha256 digest: {digest_text!r}"
        raise ValueError(msg)
    return text


def _plain(value: Json) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
