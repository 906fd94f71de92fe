"""One file from an address; the spec already says what it must be."""

from __future__ import annotations

from vega_image.lock import LockedArchive
from vega_image.sources.address import split_credentials
from vega_image.spec import ArchiveSource


def resolve(source: ArchiveSource) -> LockedArchive:
    """Lock the file of a spec; a password in its address stays out of the lock."""
    bare, _secret = split_credentials(source.url)
    return LockedArchive(kind="archive", url=bare, size=source.size, sha256=source.sha256)
