"""From a curated folder to what an image carries: checked once more, then files and variables.

`bake` leaves the folder in the factory as images/TARGET.finddb/; `image_payload` is what a
build makes of it. Both are pure: bytes in, values out.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import Final

from vega_image.errors import UnprovenError, UsageError
from vega_image.finddb.findings import ERROR, KINDS
from vega_image.finddb.lint import lint
from vega_image.finddb.manifest import (
    EVIDENCE,
    Manifest,
    bare_folder,
    check_folder,
    db_name,
    evidence_rows,
)
from vega_image.finddb.profile import PLACES, Applied, Profile, System, allowed, apply
from vega_image.finddb.registry import registry
from vega_image.finddb.text import FindDb

COMPUTE_UNITS = 60
CARD_DB: Final = db_name(COMPUTE_UNITS)


def check_bake(files: Mapping[str, bytes], profile: Profile, at: str) -> Manifest:
    """Check a curated folder against the profile that its target asks for.

    Raises UsageError of `check_folder`, PROFILE_DIFFERS, CARD_DIFFERS, CURATED_FINDINGS,
    CURATED_SOLVER.
    """
    manifest = check_folder(files, at)
    if manifest.profile is not profile:
        msg = f"{at} was curated for profile {manifest.profile}, the target asks for {profile}"
        hint = f"vega-image finddb curate DB --profile {profile} -o DIR"
        raise UsageError("PROFILE_DIFFERS", msg, at=at, hint=hint)
    if manifest.db is not None:
        if manifest.db.name != CARD_DB:
            msg = f"{at} has {manifest.db.name}; MIOpen looks for {CARD_DB} on a Radeon VII"
            hint = "vega-image finddb curate DB -o DIR, without --cu"
            raise UsageError("CARD_DIFFERS", msg, at=at, hint=hint)
        db = FindDb(files[manifest.db.name], f"{at}/{manifest.db.name}")
        _check_db(db, manifest, evidence_rows(files[EVIDENCE]))
    return manifest


def _check_db(db: FindDb, manifest: Manifest, proven: Container[tuple[str, str]]) -> None:
    report = lint(db)
    errors = sorted(code for code in report.counts if KINDS[code][0] == ERROR)
    if errors and db.data:
        msg = f"{db.name}: {report.errors} errors ({', '.join(errors)})"
        hint = f"vega-image finddb lint {db.name}"
        raise UsageError("CURATED_FINDINGS", msg, at=db.name, hint=hint)
    may = allowed(manifest.profile, ())
    for record in db.records():
        names = [item.solver for item in record.items if item.solver not in may]
        strange = next((name for name in names if (record.key, name) not in proven), None)
        if strange:
            msg = f"{db.name}:{record.line}: {strange} is neither proven nor a fallback"
            raise UsageError("CURATED_SOLVER", msg, at=f"{db.name}:{record.line}")


def check_library(manifest: Manifest, sha256: str, at: str) -> None:
    """Raise UnprovenError EVIDENCE_VOID when the evidence is of another library."""
    if manifest.library and manifest.serves and manifest.library != sha256:
        msg = f"{at} is sha256:{sha256}, the evidence is of sha256:{manifest.library}: void"
        hint = "run the solver sweep with this library and curate again"
        raise UnprovenError("EVIDENCE_VOID", msg, at=at, hint=hint)


def image_payload(
    profile: Profile,
    baked: Mapping[str, bytes],
    *,
    solvers: Collection[str] | None = None,
    system: System = System.IMAGE,
    at: str = "the baked find-db",
) -> Applied:
    """Return all files, variables and labels that a find-db puts into an image or a host.

    `baked` are the files of images/TARGET.finddb/; without any the image has the profile's
    variables and a manifest that claims nothing. `solvers` default to MIOpen 3.5.1's. Raises
    UsageError as `check_folder` and `apply`, and PROFILE_DIFFERS.
    """
    names = registry() if solvers is None else solvers
    baked = baked or bare_folder(profile)
    manifest = check_folder(baked, at)
    if manifest.profile is not profile:
        msg = f"{at} is of profile {manifest.profile}, the target asks for {profile}"
        raise UsageError("PROFILE_DIFFERS", msg, at=at, hint="vega-image finddb bake TARGET")
    applied = apply(
        profile,
        names,
        system,
        serves=manifest.serves,
        status=manifest.status,
    )
    folder = PLACES[system].folder
    placed = {f"{folder}/{name}": data for name, data in sorted(baked.items())}
    return Applied(
        profile=profile,
        files={**placed, **applied.files},
        environ=applied.environ,
        labels=applied.labels,
        open=applied.open,
    )
