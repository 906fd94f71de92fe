"""How long curate takes on a whole find-db: python benchmarks/finddb_curate.py DB [LINES].

LINES journal lines of synthetic evidence (default 30,000) prove every third of so many
solvers' entries. Prints seconds of wall clock and of this process for each part.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vega_image.finddb.curate import curate
from vega_image.finddb.evidence import Terms, gather, read_journal
from vega_image.finddb.manifest import folder_of
from vega_image.finddb.opening import open_db
from vega_image.finddb.proof import proofs
from vega_image.finddb.registry import registry
from vega_image.finddb.rule import shipped_rules
from vega_image.finddb.text import FindDb

LINES = 30_000
ORACLES = ("integer", "real", "hygiene")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long the block took."""
    wall, own = time.perf_counter(), time.process_time()
    yield
    wall, own = time.perf_counter() - wall, time.process_time() - own
    print(f"{what:<28} {wall:6.2f} s wall {own:6.2f} s process")


def journal(db: FindDb, lines: int) -> bytes:
    """Return lines of MATCH for usable recorded entries."""
    device = {"pci": "p", "subsystem": "s", "vbios": "v", "unique_id": "u", "arch": "gfx906",
              "cu": 60}  # fmt: skip
    shared = {
        "schema": "vega-selftest-journal/1", "trial": "t", "case": "c", "dtype": "FP32",
        "verdict": "MATCH", "source": "device", "suite": "1", "device": device,
        "driver": "d", "algo": "", "time_ms": 1.5, "workspace_bytes": 0,
        "perf_config": "default", "seed": 1, "rep": 0, "error": 0.0, "bound": 1.0,
        "detail": "", "lib_sha256": "ab" * 32, "db_sha256": "",
    }  # fmt: skip
    rows: list[str] = []
    for record in db.records():
        for item in record.items:
            if registry()[item.solver].usable:
                own = {"key": record.key, "direction": record.key[-1]}
                own |= {"solver": item.solver, "solver_ran": item.solver}
                rows += [json.dumps({**shared, **own, "oracle": one}) for one in ORACLES]
        if len(rows) >= lines:
            break
    return "".join(f"{row}\n" for row in rows[:lines]).encode()


def main() -> None:
    """Time everything between two files."""
    path, lines = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else LINES  # noqa: PLR2004
    text = journal(open_db(path), lines) if lines else b""
    with timed("all"):
        with timed("rules"):
            rules = shipped_rules()
        with timed("read the db"):
            db = open_db(path)
        with timed(f"read {lines} journal lines"):
            journals = [read_journal(text, "journal")] if text else []
            evidence = gather(journals, Terms())
            found = proofs(evidence)
        with timed("curate"):
            curated = curate(db, found, rules=rules, profile="safe")
        with timed("folder"):
            folder_of(curated, evidence, rules=rules, terms=Terms(), source=db.data)
    proven, fallback = curated.proven_records, curated.fallback_records
    print(f"{curated.recorded_records} records: {proven} proven, {fallback} fallback")


if __name__ == "__main__":
    main()
