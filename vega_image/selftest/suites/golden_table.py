"""The shipped SHA-256 of right outputs, by the name their inputs are drawn under."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache

from vega_image.selftest import datafiles
from vega_image.selftest.errors import SelftestError

FILE = "golden.json"
SCHEMA = "vega-selftest-golden/1"
DIGEST_BYTES = 32


def golden(name: str) -> str:
    """Return the SHA-256 in hex, or nothing where none was written.

    Raises SelftestError (4) for a damaged file.
    """
    return shipped().get(name, "")


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, str]:
    """Read the shipped file once. Raises SelftestError (4) for a damaged or foreign one."""
    # A file of another version is called so before its bytes are found to be others.
    found = parse(datafiles.raw(FILE).decode("utf-8", "replace"), tables_sha256())
    datafiles.table(FILE)
    return found


@lru_cache(maxsize=1)
def tables_sha256() -> str:
    """Return the SHA-256 of the geometries that the hashes belong to."""
    return hashlib.sha256(datafiles.table("conv.jsonl")).hexdigest()


def parse(text: str, tables: str) -> Mapping[str, str]:
    """Read golden hashes. Raises SelftestError (4) for anything that is not wholly right."""
    try:
        document = json.loads(text)
        version = (document["schema"], document["tables"])
        found = {name: b64decode(value, validate=True).hex() for name, value in
                 document["sha256"].items()}  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = f"{FILE}: {error!r}"
        raise datafiles.damaged(text, at=FILE) from error
    if version != (SCHEMA, tables):
        raise SelftestError(
            "DATA_VERSION",
            f"{FILE}: written for other tables or another version of the suite",
            exit_code=datafiles.WRONG_BYTES,
            hint="install vega-image again; after a change of conv.jsonl: golden --write",
            at=FILE,
        )
    if any(len(value) != 2 * DIGEST_BYTES for value in found.values()):
        text = f"{FILE}: a hash is not {DIGEST_BYTES} bytes long"
        raise datafiles.damaged(text, at=FILE)
    return found
