"""The difference between two locks in words a person decides by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from vega_image.debversion import compare
from vega_image.lock import (
    Lock,
    LockedArchive,
    LockedDebian,
    LockedFile,
    LockedGit,
    LockedIso,
    LockedSource,
    PackageFile,
    ReleaseFile,
)


def describe_change(old: Lock | None, new: Lock) -> tuple[str, ...]:
    """Say what a new lock changes: Release dates, packages up/down/new/gone, megabytes.

    Without an old lock it says what the new one holds; two equal locks give `no change`.
    """
    before = dict(old.sources) if old else {}
    lines: list[str] = []
    for name in sorted(before.keys() | new.sources.keys()):
        lines += _source(name, before.get(name), new.sources.get(name))
    tools = old.tools if old else new.tools
    lines += [
        f"tool {name}: {tools.get(name, 'none')} -> {new.tools.get(name, 'none')}"
        for name in sorted(tools.keys() | new.tools.keys())
        if tools.get(name) != new.tools.get(name)
    ]
    if old and old.epoch != new.epoch:
        lines.append(f"epoch: {_day(old.epoch)} -> {_day(new.epoch)}")
    return tuple(lines) or ("no change",)


def _source(name: str, old: LockedSource | None, new: LockedSource | None) -> Iterator[str]:
    if new is None:
        yield f"{name}: gone from the spec"
    elif isinstance(new, LockedDebian):
        before = old if isinstance(old, LockedDebian) else None
        if new != before:
            yield from (f"{name}: {line}" for line in _debian(before, new))
    elif new != old:
        state = "new" if old is None else "changed"
        yield f"{name}: {state}: {_place(new)}{_size(new.size)}"


def _place(source: LockedArchive | LockedGit | LockedIso | LockedFile) -> str:
    match source.kind:
        case "archive" | "git":
            return source.url
        case "iso":
            return source.iso
        case "file":
            return source.file


def _debian(old: LockedDebian | None, new: LockedDebian) -> Iterator[str]:
    known = {release.suite: release for release in old.releases} if old else {}
    for release in new.releases:
        yield from _release(known.get(release.suite), release)
    before = {file.package: file for file in old.packages} if old else {}
    after = {file.package: file for file in new.packages}
    was = f" (was {_sum(before)})" if old and _sum(before) != _sum(after) else ""
    yield f"{_sum(after)}{was}"
    if old:
        for name in sorted(before.keys() | after.keys()):
            yield from _package(before.get(name), after.get(name))


def _release(old: ReleaseFile | None, new: ReleaseFile) -> Iterator[str]:
    if new == old:
        return
    was = f" (was {_day(old.date)})" if old and old.date != new.date else ""
    older = ", OLDER than the locked one" if old and new.date < old.date else ""
    expired = ""
    if new.expired_accepted and new.valid_until is not None:
        expired = f", valid until {_day(new.valid_until)}: expired, accepted by the spec"
    yield f"{new.suite} Release of {_day(new.date)}{was}{older}{expired}"


def _package(old: PackageFile | None, new: PackageFile | None) -> Iterator[str]:
    if old is None and new is not None:
        yield f"new  {new.package} {new.version}{_size(new.size)}"
    elif new is None and old is not None:
        yield f"gone {old.package} {old.version}{_size(-old.size)}"
    elif old is not None and new is not None and old != new:
        order = compare(old.version, new.version)
        word = {-1: "up  ", 0: "same", 1: "down"}[order]
        change = f"{old.version} -> {new.version}" if order else f"{new.version}, other bytes"
        moved = f" (now from {new.suite})" if old.suite != new.suite else ""
        if order or old.sha256 != new.sha256 or moved:
            yield f"{word} {new.package} {change}{_size(new.size - old.size)}{moved}"


def _sum(files: Mapping[str, PackageFile]) -> str:
    return f"{len(files)} packages, {sum(f.size for f in files.values()) / 1e6:.1f} MB"


def _size(count: int | None) -> str:
    return "" if count is None else f" ({count / 1e6:+.1f} MB)"


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d")
