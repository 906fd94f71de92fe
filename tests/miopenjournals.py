"""Make tests/data/journals again: `python -m tests.miopenjournals [FOLDER]`.

Every line is written by a real sweep: children, forcing, read-back, oracles. Only the card and
its MIOpen are replaced (tests/miopenfake.py), so every line says source=replay.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.miopenfake import APPLICABLE
from vega_image.selftest.main import main

FOLDER = Path(__file__).parent / "data" / "journals"
SMALL = ("conv0485", "conv0515", "conv0535")
ALL = tuple(dict.fromkeys(name for names in APPLICABLE.values() for name in names))
REFUSED = ("ConvOclBwdWrW53",)
ONE = ("--case", "conv0515", "--direction", "W")
CASES = tuple(word for case in SMALL for word in ("--case", case))
JOURNALS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "healthy": (("healthy", CASES),),
    "wrong-c3-wgrad": (("wrong", ONE),),
    "mixed": (("healthy", ONE), ("second_card", ONE), ("other_library", ONE)),
    "substituted": (("substituting", ONE),),
}


def journal(name: str) -> bytes:
    """Run a journal's sweeps into one report folder."""
    with tempfile.TemporaryDirectory(prefix="vega-journals-") as folder:
        for device, words in JOURNALS[name]:
            solvers = ("--solvers", ",".join((*ALL, *REFUSED)))
            where = ("--device", f"python:tests.miopenfake:{device}", "--report", folder)
            main([*where, *words, *solvers, "--json"])
        return (Path(folder) / "journal.jsonl").read_bytes()


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for name in JOURNALS:
        (target / f"{name}.jsonl").write_bytes(journal(name))
