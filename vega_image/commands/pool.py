"""`vega-image pool export|import`: the locked files as a folder to audit and to carry."""

from __future__ import annotations

from pathlib import Path

from vega_image.clioptions import Call
from vega_image.fetching import supply_of
from vega_image.lock import Lock
from vega_image.prepare import read_lock
from vega_image.sources.locked import Supply, fetch_sources
from vega_image.sources.pool import pool_export, pool_import
from vega_image.store import Store


def export_pool(lock: Lock, *, out: Path, supply: Supply) -> tuple[str, ...]:
    """Fetch what is missing, write the folder and say what it holds."""
    fetch_sources(lock, supply)
    files = pool_export(lock, supply.store, out)
    size = sum(file.size for file in files) / 1e6
    return (
        f"{out}: {len(files)} files, {size:.1f} MB",
        f"audit: cd {out} && sha256sum -c SHA256SUMS",
    )


def import_pool(folder: Path, *, store: Store, lock: Lock | None) -> tuple[str, ...]:
    """Take a folder into the store and say whose it is."""
    taken = pool_import(folder, store, lock)
    return (f"{folder}: the files of {taken.target}, lock {taken.digest}, are in the store",)


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
