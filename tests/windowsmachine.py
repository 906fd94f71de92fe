"""Machines of tests/data/windows, laid out so that a reader finds them as on a disk."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vega_image.selftest import gate
from vega_image.selftest.identity import suite_version
from vega_image.selftest.windows.folder import read_folder
from vega_image.selftest.windows.keying import key_of

DATA = Path(__file__).parent / "data" / "windows"
GATHERED = 1_796_083_500.0
NOW = GATHERED + 600
CASES = sorted(path.name for path in DATA.iterdir() if path.is_dir())


@dataclass(frozen=True)
class Machine:
    """A machine's folder of facts, where its record is, and what its case says."""

    facts: Path
    state: Path
    case: dict[str, Any]


def lay(name: str, folder: Path) -> Machine:
    """Lay a case over the good machine, write the record it finds."""
    facts = folder / "facts"
    shutil.copytree(DATA / "good", facts)
    shutil.copytree(DATA / name, facts, dirs_exist_ok=True)
    machine = Machine(
        facts, folder / "state.json", json.loads((facts / "case.json").read_text())
    )
    recipe = machine.case["record"]
    if recipe is not None:
        machine.state.write_text(recipe.get("text") or record(recipe))
    return machine


def good_key() -> gate.Key:
    """Return the key of the good machine."""
    return key_of(read_folder(DATA / "good"), suite=suite_version())


def record(recipe: dict[str, Any]) -> str:
    """Return a record as a recipe of case.json wants it; the key is the case's own."""
    key = replace(good_key(), **recipe.get("change", {}))
    written = GATHERED + recipe.get("written", 60)
    until = GATHERED + recipe.get("until", 10_000)
    begun = gate.begin(
        key,
        recipe.get("level", "r2"),
        source=recipe.get("source", "device"),
        boot=recipe.get("boot", "57"),
        span=(written, until),
    )
    ended = begun if recipe.get("running") else gate.finish(begun, recipe["exit"], now=written)
    return gate.encode(ended)
