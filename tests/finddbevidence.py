"""Journals and small find-dbs for the tests of evidence; one line at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vega_image.finddb.curate import Curated, curate
from vega_image.finddb.evidence import Evidence, Terms, gather, read_journal
from vega_image.finddb.proof import proofs
from vega_image.finddb.rule import shipped_rules
from vega_image.finddb.text import FindDb

LIBRARY = "ab" * 32
# The gradient of a first layer's weights (conv1 of ResNet), and a 3x3 layer forward.
C3W = "64-112-112-7x7-3-224-224-32-3x3-2x2-1x1-0-NCHW-FP32-W"
FWD = "64-56-56-3x3-64-56-56-32-1x1-1x1-1x1-0-NCHW-FP32-F"
W = "miopenConvolutionBwdWeightsAlgo"
F = "miopenConvolutionFwdAlgo"
DB = (
    f"{C3W}={W}Direct:ConvOclBwdWrW2<1>,2.11,0,{W}Direct,<unused>;"
    f"{W}GEMM:GemmWrwUniversal,2.77,7375872,{W}GEMM,<unused>\n"
    f"{FWD}={F}Winograd:ConvBinWinogradRxSf2x3g1,1.5,0,{F}Winograd,<unused>\n"
).encode()
CARD = {
    "pci": "1002:66af", "subsystem": "1002:081e", "vbios": "113-D3600200-106",
    "unique_id": "0x1", "arch": "gfx906:sramecc+:xnack-", "cu": 60,
}  # fmt: skip
JOURNALS = Path(__file__).parent / "data" / "journals"


def line(solver: str, oracle: str = "integer", *, key: str = C3W, **changed: Any) -> bytes:
    """Return one line of a sweep on a Radeon VII; `changed` replaces fields."""
    value = {
        "schema": "vega-selftest-journal/1", "key": key, "trial": "t", "case": "c",
        "direction": key[-1], "dtype": "FP32", "verdict": "MATCH", "source": "device",
        "suite": "1", "device": CARD, "driver": "6.19.0", "solver": solver,
        "solver_ran": solver, "algo": "", "time_ms": 2.0, "workspace_bytes": 0,
        "perf_config": "default", "oracle": oracle, "seed": 1, "rep": 0, "error": 0.0,
        "bound": 1.0, "detail": "", "lib_sha256": LIBRARY, "db_sha256": "",
    }  # fmt: skip
    card = changed.pop("card", {})
    value |= {"device": {**CARD, **card}} | changed
    return json.dumps(value).encode() + b"\n"


def passed(solver: str, **changed: Any) -> bytes:
    """Return the three lines of a solver that all oracles accept."""
    return b"".join(line(solver, one, **changed) for one in ("integer", "real", "hygiene"))


def evidence(*journals: bytes, **terms: Any) -> Evidence:
    """Gather journals."""
    return gather([read_journal(data, "j.jsonl") for data in journals], Terms(**terms))


def curated(*journals: bytes, db: bytes = DB, profile: str = "safe", **terms: Any) -> Curated:
    """Curate a db with the shipped rules."""
    found = proofs(evidence(*journals, **terms)) if journals else {}
    return curate(FindDb(db, "db"), found, rules=shipped_rules(), profile=profile)


def served(result: Curated, key: str = C3W) -> list[str]:
    """Return the solvers of a problem's record, in order."""
    db = FindDb(result.data, "new")
    return [item.solver for item in db[key].items] if key in db else []
