"""What a target's `finddb:` means for its image: environment, labels, where records come from.

Values only; `engines/find_db.py` makes the files. `bake` leaves a curated folder in
images/TARGET.finddb/, which comes here as `baked` and goes before `finddb.database`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from vega_image.digest import digest_bytes
from vega_image.errors import UsageError
from vega_image.finddb.bake import image_payload
from vega_image.finddb.profile import LABEL, PLACES, Profile, System
from vega_image.lock import Lock, LockedDebian, PackageFile
from vega_image.spec import Target

FOLDER: Final = PLACES[System.IMAGE].folder
ORIGIN: Final = f"{LABEL}origin"
_MIOPEN: Final = "MIOPEN_"


class Origin(StrEnum):
    """Where an image's records come from: `bake`, a locked package, or nowhere."""

    BAKED = "baked"
    PACKAGE = "package"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What is added to an image; `inputs` are the digests of what its records are made from.

    `baked` are the files of a curated folder, `database` the locked package with the find-db
    that is curated in the build.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    baked: Mapping[str, bytes] = field(default_factory=dict)
    database: PackageFile | None = None

    @property
    def inputs(self) -> dict[str, str]:
        """Return what the find-db's step is made from: name -> digest."""
        made = {f"baked:{name}": digest_bytes(data) for name, data in self.baked.items()}
        if self.database is not None:
            made[self.database.package] = f"sha256:{self.database.sha256}"
        return made


def payload(target: Target, lock: Lock, baked: Mapping[str, bytes]) -> Payload:
    """Return what the target's find-db adds; nothing when it asks for none.

    Raises UsageError FINDDB_DEFEATED, FINDDB_PACKAGE and those of `image_payload`.
    """
    spec = target.finddb
    if spec is None:
        return Payload()
    profile = Profile(spec.profile.value)
    applied = image_payload(profile, baked, at=f"images/{target.name}.finddb")
    _refuse_defeat(target, applied.environ)
    database = None if baked else _database(target, lock)
    origin = Origin.BAKED if baked else Origin.NONE if database is None else Origin.PACKAGE
    return Payload(
        env=applied.environ,
        labels={**applied.labels, ORIGIN: origin.value},
        baked=baked,
        database=database,
    )


def with_payload(target: Target, added: Payload) -> Target:
    """Return the target with the payload's environment and labels."""
    if target.image is None:
        return target
    image = target.config.model_copy(
        update={
            "env": {**target.config.env, **added.env},
            "labels": {**target.config.labels, **added.labels},
        }
    )
    return target.model_copy(update={"image": image})


def _database(target: Target, lock: Lock) -> PackageFile | None:
    """Return the locked package with the upstream find-db, None if the spec names none.

    Profile strict has no record without evidence, so it needs none.
    """
    spec = target.finddb
    if spec is None or spec.database is None or spec.profile.value == Profile.STRICT:
        return None
    name = spec.database.package
    source = lock.sources[target.root.source]
    packages = source.packages if isinstance(source, LockedDebian) else ()
    found = next((package for package in packages if package.package == name), None)
    if found is None:
        msg = f"{target.name}: finddb.database.package: the lock has no package {name!r}"
        hint = f"add it to sources.{target.root.source}.packages, `vega-image lock`"
        raise UsageError("FINDDB_PACKAGE", msg, at="finddb.database.package", hint=hint)
    return found


def _refuse_defeat(target: Target, env: Mapping[str, str]) -> None:
    """Let a spec repeat what the profile says, and say nothing else about MIOpen."""
    assert target.finddb is not None
    if target.finddb.profile.value == Profile.UPSTREAM:
        return
    for name, value in sorted(target.config.env.items()):
        if name.startswith(_MIOPEN) and env.get(name) != value:
            msg = f"{target.name}: image.env sets {name}={value}, which the profile does not"
            raise UsageError(
                "FINDDB_DEFEATED", msg, at="image.env", hint=f"remove {name} from image.env"
            )
