"""vega-image finddb bake: a curated find-db becomes part of what a target is built from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.curate import digest_of
from vega_image.commands.finddb.folder import read_folder, write_folder
from vega_image.digest import Json, digest_bytes
from vega_image.errors import UsageError
from vega_image.finddb.bake import check_bake, check_library, image_payload
from vega_image.finddb.manifest import MANIFEST, Manifest, bare_folder
from vega_image.finddb.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class BakeRequest:
    """What to bake into which target; without `curated` only profile upstream can be baked."""

    target: str
    curated: Path | None
    library: str | None


def run_bake(call: Call, request: BakeRequest) -> int:
    """Check a curated folder and put it beside the target's spec.

    Raises UsageError FINDDB_NOT_ASKED, CURATED_ABSENT and those of `check_bake`;
    UnprovenError EVIDENCE_VOID.
    """
    target = call.factory.target(request.target)
    if target.finddb is None:
        msg = f"{target.name} has no find-db: its spec has no finddb:"
        hint = f"add `finddb: {{profile: safe}}` to images/{target.name}.yaml"
        raise UsageError("FINDDB_NOT_ASKED", msg, at=target.name, hint=hint)
    profile = Profile(target.finddb.profile.value)
    files = _files(request, profile)
    manifest = check_bake(files, profile, str(request.curated or "upstream"))
    if request.library:
        check_library(manifest, digest_of(request.library), request.library)
    applied = image_payload(profile, files)
    folder = call.factory.root / "images" / f"{target.name}.finddb"
    write_folder(folder, files)
    value = _value(target.name, folder, manifest, files)
    value["environment"] = dict(applied.environ)
    call.console.result(_lines(folder, manifest), value)
    return 0


def _files(request: BakeRequest, profile: Profile) -> dict[str, bytes]:
    if request.curated is not None:
        return read_folder(request.curated)
    if profile is Profile.UPSTREAM:
        return bare_folder(profile)
    msg = f"{request.target} asks for profile {profile}: which curated folder is to be baked?"
    hint = f"vega-image finddb bake {request.target} --from DIR"
    raise UsageError("CURATED_ABSENT", msg, at=request.target, hint=hint)


def _value(
    name: str, folder: Path, manifest: Manifest, files: dict[str, bytes]
) -> dict[str, Json]:
    counts = manifest.counts
    return {
        "target": name,
        "folder": str(folder),
        "profile": manifest.profile.value,
        "status": manifest.status,
        "test_evidence": manifest.test_evidence,
        "records": manifest.db.records if manifest.db else 0,
        "proven": counts.proven_records,
        "unproven": counts.fallback_records,
        "manifest": digest_bytes(files[MANIFEST]),
        "evidence": [one.id for one in manifest.evidence],
        "files": [
            {"name": name, "bytes": len(data), "digest": digest_bytes(data)}
            for name, data in sorted(files.items())
        ],
    }


def _lines(folder: Path, manifest: Manifest) -> list[str]:
    proven, fallback = manifest.counts.proven_records, manifest.counts.fallback_records
    records = manifest.db.records if manifest.db else 0
    return [
        f"{folder}: profile {manifest.profile}, {manifest.status}",
        f"{records} records: {proven} proven, {fallback} served by the fallback",
        f"evidence: {', '.join(one.id for one in manifest.evidence) or 'none'}",
    ]
