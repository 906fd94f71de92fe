"""What every name in a spec stood for on the day it was resolved: images/<target>.lock.json.

Canonical JSON; `digest` covers all the rest, so a hand edit is noticed (exit 3).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vega_image.model import Model
from vega_image.spec import Name, RootPath, Sha256, Source

PoolPath = Annotated[RootPath, Field(pattern=r"^pool/[!-~]+$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class ReleaseFile(Model):
    """A suite's signed Release file, as it was when the lock was made."""

    suite: Name
    date: int = Field(description="its Date, seconds since 1970")
    valid_until: int | None = Field(default=None, description="its Valid-Until, or null")
    sha256: Sha256
    expired_accepted: bool = Field(
        default=False, description="it was past Valid-Until and the spec accepted that"
    )


class PackageFile(Model):
    """One .deb: `pool_path` is relative to the mirror's base."""

    package: Name
    version: str = Field(pattern=r"^[0-9A-Za-z.+:~-]+$")
    architecture: Name
    suite: Name
    pool_path: PoolPath
    size: int = Field(gt=0)
    sha256: Sha256


class LockedDebian(Model):
    """A Debian source, resolved; packages are sorted by name."""

    kind: Literal["debian"]
    releases: tuple[ReleaseFile, ...]
    packages: tuple[PackageFile, ...]


class LockedArchive(Model):
    """A file from an address; `sha256` is null while nobody could fetch it."""

    kind: Literal["archive"]
    url: str
    size: int | None
    sha256: Sha256 | None


class LockedGit(Model):
    """A commit; `tree_sha256` is the digest of its `git archive`, null while unresolved.

    What `on_machine` is fetched by the workstation that builds it, with its submodules: there
    the commit is the pin, and no archive is made of it here.
    """

    kind: Literal["git"]
    url: str
    commit: str | None
    branch: str | None = None
    on_machine: bool = False
    size: int | None = None
    tree_sha256: Sha256 | None


class LockedIso(Model):
    """An installation medium: size in bytes, digest, and its editions by image index."""

    kind: Literal["iso"]
    iso: str
    size: int = Field(gt=0)
    sha256: Sha256
    editions: dict[int, str]


class LockedFile(Model):
    """A file the office brings; size and digest are null while nobody has locked a copy."""

    kind: Literal["file"]
    file: str
    version: str | None = None
    size: int | None
    sha256: Sha256 | None


LockedSource = Annotated[
    LockedDebian | LockedArchive | LockedGit | LockedIso | LockedFile,
    Field(discriminator="kind"),
]


class Lock(Model):
    """One target's lock. `tools` holds versions that decide bytes, e.g. `libzstd: 1.5.7`.

    `asked` is the spec's `sources` as they were, so that a stale lock can say what changed.
    """

    schema_version: Literal[1] = Field(alias="schema")
    target: Name
    spec_digest: Digest = Field(description="of what the spec asked for: sources and epoch")
    epoch: int
    tools: dict[str, str]
    asked: dict[Name, Source] = Field(default_factory=dict)
    sources: dict[Name, LockedSource]
    digest: Digest
