"""`finddb audit` against the real libMIOpen 7.2.4 of Debian, as a user calls it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.miopenroot import RECORDS, TESTS_DATA, fetched, locked, miopen_root, unpack
from vega_image.finddb.fallback import SOLVERS as SOLVERS_OF_FALLBACK
from vega_image.finddb.opening import open_db
from vega_image.finddb.probe.build import tools
from vega_image.finddb.probe.card import Card
from vega_image.finddb.probe.cell import Cell, Limits
from vega_image.finddb.probe.library import find_library
from vega_image.finddb.probe.session import Session
from vega_image.finddb.profile import Profile, System, apply
from vega_image.finddb.registry import registry
from vega_image.finddb.sample import sample
from vega_image.finddb.survey import MODELS, Survey
from vega_image.finddb.text import parse_line
from vega_image.store import Store

__all__ = ["miopen_root"]
pytestmark = pytest.mark.needs("gcc", "network")
VEGA_IMAGE = Path(sys.executable).with_name("vega-image")
SCHEMA = Path(__file__).parents[2] / "vega_image/schemas/finddb-audit.schema.json"
# Facts about the real file and library: docs/architecture.md, "The find-db".
ALL, DEAD, SOLVERS = 120_454, 54_283, 59
CONV1_W = "64-112-112-7x7-3-224-224-32-3x3-2x2-1x1-0-NCHW-FP32-W"
MLIR = re.compile(r"ConvMlirIgemm(Fwd|Bwd|WrW)")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


def audited(root: Path, store: Path, *words: str, db: Path = RECORDS, code: int = 9) -> Any:
    argv = [str(VEGA_IMAGE), "finddb", "audit", "--json", "-q", "--store", str(store)]
    argv += ["--root", str(root), "--db", str(db), *words]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    assert done.returncode == code, done.stdout.decode()
    value = json.loads(done.stdout)
    if "error" not in value:
        jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(value)
    return value


@pytest.fixture(scope="module")
def whole(miopen_root: Path, store: Path) -> Any:
    """The audit of all records of the slice."""
    return audited(miopen_root, store)


def only_mlir(path: Path) -> set[str]:
    return {
        record.key
        for record in open_db(path).records()
        if all(MLIR.fullmatch(item.solver) for item in record.items)
    }


def test_records_that_name_only_mlir_are_dead(whole: Any) -> None:
    dead = only_mlir(RECORDS)
    assert whole["problems"] == 622
    assert whole["dead_records"] == len(dead) == whole["problems"] - whole["usable"]
    assert set(whole["dead_keys"]) <= dead
    # Of the whole file it is 45.1 %.
    assert abs(len(dead) / 622 - DEAD / ALL) < 0.05


def test_the_solvers_that_apply_are_those_recorded(whole: Any) -> None:
    assert len(whole["applicable_solvers"]) == SOLVERS
    assert len(whole["registered_solvers"]) == 102
    assert not any("Mlir" in name or "Xdlops" in name for name in whole["applicable_solvers"])


def test_the_kernels_that_debian_strips_are_found(whole: Any) -> None:
    missing = {row["solver"]: row["kernels"] for row in whole["missing_kernels"]}
    assert len(missing) == 30
    assert all(name.endswith(".s") for kernels in missing.values() for name in kernels)
    assert missing["ConvAsm3x3U"] == ["conv3x3.s"]
    assert {name for name in missing if "Ocl" in name or "Gemm" in name} == {
        name for name in missing if name.startswith("ConvAsmImplicitGemm")
    }
    present = set(whole["applicable_solvers"]) - set(missing)
    assert {"ConvDirectNaiveConvWrw", "GemmWrwUniversal", "fft"} <= present
    assert whole["unloadable"] == []
    assert set(whole["broken_picks"]) <= set(missing)
    assert whole["served"] == whole["usable"] - sum(whole["broken_picks"].values())


def test_three_channels_and_kinds_add_up(whole: Any) -> None:
    for key in ("problems", "usable", "served"):
        assert sum(row[key] for row in whole["by_kind"]) == whole[key]
    assert sum(row["usable"] for row in whole["c3"].values()) == whole["c3_usable"]
    records = open_db(RECORDS).records()
    assert whole["c3_problems"] == sum(r.problem.first_layer_rgb for r in records)
    assert 0 < whole["c3_usable"] < whole["c3_problems"]


def test_a_heuristic_of_another_chip_is_named(
    miopen_root: Path, store: Path, tmp_path: Path, whole: Any
) -> None:
    """Without the models nothing is borrowed; with them that for gfx908 is read."""
    assert whole["fallback"]["asked"] > 100
    assert {row["solver"] for row in whole["fallback"]["picks"]} >= {"GemmWrwUniversal"}
    assert whole["fallback"]["borrowed"] == []
    root = tmp_path / "root"
    shutil.copytree(miopen_root, root, symlinks=True, copy_function=os.link)
    folder = root / "usr/share/miopen/db"
    folder.mkdir(parents=True)
    for name in ("gfx908.tn.model", "gfx908_metadata.tn.model", "gfx906.tn.model"):
        (folder / name).write_text("{}")
    with_models = audited(root, store, "--sample", "60")
    assert "gfx908_metadata.tn.model" in with_models["fallback"]["borrowed"]
    assert not any("gfx906" in name for name in with_models["fallback"]["borrowed"])


def test_another_card_gets_another_set(miopen_root: Path, store: Path, whole: Any) -> None:
    """MIOpen caps these solvers' workspace at 2 GB for 60 CUs or fewer (SWDEV-203031)."""
    more = audited(miopen_root, store, "--cu", "64")
    changed = {
        name: more["applicable_problems"][name] - count
        for name, count in whole["applicable_problems"].items()
        if more["applicable_problems"][name] != count
    }
    assert set(changed) >= {f"ConvWinograd3x3MultipassWrW<3-{n}>" for n in (4, 5, 6)}
    assert all(name.startswith("ConvWinograd3x3Multipass") for name in changed)
    assert min(changed.values()) > 0
    other = audited(miopen_root, store, "--arch", "gfx908", "--cu", "120")
    assert {n for n in other["applicable_solvers"] if "Xdlops" in n}
    assert "ConvAsmImplicitGemmV4R1DynamicFwd" not in other["applicable_solvers"]
    assert other["arch"] == "gfx908"


