"""vega-image finddb curate: a find-db of which every entry has evidence, or is the fallback."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.folder import write_folder
from vega_image.digest import PREFIX, Json
from vega_image.errors import UnprovenError, UsageError
from vega_image.finddb.curate import Curated, curate
from vega_image.finddb.evidence import Evidence, Terms, gather, library_digest, read_journal
from vega_image.finddb.manifest import db_name, folder_of, status
from vega_image.finddb.opening import open_db, read_bytes
from vega_image.finddb.proof import conflicts, proofs
from vega_image.finddb.report import report_lines
from vega_image.finddb.rule import Rules, decode_rules, shipped_rules

SHOWN_JSON = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CurateRequest:
    """What is to be curated, and what counts as evidence."""

    db: Path
    journals: tuple[Path, ...]
    output: Path | None
    profile: str
    library: str | None
    perf_config: str
    cu: int
    test_evidence: bool
    rules: Path | None
    limit: int


def run_curate(call: Call, request: CurateRequest) -> int:
    """Curate and report; writes only when everything was read.

    Raises UnprovenError NOTHING_PROVEN when no record would be left.
    """
    db = open_db(request.db)
    terms = Terms(
        library=digest_of(request.library) if request.library else "",
        perf_config=request.perf_config,
        cu=request.cu,
        recordings=request.test_evidence,
    )
    journals = [read_journal(read_bytes(path), str(path)) for path in request.journals]
    evidence = gather(journals, terms)
    found = proofs(evidence)
    rules = _rules(request.rules)
    curated = curate(db, found, rules=rules, profile=request.profile)
    _warn(call, curated, evidence)
    if not curated.lines:
        raise _nothing(request, evidence)
    files = folder_of(curated, evidence, rules=rules, terms=terms, source=db.data)
    name = db_name(request.cu)
    if request.output:
        write_folder(request.output, files)
    value = {
        **_value(curated, evidence),
        "output": str(request.output / name) if request.output else None,
        "digest": PREFIX + hashlib.sha256(files[name]).hexdigest(),
        "conflicts": conflicts(found),
    }
    written = f"written: {value['output']}" if request.output else "nothing written (-o DIR)"
    lines = [*report_lines(curated, evidence, limit=request.limit), written]
    call.console.result([*lines, f"digest: {value['digest']}"], value)
    return 0


def digest_of(text: str) -> str:
    """Return the 64 hex digits of a library: given as such, or of the file named."""
    digest = library_digest(text.lower())
    if digest is not None:
        return digest
    path = Path(text)
    if not path.is_file():
        msg = f"{text} is neither a file nor sha256:<64 hex digits>"
        raise UsageError("LIBRARY_ABSENT", msg, at=text, hint="--library .../libMIOpen.so.1")
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _rules(folder: Path | None) -> Rules:
    """Return the shipped rules, and those of a folder beside them."""
    if folder is None:
        return shipped_rules()
    if not folder.is_dir():
        msg = f"there is no folder {folder}"
        raise UsageError("RULES_ABSENT", msg, at=str(folder), hint="--rules DIR")
    texts = {
        path.name: read_bytes(path).decode("utf-8", "replace")
        for path in folder.iterdir()
        if path.suffix == ".yaml"
    }
    return Rules([*shipped_rules().all, *decode_rules(texts).all])


def _warn(call: Call, curated: Curated, evidence: Evidence) -> None:
    if evidence.recorded:
        call.console.warn("recordings count as evidence here (--test-evidence): unproven")
    for journal in evidence.journals:
        if journal.cut:
            where = ", ".join(map(str, journal.cut))
            text = (
                f"{journal.name}: {len(journal.cut)} lines were cut short by a kill, left out"
            )
            call.console.warn(f"{text}: {where}")
    if curated.flawed:
        call.console.warn(f"{len(curated.flawed)} lines of the find-db are no records")
    for trial in evidence.unnamed_wrong[:1]:
        count = len(evidence.unnamed_wrong)
        call.console.warn(f"{count} wrong results of solvers nobody named, as {trial.id}")


def _nothing(request: CurateRequest, evidence: Evidence) -> UnprovenError:
    aside = "; ".join(f"{n} lines: {why}" for why, n in sorted(evidence.aside.items()))
    reason = f" ({aside})" if aside else ""
    msg = f"no record of {request.db} is proven under profile {request.profile}{reason}"
    hint = "--evidence JOURNAL of a solver sweep on the card, or --profile safe"
    return UnprovenError("NOTHING_PROVEN", msg, at=str(request.db), hint=hint)


def _value(curated: Curated, evidence: Evidence) -> dict[str, Json]:
    return {
        "profile": curated.profile,
        "status": status(curated, evidence),
        "records": len(curated.lines),
        "kept": len(curated.proven),
        "removed": curated.removed.total(),
        "unproven": curated.fallback_records,
        "lost": len(curated.lost),
        "added": curated.added_records,
        "test_evidence": evidence.recorded,
        "library": evidence.library,
        "aside": dict(sorted(evidence.aside.items())),
        "flawed_lines": [one.line for one in curated.flawed[:SHOWN_JSON]],
        "journals": [
            {
                "id": one.id,
                "file": one.name,
                "lines": len(one.lines),
                "cut_lines": list(one.cut),
            }
            for one in evidence.journals
        ],
        "removed_by": [
            {"solver": solver, "reason": reason, "entries": n}
            for (solver, reason), n in sorted(curated.removed.items())
        ],
        "changes": [
            {"key": x.key, "solver": x.solver, "reason": x.reason, "evidence": x.evidence}
            for x in sorted(curated.changes, key=lambda x: (not x.evidence, x))[:SHOWN_JSON]
        ],
        "lost_keys": sorted(curated.lost)[:SHOWN_JSON],
    }
