"""`vega-image lock TARGET`: resolve the sources of a spec and write the lock beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.digest import Json
from vega_image.errors import LockError, UsageError
from vega_image.fetching import supply_of
from vega_image.lock import Lock
from vega_image.lockdiff import describe_change
from vega_image.lockfile import decode_lock, encode_lock, seal, unresolved
from vega_image.oci.compress import tool_versions
from vega_image.sources.locked import Supply, resolve_sources
from vega_image.sources.payload import Payload, resolve_payload
from vega_image.sources.relock import Relocked, fetch_or_relock
from vega_image.spec import Target
from vega_image.store import disk_errors, write_atomic
from vega_image.windows.spec import WindowsTarget


def lock_target(
    target: Target, *, path: Path, supply: Supply, tools: Mapping[str, str]
) -> Relocked:
    """Write a new lock to `path`, whole or not at all, and say what it changes.

    `tools` are the versions that decide bytes. The old lock may be missing, stale or damaged.
    Raises what resolve_sources raises, UsageError NO_EPOCH, EngineError DISK_FULL.
    """
    old, note = _before(path)
    new = seal(target, resolve_sources(target, supply), tools=tools)
    with disk_errors(path):
        write_atomic(path, encode_lock(new))
    return Relocked(new, (*note, *describe_change(old, new)))


def _before(path: Path) -> tuple[Lock | None, tuple[str, ...]]:
    try:
        return decode_lock(path.read_bytes(), at=path.name), ()
    except FileNotFoundError:
        return None, ()
    except LockError as error:
        return None, (f"{error.message}; made anew",)


def lock(call: Call, name: str, *, payload: Path | None = None) -> int:
    """Resolve a target's sources, write its lock, print the difference.

    Raises UsageError LOCK_OFFLINE or BAD_PAYLOAD, and what lock_target raises.
    """
    factory = call.factory
    target = factory.spec(name)
    if factory.installed:
        msg = "the factory inside the installed package is not for changing"
        hint = f"copy its folders images and templates, then: vega-image -C DIR lock {name}"
        raise UsageError("FACTORY_READ_ONLY", msg, at=str(factory.root), hint=hint)
    if isinstance(target, WindowsTarget):
        return _lock_windows(call, target, payload)
    if payload is not None:
        msg = f"--payload is for Windows targets; {name} is of kind {target.kind}"
        raise UsageError("BAD_PAYLOAD", msg, at="--payload", hint=f"vega-image lock {name}")
    if call.settings.offline:
        msg = f"locking {name} asks its sources what they hold, which --offline forbids"
        raise UsageError("LOCK_OFFLINE", msg, at=name, hint=f"vega-image lock {name}")
    call.console.say(f"{name}: resolving its sources")
    with supply_of(call, call.store, label=f"lock {name}", log=call.console.line) as supply:
        made = _made(call, target, supply)
    value: Json = {
        "target": name,
        "lock": made.lock.digest,
        "epoch": made.lock.epoch,
        "changes": list(made.lines),
    }
    path = factory.lock_path(name)
    call.console.result([*made.lines, f"wrote {path}, {made.lock.digest}"], value)
    return 0


def _lock_windows(call: Call, target: WindowsTarget, folder: Path | None) -> int:
    """Lock what is at hand, and name what is not: nothing is fetched, so no network is used."""
    path = call.factory.lock_path(target.name)
    old, note = _before(path)
    payload = Payload(
        folder=folder,
        before=old,
        progress=lambda done, total: call.console.progress(f"lock {target.name}", done, total),
    )
    new = seal(target, resolve_payload(target, payload), tools={})
    with disk_errors(path):
        write_atomic(path, encode_lock(new))
    changes = (*note, *describe_change(old, new))
    waiting = unresolved(new)
    lines = [*changes, f"wrote {path}, {new.digest}"]
    if waiting:
        lines.append(f"unresolved: {len(waiting)} of {len(new.sources)}: {', '.join(waiting)}")
        lines.append(f"next: vega-image plan {target.name} says who has them")
    value: Json = {
        "target": target.name,
        "lock": new.digest,
        "epoch": new.epoch,
        "changes": list(changes),
        "unresolved": list(waiting),
    }
    call.console.result(lines, value)
    return 0


def relock_if_gone(call: Call, target: Target, old: Lock) -> Lock:
    """Fetch what a lock names; when a file has left the mirror make a new lock, and say so."""
    with supply_of(call, call.store, label="fetch") as supply:
        made = fetch_or_relock(old, supply, relock=lambda: _made(call, target, supply))
    for line in made.lines:
        call.console.warn(line)
    return made.lock


def _made(call: Call, target: Target, supply: Supply) -> Relocked:
    path = call.factory.lock_path(target.name)
    tools = tool_versions(target.compression.codec)
    return lock_target(target, path=path, supply=supply, tools=tools)
