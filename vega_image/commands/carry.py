"""vega-image pool: the locked files of a target, out to a folder and in again."""

from __future__ import annotations

from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.pool import export_pool, import_pool
from vega_image.fetching import supply_of
from vega_image.prepare import read_lock


def carry_out(call: Call, name: str, folder: Path) -> int:
    """Write all locked files of a target into one folder."""
    factory = call.factory
    lock = read_lock(factory, factory.target(name))
    with supply_of(call, call.store, label="fetch") as supply:
        lines = export_pool(lock, out=folder, supply=supply)
    value = {"target": name, "lock": lock.digest, "folder": str(folder)}
    call.console.result(lines, {**value})
    return 0


def carry_in(call: Call, folder: Path) -> int:
    """Take such a folder into the store, every file checked."""
    lines = import_pool(folder, store=call.store, lock=None)
    call.console.result(lines, {"folder": str(folder), "notes": list(lines)})
    return 0
