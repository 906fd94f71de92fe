"""All sources of one target: resolved into a lock's values, fetched from a lock's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.anytarget import AnyTarget
from vega_image.digest import PREFIX
from vega_image.errors import LockError
from vega_image.lock import Lock, LockedArchive, LockedDebian, LockedGit, LockedSource
from vega_image.lockfile import unresolved
from vega_image.sources import archive, debian, git, iso
from vega_image.sources.address import join
from vega_image.sources.download import Wanted
from vega_image.sources.fetch import Progress, fetch_files
from vega_image.sources.origin import Origin
from vega_image.spec import (
    ArchiveSource,
    DebianSource,
    FileSource,
    GitSource,
    IsoSource,
    Source,
)
from vega_image.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What resolving and fetching work with; `now` is in seconds since 1970."""

    origin: Origin
    store: Store
    scratch: Path
    now: int
    log: Callable[[str], None]
    progress: Progress = field(default=lambda _done, _total: None)
    offline: bool = False


def resolve_sources(target: AnyTarget, supply: Supply) -> dict[str, LockedSource]:
    """Resolve every source of a spec; raises what its kind of source raises."""
    return {name: _resolve(source, supply) for name, source in sorted(target.sources.items())}


def fetch_sources(lock: Lock, supply: Supply) -> None:
    """Put everything a lock names into the store.

    Raises LockError LOCK_UNRESOLVED, and what fetch_files and git.fetch raise.
    """
    waiting = unresolved(lock)
    if waiting:
        msg = f"nobody could fetch these sources yet: {', '.join(waiting)}"
        hint = f"vega-image lock {lock.target}"
        raise LockError("LOCK_UNRESOLVED", msg, hint=hint, at=waiting[0])
    fetch_files(
        _missing_files(lock, supply),
        store=supply.store,
        offline=supply.offline,
        progress=supply.progress,
        log=supply.log,
    )
    for source in lock.sources.values():
        if isinstance(source, LockedGit):
            git.fetch(
                source,
                store=supply.store,
                scratch=supply.scratch,
                offline=supply.offline,
                log=supply.log,
            )


def _missing_files(lock: Lock, supply: Supply) -> Iterator[Wanted]:
    """Look the mirror up only for a file that is missing: a full store needs no mirror."""
    for source in lock.sources.values():
        if isinstance(source, LockedDebian):
            files = [f for f in source.packages if not supply.store.has(PREFIX + f.sha256)]
            bases = supply.origin.bases() if files and not supply.offline else ()
            for file in files:
                yield Wanted(
                    name=f"{file.package} {file.version}",
                    urls=tuple(join(base, file.pool_path) for base in bases),
                    size=file.size,
                    sha256=file.sha256,
                )
        elif isinstance(source, LockedArchive) and source.size and source.sha256:
            yield Wanted(
                name=source.url, urls=(source.url,), size=source.size, sha256=source.sha256
            )


def _resolve(source: Source, supply: Supply) -> LockedSource:
    match source:
        case DebianSource():
            return debian.resolve(
                source,
                origin=supply.origin,
                scratch=supply.scratch,
                now=supply.now,
                log=supply.log,
            )
        case ArchiveSource():
            return archive.resolve(source)
        case GitSource():
            return git.resolve(
                source, store=supply.store, scratch=supply.scratch, log=supply.log
            )
        case IsoSource():
            return iso.resolve(source)
        case FileSource():
            return iso.resolve_file(source)
