"""The shipped SHA-256 of right outputs, by the name their inputs are drawn under."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

FILE = "golden.json"
SCHEMA = "vega-selftest-golden/1"
DIGEST_BYTES = 32


class GoldenError(Exception):
    """The shipped file is damaged or belongs to another version of the suite."""


def golden(name: str) -> str:
    """Return the SHA-256 in hex, or nothing where none was written.

    Raises GoldenError for a damaged file.
    """
    return shipped().get(name, "")


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, str]:
    """Read the shipped file once."""
    file = resources.files("vega_image.selftest") / "data" / FILE
    try:
        return parse(file.read_text("utf-8"), tables_sha256())
    except OSError as error:
        msg = f"{FILE}: {error}"
        raise GoldenError(msg) from error


@lru_cache(maxsize=1)
def tables_sha256() -> str:
    """Return the SHA-256 of the geometries that the hashes belong to."""
    file = resources.files("vega_image.selftest") / "data" / "conv.jsonl"
    return hashlib.sha256(file.read_bytes()).hexdigest()


def parse(text: str, tables: str) -> Mapping[str, str]:
    """Read golden hashes. Raises GoldenError for anything that is not wholly right."""
    try:
        document = json.loads(text)
        if (document["schema"], document["tables"]) != (SCHEMA, tables):
            msg = f"{FILE}: written for other tables or another version of the suite"
            raise GoldenError(msg)
        found = {name: b64decode(value, validate=True).hex() for name, value in
                 document["sha256"].items()}  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{FILE}: damaged: {error!r}"
        raise GoldenError(msg) from error
    if any(len(value) != 2 * DIGEST_BYTES for value in found.values()):
        msg = f"{FILE}: damaged: a hash is not {DIGEST_BYTES} bytes long"
        raise GoldenError(msg)
    return found
