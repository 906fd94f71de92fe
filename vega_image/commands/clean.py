"""vega-image clean: remove what was built for one target; downloads only when asked."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.digest import Json
from vega_image.errors import LockError, UsageError
from vega_image.factory import Factory
from vega_image.fetching import locked_digests
from vega_image.images import built_image
from vega_image.lockfile import decode_lock
from vega_image.records import (
    ARCHIVES,
    IMAGES,
    MACHINES,
    STEPS,
    StepRecord,
    step_records,
)
from vega_image.store import Store
from vega_image.units import megabytes
from vega_image.windows.spec import Platform

Rows = dict[str, StepRecord]


def clean(call: Call, name: str, *, downloads: bool, yes: bool) -> int:
    """Remove a target's steps, image and objects that no other target uses.

    Raises UsageError CONFIRM when --yes is missing, after saying what would go.
    """
    factory, store = call.factory, call.store
    if name not in factory.names() and built_image(store, name) is None:
        factory.spec(name)
    busy = f"waiting: a build is at work in {store.root}"
    with store.locked("objects", waiting=lambda: call.console.say(busy)):
        mine, kept = _steps(store, name)
        objects = _objects(mine) - _objects(kept)
        if downloads:
            objects |= _downloads(factory, name)
        machines = machine_folders(store, name)
        sizes = [store.path(digest).stat().st_size for digest in objects if store.has(digest)]
        total = sum(sizes) + sum(_folder_bytes(folder) for folder in machines)
        text = f"{name}: {len(mine)} steps, {len(sizes)} objects, {megabytes(total)}"
        if machines:
            text += f", with {', '.join(str(folder) for folder in machines)}"
        if not yes:
            msg = f"would remove {text}"
            raise UsageError("CONFIRM", msg, hint=f"vega-image clean {name} --yes")
        _remove(store, name, mine, objects)
        for folder in machines:
            shutil.rmtree(folder, ignore_errors=True)
    value: Json = {
        "target": name,
        "steps": len(mine),
        "objects": len(sizes),
        "bytes": total,
    }
    call.console.result([f"removed {text}"], value)
    return 0


def _steps(store: Store, name: str) -> tuple[Rows, Rows]:
    known = step_records(store)
    mine = {ref: row for ref, row in known.items() if row.target == name}
    return mine, {ref: row for ref, row in known.items() if ref not in mine}


def _objects(rows: Rows) -> set[str]:
    return set[str]().union(*(row.objects() for row in rows.values()))


def _downloads(factory: Factory, name: str) -> set[str]:
    """Name what this lock names and no other one; a lock that cannot be read names nothing."""
    others = (other for other in factory.names() if other != name)
    kept = set[str]().union(*(_locked(factory, other) for other in others))
    return _locked(factory, name) - kept


def _locked(factory: Factory, name: str) -> set[str]:
    try:
        lock = decode_lock(factory.lock_text(name), at=f"images/{name}.lock.json")
    except LockError:
        return set()
    return set(locked_digests(lock))


def _layouts(store: Store, name: str) -> list[Path]:
    """Find every layout of a target, also of builds with another codec or level."""
    ours = re.compile(rf"{re.escape(name)}-[0-9a-f]{{16}}")
    return [path for path in (store.root / "images").glob("*") if ours.fullmatch(path.name)]


def machine_folders(store: Store, name: str) -> list[Path]:
    """Find the trees and VM images of a Windows target, one folder per platform."""
    folders = (store.root / MACHINES / f"{name}-{platform}" for platform in Platform)
    return [folder for folder in folders if folder.is_dir()]


def _folder_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def _remove(store: Store, name: str, steps: Rows, objects: set[str]) -> None:
    store.drop_ref(IMAGES, name)
    store.drop_ref(ARCHIVES, name)
    for folder in _layouts(store, name):
        shutil.rmtree(folder, ignore_errors=True)
    for ref in steps:
        store.drop_ref(STEPS, ref)
    for digest in objects:
        store.path(digest).unlink(missing_ok=True)
