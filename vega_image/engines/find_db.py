"""Put a find-db into a tree: a baked one, or one curated here from a locked package."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from vega_image.engines.base import Work
from vega_image.errors import StageError
from vega_image.finddb.bake import check_bake, check_library, image_payload
from vega_image.finddb.curate import curate
from vega_image.finddb.evidence import Evidence, Terms
from vega_image.finddb.manifest import folder_of
from vega_image.finddb.payload import Payload
from vega_image.finddb.probe.library import FOLDERS
from vega_image.finddb.profile import Profile
from vega_image.finddb.rule import shipped_rules
from vega_image.finddb.text import FindDb
from vega_image.rootfs.assemble import merge
from vega_image.rootfs.content import Contents
from vega_image.rootfs.extract import extract_each
from vega_image.rootfs.generated import OWNER, placed
from vega_image.rootfs.tree import Entry, Kind, Tree
from vega_image.spec import FindDbSource, Root, Target
from vega_image.store import Store

_LIBRARY: Final = re.compile(rf"(?:{'|'.join(FOLDERS)})/libMIOpen\.so\.1[.0-9]*")


def with_finddb(tree: Tree, target: Target, added: Payload, work: Work) -> Tree:
    """Return the tree with the find-db's folder of its profile.

    A baked db is checked again, and against the very library in the tree. Raises UsageError
    of `check_bake`, UnprovenError EVIDENCE_VOID, StageError FINDDB_ABSENT, FINDDB_EMPTY.
    """
    spec = target.finddb
    assert spec is not None
    profile = Profile(spec.profile.value)
    files = dict(added.baked)
    extra: list[Entry] = []
    if added.database is not None:
        assert spec.database is not None
        entry = _upstream(spec.database, target, added, work)
        if profile is Profile.UPSTREAM:
            extra = [replace(entry, owner=OWNER)]
        else:
            files = _curated(entry, profile, work)
    if files:
        _check(tree, files, profile, target=target, store=work.store)
    applied = image_payload(profile, files, at=f"images/{target.name}.finddb")
    return merge(tree, Tree.of([*placed(applied.files.items(), work.store), *extra]))


def _upstream(source: FindDbSource, target: Target, added: Payload, work: Work) -> Entry:
    """Take the one file out of its package, in whatever way the root uses that package."""
    assert added.database is not None
    only = Root(source=target.root.source, exclude=("*",), include=(source.path,))
    (part,) = extract_each([added.database], only, work)
    found = next((entry for entry in part.entries if entry.path == source.path), None)
    if found is None or found.kind is not Kind.FILE or found.content is None:
        msg = f"{source.package} {added.database.version} has no file {source.path}"
        raise StageError("FINDDB_ABSENT", msg, at="finddb.database.path")
    return found


def _curated(entry: Entry, profile: Profile, work: Work) -> dict[str, bytes]:
    """Curate without evidence: every problem is served by the fallback, none is proven."""
    assert entry.content is not None
    data = bytes(Contents(work.store).view(entry.content))
    rules, evidence = shipped_rules(), Evidence()
    made = curate(FindDb(data, entry.path), {}, rules=rules, profile=profile.value)
    if made.flawed or not made.lines:
        first = made.flawed[0] if made.flawed else None
        where = f"{entry.path}:{first.line}:{first.column}" if first else entry.path
        msg = f"{where}: {first.message if first else 'no record'}"
        raise StageError("FINDDB_EMPTY" if first is None else "FINDDB_FLAWED", msg, at=where)
    records, lost = len(made.lines), len(made.lost)
    work.log(f"{entry.path}: {made.recorded_records} records, {records} kept, {lost} lost")
    work.log("all served by the fallback; none is proven: there is no evidence of a card")
    return folder_of(made, evidence, rules=rules, terms=Terms(), source=data)


def _check(
    tree: Tree, files: Mapping[str, bytes], profile: Profile, *, target: Target, store: Store
) -> None:
    at = f"images/{target.name}.finddb"
    manifest = check_bake(files, profile, at)
    for entry in _libraries(tree.entries):
        assert entry.content is not None
        sha256 = hashlib.sha256(Contents(store).view(entry.content)).hexdigest()
        check_library(manifest, sha256, entry.path)


def _libraries(entries: Iterable[Entry]) -> list[Entry]:
    return [
        entry
        for entry in entries
        if entry.kind is Kind.FILE and entry.content and _LIBRARY.fullmatch(entry.path)
    ]