def test_a_solver_switched_off_is_no_longer_offered(
    miopen_root: Path, store: Path, whole: Any
) -> None:
    off = audited(miopen_root, store, "--env", "MIOPEN_DEBUG_CONV_GEMM=0")
    assert not [name for name in off["applicable_solvers"] if name.startswith("Gemm")]
    assert off["usable"] < whole["usable"]
    assert off["environment"] == {"MIOPEN_DEBUG_CONV_GEMM": "0"}


def test_the_profile_switches_off_every_solver_without_kernels(
    miopen_root: Path, store: Path, whole: Any
) -> None:
    assert not any(row["off"] for row in whole["missing_kernels"])
    environ = apply(Profile.SAFE, registry(), System.IMAGE).environ
    words = [word for pair in environ.items() for word in ("--env", "=".join(pair))]
    safe = audited(miopen_root, store, *words)
    assert set(safe["applicable_solvers"]) == set(SOLVERS_OF_FALLBACK)
    lacking = [row["solver"] for row in whole["missing_kernels"]]
    assert [row["solver"] for row in safe["missing_kernels"]] == lacking
    assert all(row["off"] for row in safe["missing_kernels"])
    assert safe["broken_picks"] == {}
    some = audited(miopen_root, store, "--env", "MIOPEN_DEBUG_CONV_DIRECT_ASM_3X3U=0")
    assert [r["solver"] for r in some["missing_kernels"] if r["off"]] == ["ConvAsm3x3U"]


def test_a_sample_is_quick_and_still_shows_every_solver(miopen_root: Path, store: Path) -> None:
    first = audited(miopen_root, store, "--sample", "40", "--threshold", "0.1", code=0)
    assert (first["problems"], first["sampled"]) == (40, 40)
    assert len(first["applicable_solvers"]) == SOLVERS
    assert first["passes"]
    chosen = sample(open_db(RECORDS), 40).counted
    dead = only_mlir(RECORDS)
    assert first["dead_records"] == sum(record.key in dead for record in chosen)


