"""A lock as bytes: sealed, read back only if nobody edited it, and held against its spec.

The file is broken into lines, one per package, so that a git diff reads well; `digest` is
over the value (RFC 8785), never over the file's bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import ValidationError

from vega_image.anytarget import AnyTarget
from vega_image.digest import Json, canonical, digest
from vega_image.errors import LockError, UsageError
from vega_image.lock import Lock, LockedDebian, LockedSource
from vega_image.model import Model
from vega_image.sources.address import split_credentials
from vega_image.spec import ArchiveSource, GitSource, Source


def spec_digest(target: AnyTarget) -> str:
    """Digest what a lock depends on: the sources and the epoch.

    Nothing else of a spec is in it: an edited label or layer asks for a new image, not for
    other packages, and the plan sees it by itself.
    """
    sources = {name: _dump(source) for name, source in _asked(target).items()}
    return digest({"epoch": target.epoch, "sources": sources})


def seal(
    target: AnyTarget, sources: Mapping[str, LockedSource], *, tools: Mapping[str, str]
) -> Lock:
    """Make the lock of resolved sources, with its epoch and its digest of itself.

    Raises UsageError NO_EPOCH when neither the spec nor a Release file gives a time.
    """
    body: dict[str, object] = {
        "schema_version": 1,
        "target": target.name,
        "spec_digest": spec_digest(target),
        "epoch": _epoch(target, sources),
        "tools": dict(tools),
        "asked": _asked(target),
        "sources": dict(sources),
    }
    draft = Lock.model_validate({**body, "digest": digest("")})
    return draft.model_copy(update={"digest": _seal_of(draft)})


def encode_lock(lock: Lock) -> bytes:
    """Return the text of the lock file."""
    return ("\n".join(_lines(_dump(lock))) + "\n").encode()


def decode_lock(data: bytes, *, at: str) -> Lock:
    """Read a lock file.

    Raises LockError LOCK_MALFORMED when it is no lock, LOCK_EDITED when its digest is not
    that of its content.
    """
    try:
        lock = Lock.model_validate_json(data)
        value = cast("Json", json.loads(data, object_pairs_hook=_once))
        edited = canonical(value) != canonical(_dump(lock)) or lock.digest != _seal_of(lock)
    except (ValueError, RecursionError) as error:
        msg = f"{at}: not a lock file: {_reason(error)}"
        raise LockError("LOCK_MALFORMED", msg, hint=_hint(at), at=at) from None
    if edited:
        msg = f"{at}: edited by hand: its digest is not that of its content"
        raise LockError("LOCK_EDITED", msg, hint=_hint(at), at=at)
    return lock


def check_lock(lock: Lock, target: AnyTarget, *, tools: Mapping[str, str]) -> None:
    """Hold a lock against today's spec and tools; raises LockError LOCK_STALE."""
    changes = [*_spec_changes(lock, target), *_tool_changes(lock.tools, tools)]
    if not changes and lock.spec_digest != spec_digest(target):
        changes = ["epoch: the spec says something else now"]
    if changes:
        msg = "\n  ".join([f"the lock of {target.name} is stale:", *changes])
        hint = f"vega-image lock {target.name}"
        raise LockError("LOCK_STALE", msg, hint=hint, at=target.name)


def unresolved(lock: Lock) -> tuple[str, ...]:
    """Name the sources whose digest nobody could learn yet, sorted."""
    return tuple(sorted(name for name, source in lock.sources.items() if _open(source)))


def _asked(target: AnyTarget) -> dict[str, Source]:
    """Copy the spec's sources without the passwords that an address may hold."""
    return {
        name: source.model_copy(update={"url": split_credentials(source.url)[0]})
        if isinstance(source, ArchiveSource | GitSource)
        else source
        for name, source in target.sources.items()
    }


def _open(source: LockedSource) -> bool:
    match source.kind:
        case "debian" | "iso":
            return False
        case "archive" | "file":
            return source.sha256 is None or source.size is None
        case "git":
            return source.commit is None or not (source.on_machine or source.tree_sha256)


def _dump(model: Model) -> Json:
    """Leave defaults out: a field added later must not break the digest of an old lock."""
    return cast("Json", model.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def _seal_of(lock: Lock) -> str:
    value = cast("dict[str, Json]", _dump(lock))
    return digest({key: item for key, item in value.items() if key != "digest"})


def _epoch(target: AnyTarget, sources: Mapping[str, LockedSource]) -> int:
    if target.epoch is not None:
        return target.epoch
    debian = [source for source in sources.values() if isinstance(source, LockedDebian)]
    dates = [release.date for source in debian for release in source.releases]
    if not dates:
        msg = f"{target.name}: no Release file gives a date, so the spec must"
        hint = "write `epoch: SECONDS` in the spec"
        raise UsageError("NO_EPOCH", msg, hint=hint, at=target.name)
    return max(dates)


def _spec_changes(lock: Lock, target: AnyTarget) -> Iterator[str]:
    if lock.target != target.name:
        yield f"it was made for {lock.target}"
    before, after = lock.asked, _asked(target)
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield f"source {name}: new in the spec"
        elif name not in after:
            yield f"source {name}: gone from the spec"
        else:
            old = before[name].model_dump(mode="json")
            new = after[name].model_dump(mode="json")
            for key in sorted(old.keys() | new.keys()):
                yield from _field_change(f"source {name}: {key}", old.get(key), new.get(key))


def _field_change(what: str, old: Json, new: Json) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, list) and isinstance(new, list) and _sets_differ(old, new):
        signs = [f"+{_short(i)}" for i in new if i not in old]
        signs += [f"-{_short(i)}" for i in old if i not in new]
        yield f"{what}: {' '.join(signs)}"
    else:
        yield f"{what}: {_short(old)} -> {_short(new)}"


def _sets_differ(old: list[Json], new: list[Json]) -> bool:
    return any(item not in new for item in old) or any(item not in old for item in new)


def _tool_changes(locked: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(locked.keys() | here.keys()):
        old, new = locked.get(name), here.get(name)
        if old != new:
            yield f"tool {name}: {old or 'not recorded'} -> {new or 'no longer used'}"


def _short(value: Json) -> str:
    return value if isinstance(value, str) else canonical(value).decode()


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    table = dict(pairs)
    if len(table) != len(pairs):
        msg = "a key is there twice"
        raise ValueError(msg)
    return table


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        return f"{where}: {first['msg']}" if where else first["msg"]
    return str(error)


def _hint(at: str) -> str:
    return f"vega-image lock {at.rpartition('/')[2].removesuffix('.lock.json')}"


def _lines(value: Json, *, indent: str = "", end: str = "") -> Iterator[str]:
    """Break tables and lists that hold other ones; leave the innermost on one line."""
    table = isinstance(value, Mapping)
    items = list(value.items()) if isinstance(value, Mapping) else _numbered(value)
    if not any(isinstance(item, list | dict) for _key, item in items):
        yield indent + canonical(value).decode() + end
        return
    yield indent + ("{" if table else "[")
    for index, (key, item) in enumerate(sorted(items) if table else items):
        comma = "," if index < len(items) - 1 else ""
        inner = list(_lines(item, indent=indent + " ", end=comma))
        label = f"{canonical(key).decode()}: " if table else ""
        yield f"{indent} {label}{inner[0].lstrip()}"
        yield from inner[1:]
    yield indent + ("}" if table else "]") + end


def _numbered(value: Json) -> list[tuple[str, Json]]:
    return [("", item) for item in value] if isinstance(value, list) else []
