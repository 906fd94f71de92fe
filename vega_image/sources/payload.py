"""A Windows target's sources as a lock's values: from a folder and the spec, no network.

What the office brings is measured where it lies; a commit is its own pin, and the workstation
fetches it. Whatever nobody has at hand keeps the digest it was locked with, or has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.errors import BytesError, UsageError
from vega_image.lock import Lock, LockedFile, LockedGit, LockedSource
from vega_image.sources.address import split_credentials
from vega_image.sources.iso import measure, resolve, resolve_file
from vega_image.spec import FileSource, GitSource, IsoSource, Source
from vega_image.windows.spec import WindowsTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Where the files are, if anywhere, and what an older lock knows of them.

    `progress` hears (done, total) in bytes of each file that is read.
    """

    folder: Path | None = None
    before: Lock | None = None
    progress: Callable[[int, int], None] = field(default=lambda _done, _total: None)


def resolve_payload(target: WindowsTarget, payload: Payload) -> dict[str, LockedSource]:
    """Resolve every source of a Windows target.

    Raises UsageError PAYLOAD_ABSENT for a folder that is none, BytesError PAYLOAD_WRONG for a
    file that is not the one the spec names by size or digest, and what `measure` raises.
    """
    if payload.folder is not None and not payload.folder.is_dir():
        msg = f"there is no folder {payload.folder}"
        raise UsageError("PAYLOAD_ABSENT", msg, at=str(payload.folder), hint="--payload DIR")
    return {
        name: _resolved(name, source, payload)
        for name, source in sorted(target.sources.items())
    }


def _resolved(name: str, source: Source, payload: Payload) -> LockedSource:
    match source:
        case IsoSource():
            return resolve(source)
        case FileSource():
            return _file(name, source, payload)
        case GitSource():
            return LockedGit(
                kind="git",
                url=split_credentials(source.url)[0],
                commit=source.commit,
                branch=source.branch,
                on_machine=True,
                tree_sha256=None,
            )
        case _:
            # windows_dangling refuses a spec with any other kind.
            raise AssertionError(source.kind)


def _file(name: str, source: FileSource, payload: Payload) -> LockedFile:
    asked = resolve_file(source)
    path = payload.folder / source.file if payload.folder else None
    if path is None or not path.exists():
        return _known(name, asked, payload.before)
    size, sha256 = measure(path, progress=payload.progress)
    for what, wanted, found in (
        ("size", source.size, size),
        ("SHA-256", source.sha256, sha256),
    ):
        if wanted not in {None, found}:
            msg = f"{path}: its {what} is {found}, the spec's source {name} wants {wanted}"
            hint = "get the file again, or correct the spec"
            raise BytesError("PAYLOAD_WRONG", msg, at=str(path), hint=hint)
    return asked.model_copy(update={"size": size, "sha256": sha256})


def _known(name: str, asked: LockedFile, before: Lock | None) -> LockedFile:
    """Keep what was locked of this very file, unless the spec says something else by now."""
    old = before.sources.get(name) if before else None
    if not isinstance(old, LockedFile) or (old.file, old.version) != (
        asked.file,
        asked.version,
    ):
        return asked
    if asked.sha256 not in {None, old.sha256} or asked.size not in {None, old.size}:
        return asked
    return old
