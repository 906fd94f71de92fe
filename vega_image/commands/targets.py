"""vega-image targets: what this factory can make, and how far each one is."""

from __future__ import annotations

import json

from vega_image.clioptions import Call
from vega_image.console import table
from vega_image.digest import Json
from vega_image.errors import LockError
from vega_image.factory import Factory
from vega_image.images import built_image
from vega_image.prepare import read_lock
from vega_image.spec import Target
from vega_image.store import Store


def list_targets(call: Call) -> int:
    """Print one row per target: version, state of its lock, built here or not."""
    factory = call.factory
    rows = [_row(factory, call.store, factory.target(name)) for name in factory.names()]
    lines = table(
        ("TARGET", "VERSION", "LOCK", "BUILT", "TITLE"),
        [
            [str(row[key]) for key in ("name", "version", "lock", "built", "title")]
            for row in rows
        ],
    )
    call.console.result(lines, {"targets": rows})
    return 0


def print_schema(call: Call) -> int:
    """Print the JSON Schema of a spec, for editors."""
    schema: Json = Target.model_json_schema(by_alias=True)
    call.console.result([json.dumps(schema, indent=1, sort_keys=True)], schema)
    return 0


def _row(factory: Factory, store: Store, target: Target) -> dict[str, Json]:
    image = built_image(store, target.name)
    return {
        "name": target.name,
        "version": target.version,
        "lock": _lock_state(factory, target),
        "built": image.tag if image else "no",
        "title": target.title,
    }


def _lock_state(factory: Factory, target: Target) -> str:
    try:
        read_lock(factory, target)
    except LockError as error:
        return error.code.removeprefix("LOCK_").lower()
    return "ok"
