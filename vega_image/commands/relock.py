"""vega-image lock, and the relock that `build` does by itself when files left the mirror."""

from __future__ import annotations

from vega_image.clioptions import Call
from vega_image.commands.lock import lock_target
from vega_image.digest import Json
from vega_image.fetching import supply_of
from vega_image.lock import Lock
from vega_image.oci.compress import tool_versions
from vega_image.sources.locked import Supply
from vega_image.sources.relock import Relocked, fetch_or_relock
from vega_image.spec import Target


def lock(call: Call, name: str) -> int:
    """Resolve a target's sources, write its lock, print the difference."""
    factory = call.factory
    target = factory.target(name)
    call.console.say(f"{name}: resolving its sources")
    with supply_of(call, call.store, label=f"lock {name}", log=call.console.line) as supply:
        made = _made(call, target, supply)
    value: Json = {
        "target": name,
        "lock": made.lock.digest,
        "epoch": made.lock.epoch,
        "changes": list(made.lines),
    }
    path = f"images/{name}.lock.json"
    call.console.result([*made.lines, f"wrote {path}, {made.lock.digest}"], value)
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
