"""The shipped tables; each is read only if it is, to the bit, what this version came with.

A bit that changed on a disk or on the way would otherwise be taken for a wrong device, or
would loosen a bound. `golden` notes the digests; standard library only.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from vega_image.selftest.errors import SelftestError

SUITE_VERSION = "1"
SCHEMA = "vega-selftest-data/1"
MANIFEST = "digests.json"
TABLES = ("conv.jsonl", "linalg.jsonl", "regressions.jsonl", "golden.json", "calibration.json")
WRONG_BYTES = 4


@lru_cache(maxsize=8)
def table(name: str) -> bytes:
    """Return the bytes of one of TABLES.

    Raises SelftestError (4): TABLES_DAMAGED, DATA_VERSION.
    """
    wanted = digests(raw(MANIFEST)).get(name)
    data = raw(name)
    if hashlib.sha256(data).hexdigest() != wanted:
        text = f"{name} is not the file that this version came with"
        raise damaged(text, at=name)
    return data


def raw(name: str) -> bytes:
    """Return a file of data/ as it is. Raises SelftestError (4) if it cannot be read."""
    try:
        return (resources.files("vega_image.selftest") / "data" / name).read_bytes()
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        text = f"{name} cannot be read: {error}"
        raise damaged(text, at=name) from error


def digests(data: bytes) -> Mapping[str, str]:
    """Read the noted digests. Raises SelftestError (4): TABLES_DAMAGED, DATA_VERSION."""
    try:
        document = json.loads(data)
        version = (document["schema"], document["suite"])
        found = {str(name): str(value) for name, value in document["sha256"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = f"{MANIFEST}: {error!r}"
        raise damaged(text, at=MANIFEST) from error
    if version != (SCHEMA, SUITE_VERSION):
        raise SelftestError(
            "DATA_VERSION",
            f"{MANIFEST}: tables of suite {version[1]}, this is suite {SUITE_VERSION}",
            exit_code=WRONG_BYTES,
            hint="install vega-image again: program and tables must be of one version",
            at=MANIFEST,
        )
    return found


def manifest(contents: Mapping[str, bytes]) -> bytes:
    """Note the digests of these tables."""
    sha256 = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    body = {"schema": SCHEMA, "suite": SUITE_VERSION, "sha256": sha256}
    return json.dumps(body, indent=1, sort_keys=True).encode() + b"\n"


def damaged(text: str, *, at: str) -> SelftestError:
    """Say that what was shipped is not whole: nothing about any device."""
    return SelftestError(
        "TABLES_DAMAGED",
        text,
        exit_code=WRONG_BYTES,
        hint="install vega-image again, or copy vega-selftest.pyz again",
        at=at,
    )