def test_a_database_of_fallbacks_is_served_whole(
    miopen_root: Path, store: Path, tmp_path: Path
) -> None:
    naive = {"F": "Fwd", "B": "Bwd", "W": "Wrw"}
    stems = {"F": "Fwd", "B": "BwdData", "W": "BwdWeights"}
    db = tmp_path / "gfx906_60.HIP.fdb.txt"
    lines = []
    for record in open_db(RECORDS).records():
        d = record.problem.direction
        algorithm = f"miopenConvolution{stems[d]}AlgoDirect"
        lines.append(f"{record.key}=ConvDirectNaiveConv{naive[d]}:1,0,{algorithm}\n")
    db.write_text("".join(lines))
    found = audited(miopen_root, store, db=db, code=0)
    assert found["usable"] == found["served"] == found["problems"] == len(lines)
    assert found["fallback"]["asked"] == 0


def test_a_record_that_breaks_the_call_is_told(
    miopen_root: Path, store: Path, tmp_path: Path
) -> None:
    good, other = list(open_db(RECORDS).records())[:2]
    wrong = "miopenConvolutionFwdAlgoNone"
    db = tmp_path / "db.txt"
    text = f"{good.key}=GemmFwdRest:1,0,{wrong}\nno record\n={good.key}\n{other.written()}\n"
    db.write_text(text)
    found = audited(miopen_root, store, db=db)
    assert found["refused_records"] == 1
    assert good.key in found["dead_keys"]


@pytest.fixture(scope="module")
def survey(miopen_root: Path, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Survey:
    folder = tmp_path_factory.mktemp("cell")
    library = find_library(miopen_root)
    cell = Cell(folder=folder, library=library, card=Card(), limits=Limits())
    cell.furnish(tools(Store(store)))
    cell.show_models(MODELS, folder=None)
    return Survey(cell=cell, names=Session(cell=cell).names())


def test_a_solver_taken_out_of_a_record_is_no_longer_offered(survey: Survey) -> None:
    """As curate takes out a wrong solver for ResNet's first weight gradient."""
    wrong, gemm = "ConvOclBwdWrW2<1>", "GemmWrwUniversal"
    stem = "miopenConvolutionBwdWeightsAlgo"
    before = parse_line(
        f"{CONV1_W}={wrong}:2.1,0,{stem}Direct;{gemm}:2.7,7375872,{stem}GEMM".encode()
    )
    after = parse_line(f"{CONV1_W}={gemm}:2.7,7375872,{stem}GEMM".encode())
    (first,) = survey.serves([before])
    assert (first.offered, first.pick) == ((wrong, gemm), wrong)
    (second,) = survey.serves([after])
    assert (second.offered, second.pick, second.workspace) == ((gemm,), gemm, 7375872)


def test_a_find_is_held_to_the_solvers_it_is_allowed(survey: Survey) -> None:
    """The sentinel is registered and never applies: what no database knows is refused."""
    records = [parse_line(f"{CONV1_W}=GemmWrwUniversal:1,0,x".encode())]
    only = "MIOPEN_DEBUG_FIND_ONLY_SOLVER"
    assert survey.finds(records, {only: "GemmWrwUniversal"}) == [0]
    assert survey.finds(records, {only: "ConvMlirIgemmFwd"}) == [7]
    assert survey.finds(records, {only: "NoSuchSolver"}) == [3]


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("--root", "/nonexistent"), 2, "ROOT_ABSENT"),
        (("--arch", "radeon"), 2, "ARCH_INVALID"),
        (("--env", "LD_PRELOAD=/x"), 2, "ENV_INVALID"),
        (("some-image",), 2, "NO_SUBJECT"),
    ],
)
def test_wrong_words(
    miopen_root: Path, store: Path, words: tuple[str, ...], code: int, name: str
) -> None:
    value = audited(miopen_root, store, *words, code=code)
    assert value["error"]["code"] == name


@pytest.mark.slow
def test_the_whole_file_within_its_budget(
    miopen_root: Path,
    store: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    member = "./usr/share/miopen/db/gfx906_60.HIP.fdb.txt"
    unpack(fetched(locked(TESTS_DATA)), tmp_path, member)
    began = time.monotonic()
    found = audited(miopen_root, store, db=tmp_path / member)
    record_property("seconds", time.monotonic() - began)
    assert (found["problems"], found["dead_records"]) == (ALL, DEAD)
    assert len(found["applicable_solvers"]) == SOLVERS
    assert len(found["missing_kernels"]) == 30
