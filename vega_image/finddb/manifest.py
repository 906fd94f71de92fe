"""What stands beside a curated db: where it came from, what is proven, and by which lines.

`manifest.json` has counts, digests and the journals; `evidence.tsv` names, for every proven
entry, the journal lines it rests on. The status is `proven` only if every entry has evidence
from a gfx906; recordings never make it more than `unproven`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, ValidationError

from vega_image.errors import UsageError
from vega_image.finddb.curate import Curated
from vega_image.finddb.evidence import Evidence, Terms
from vega_image.finddb.profile import Profile
from vega_image.finddb.proof import bindings
from vega_image.finddb.rule import Rules
from vega_image.model import Model

MANIFEST, EVIDENCE = "manifest.json", "evidence.tsv"
Status = Literal["proven", "partly-proven", "unproven"]
PROVEN: Final = "proven"
PARTLY: Final = "partly-proven"
UNPROVEN: Final = "unproven"
NOMINAL = "not measured: they only order the fallback of records that had none"
Hex = r"^[0-9a-f]{64}$"
COLUMNS: Final = ("key", "solver", "evidence")


class DbFile(Model):
    """A find-db by its bytes."""

    name: str
    sha256: str = Field(pattern=Hex)
    records: int
    items: int


class Source(Model):
    """The db that was curated."""

    sha256: str = Field(pattern=Hex)
    records: int


class Counts(Model):
    """How many records and entries, by what they rest on."""

    proven_records: int
    proven_entries: int
    fallback_records: int
    removed_entries: int
    lost_records: int


class JournalFile(Model):
    """A journal that was read; `cut_lines` are those that a kill cut short."""

    id: str
    sha256: str = Field(pattern=Hex)
    lines: int
    cut_lines: list[int]


class Binding(Model):
    """What a proof is of beside problem and solver."""

    library: str
    perf_config: str
    device: str
    driver: str
    source: Literal["device", "replay", "cpu"]


class Manifest(Model):
    """manifest.json. `library` is the digest that the evidence binds, empty without any."""

    schema_: Literal["vega-finddb-manifest/1"] = Field(
        default="vega-finddb-manifest/1", alias="schema"
    )
    status: Status
    profile: Profile = Field(strict=False)
    test_evidence: bool
    db: DbFile | None
    source: Source | None
    counts: Counts
    library: str
    perf_config: str
    serves: list[str]
    evidence: list[JournalFile]
    bindings: list[Binding]
    evidence_sha256: str
    aside: dict[str, int]
    rules: list[str]
    fallback_times: str = NOMINAL


def db_name(cu: int) -> str:
    """Return the file that MIOpen looks for on a gfx906.

    >>> db_name(60)
    'gfx906_60.HIP.fdb.txt'
    """
    return f"gfx906_{cu}.HIP.fdb.txt"


def folder_of(
    curated: Curated, evidence: Evidence, *, rules: Rules, terms: Terms, source: bytes
) -> dict[str, bytes]:
    """Return the files of a curated folder: the db, its manifest, its evidence."""
    data = curated.data
    rows = ["\t".join(row) for row in (COLUMNS, *curated.proven)]
    proofs = "".join(f"{row}\n" for row in rows).encode()
    name = db_name(terms.cu)
    manifest = Manifest(
        status=status(curated, evidence),
        profile=Profile(curated.profile),
        test_evidence=terms.recordings,
        db=DbFile(
            name=name, sha256=_hex(data), records=len(curated.lines), items=curated.items
        ),
        source=Source(sha256=_hex(source), records=curated.recorded_records),
        counts=_counts(curated),
        library=evidence.library,
        perf_config=terms.perf_config,
        serves=sorted(curated.serves),
        evidence=_journals(evidence),
        bindings=[Binding.model_validate(one) for one in bindings(evidence)],
        evidence_sha256=_hex(proofs),
        aside=dict(sorted(evidence.aside.items())),
        rules=[rule.id for rule in rules.all],
    )
    return {name: data, MANIFEST: encode(manifest), EVIDENCE: proofs}


def status(curated: Curated, evidence: Evidence) -> Status:
    """Say what the whole db may be called."""
    if not curated.proven or evidence.recorded:
        return UNPROVEN
    return PARTLY if curated.fallback_records else PROVEN


def bare_folder(profile: Profile) -> dict[str, bytes]:
    """Return the folder of a profile without a db: a manifest that claims nothing."""
    none = Counts(
        proven_records=0,
        proven_entries=0,
        fallback_records=0,
        removed_entries=0,
        lost_records=0,
    )
    manifest = Manifest(
        status=UNPROVEN, profile=profile, test_evidence=False, db=None, source=None,
        counts=none, library="", perf_config="", serves=[], evidence=[], bindings=[],
        evidence_sha256=_hex(b""), aside={}, rules=[],
    )  # fmt: skip
    return {MANIFEST: encode(manifest)}


def encode(manifest: Manifest) -> bytes:
    """Write a manifest; equal ones give equal bytes."""
    value = manifest.model_dump(mode="json", by_alias=True)
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def decode(data: bytes, at: str) -> Manifest:
    """Read a manifest; raises UsageError MANIFEST_INVALID."""
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        msg = f"{at}: {where}: {first['msg']}"
        raise UsageError("MANIFEST_INVALID", msg, at=at, hint="curate again") from None


def check_folder(files: Mapping[str, bytes], at: str) -> Manifest:
    """Check that a curated folder is whole and what its manifest says.

    Raises UsageError MANIFEST_ABSENT, MANIFEST_INVALID, CURATED_CHANGED, MANIFEST_CONTRADICTS.
    """
    if MANIFEST not in files:
        msg = f"{at}: no {MANIFEST}"
        raise UsageError(
            "MANIFEST_ABSENT", msg, at=at, hint="vega-image finddb curate DB -o DIR"
        )
    manifest = decode(files[MANIFEST], f"{at}/{MANIFEST}")
    wanted = {} if manifest.db is None else {
        manifest.db.name: manifest.db.sha256, EVIDENCE: manifest.evidence_sha256,
    }  # fmt: skip
    for name, sha256 in wanted.items():
        if name not in files:
            msg = f"{at}: the manifest names {name}, which is not here"
            raise UsageError("CURATED_CHANGED", msg, at=f"{at}/{name}", hint="curate again")
        if _hex(files[name]) != sha256:
            msg = f"{at}/{name}: not the bytes that the manifest is of"
            raise UsageError("CURATED_CHANGED", msg, at=f"{at}/{name}", hint="curate again")
    extra = sorted(set(files) - {MANIFEST, *wanted})
    if extra:
        msg = f"{at}: {extra[0]} is not of a curated folder"
        raise UsageError(
            "CURATED_CHANGED", msg, at=f"{at}/{extra[0]}", hint=f"remove {extra[0]}"
        )
    wrong = overstated(manifest) or _contradicts(manifest, files.get(EVIDENCE, b""))
    if wrong:
        msg = f"{at}/{MANIFEST}: {wrong}"
        raise UsageError(
            "MANIFEST_CONTRADICTS", msg, at=f"{at}/{MANIFEST}", hint="curate again"
        )
    return manifest


def overstated(manifest: Manifest) -> str:
    """Say how a manifest claims more than its own counts and bindings bear; "" if it does not.

    >>> overstated(decode(bare_folder(Profile.SAFE)[MANIFEST], "m"))
    ''
    """
    recorded = any(one.source != "device" for one in manifest.bindings)
    if not manifest.counts.proven_entries or not manifest.bindings or recorded:
        most: Status = UNPROVEN
    else:
        most = PARTLY if manifest.counts.fallback_records else PROVEN
    ranks = (UNPROVEN, PARTLY, PROVEN)
    if ranks.index(manifest.status) <= ranks.index(most):
        return ""
    return f"it says {manifest.status}, but what it counts makes it {most} at most"


def evidence_rows(data: bytes) -> dict[tuple[str, str], str]:
    """Return the lines that each proven entry (key, solver) rests on, of evidence.tsv."""
    rows = [row.split("\t") for row in data.decode("utf-8", "replace").splitlines()[1:]]
    return {(row[0], row[1]): row[2] for row in rows if len(row) == len(COLUMNS)}


def _contradicts(manifest: Manifest, evidence: bytes) -> str:
    """Say where the counts are not those of the files; "" if they are."""
    counts, rows = manifest.counts, evidence_rows(evidence)
    records = manifest.db.records if manifest.db else 0
    if counts.proven_records + counts.fallback_records != records:
        return f"{records} records are neither proven nor served by the fallback"
    if counts.proven_entries != len(rows):
        return f"{counts.proven_entries} proven entries, {EVIDENCE} has {len(rows)}"
    if set(manifest.serves) != {solver for _, solver in rows}:
        return f"the solvers it serves are not those of {EVIDENCE}"
    return ""


def _counts(curated: Curated) -> Counts:
    return Counts(
        proven_records=curated.proven_records,
        proven_entries=len(curated.proven),
        fallback_records=curated.fallback_records,
        removed_entries=curated.removed.total(),
        lost_records=len(curated.lost),
    )


def _journals(evidence: Evidence) -> list[JournalFile]:
    return [
        JournalFile(
            id=journal.id,
            sha256=journal.sha256,
            lines=len(journal.lines),
            cut_lines=list(journal.cut),
        )
        for journal in evidence.journals
    ]


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
