"""`selftest --suite ggml` from the shell: the real libggml of the locked packages, as a root
folder and as the built image, and a fault that upstream's own test lets pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.ggmlroot import cpu_root
from vega_image.selftest.external.ggml.installation import Installation
from vega_image.selftest.external.ggml.upstream import read_upstream
from vega_image.selftest.external.running import run
from vega_image.selftest.verdict import Verdict

__all__ = ["cpu_root"]

pytestmark = pytest.mark.needs("network")
ROOT = Path(__file__).resolve().parents[2]
VEGA_IMAGE = Path(sys.executable).parent / "vega-image"
LARGE = "type_a=f32,type_b=f32,m=1056,n=1,k=128,bs=.8,3.,nr=.4,1."
ENGINES = [
    pytest.param("docker", marks=pytest.mark.needs("docker")),
    pytest.param("podman", marks=pytest.mark.needs("podman")),
]


def selftest(*words: str, **environ: str) -> tuple[int, Any]:
    argv = [str(VEGA_IMAGE), "selftest", "--suite", "ggml", "--json", *words]
    env = {**os.environ, "OMP_NUM_THREADS": "2", **environ}
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False, env=env)
    return done.returncode, json.loads(done.stdout)


def checked(folder: Path) -> Any:
    """The report, as its schema says."""
    schema = json.loads((ROOT / "vega_image/selftest/data/report.schema.json").read_text())
    report = json.loads((folder / "report.json").read_text())
    jsonschema.validate(report, schema)
    return report


def test_a_root_folder_computes_right_on_the_processor(cpu_root: Path, tmp_path: Path) -> None:
    words = ("--level", "r1", "--target", str(cpu_root), "--report", str(tmp_path))
    code, said = selftest(*words)
    assert (code, said["verdict"], said["source"]) == (0, "pass", "cpu")
    assert said["counts"]["MATCH"] == 9
    assert said["counts"]["UPSTREAM_OK"] > 50
    report = checked(tmp_path)
    assert report["device"]["arch"] in said["device"]
    assert set(report["digests"]) >= {"libggml", "libggml-base"}
    journal = list(map(json.loads, (tmp_path / "journal.jsonl").read_text().splitlines()))
    assert {row["source"] for row in journal} == {"cpu"}
    # The machine's facts come first, and are not counted.
    assert journal[0]["case"] == "fact/card"
    assert len(journal) == sum(said["counts"].values()) + 1


def test_a_planted_fault_names_the_first_wrong_element(cpu_root: Path, tmp_path: Path) -> None:
    case = "mul_mat-q4_0-acc-64x32x256"
    words = ("--case", case, "--target", str(cpu_root), "--report", str(tmp_path))
    assert selftest(*words)[0] == 0
    code, said = selftest(*words, "--plant", "zeroed-tile")
    assert code == 8
    (failure,) = said["failures"]
    assert (failure["case"], failure["dtype"]) == (case, "q4_0")
    assert "first wrong element" in failure["detail"]
    assert said["flags"]["planted"] == "zeroed-tile"


@pytest.mark.needs("gcc")
def test_a_lost_tile_passes_upstream_and_not_here(cpu_root: Path, tmp_path: Path) -> None:
    """The fault is in libggml itself, put there by a preloaded library of the tests."""
    library = tmp_path / "tile.so"
    source = ROOT / "tests/data/selftest/zeroed_tile.c"
    argv = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(argv, check=True)
    installation = Installation(cpu_root, "CPU", {"LD_PRELOAD": str(library)})
    command = installation.upstream("MUL_MAT")
    ended = run(replace(command, argv=(*command.argv, "-p", LARGE)))
    assert "a tile is lost" in ended.stderr
    upstream = read_upstream(ended, "CPU")
    assert upstream.confirmed
    assert {line.verdict for line in upstream.lines} == {Verdict.UPSTREAM_OK}
    words = ("--case", "mul_mat-f32-bal-127x65x288", "--target", str(cpu_root))
    code, said = selftest(*words, "--report", str(tmp_path / "r"), LD_PRELOAD=str(library))
    assert (code, said["counts"]) == (8, {"MISMATCH": 1})


@pytest.mark.parametrize("engine", ENGINES)
def test_an_image_is_judged_in_its_sandbox(
    inference_image: str, engine: str, tmp_path: Path
) -> None:
    words = ("--level", "r1", "--target", f"oci:{inference_image}", "--engine", engine)
    code, said = selftest(*words, "--report", str(tmp_path))
    assert (code, said["source"]) == (0, "cpu")
    assert said["counts"]["MATCH"] == 9
    assert said["counts"]["UPSTREAM_OK"] > 50
    assert checked(tmp_path)["digests"]["image"] in said["flags"]["target"]


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (["--device", "vulkan"], 7, "NO_DEVICE"),
        (["--device", "hip"], 7, "NO_GPU"),
        (["--device", "nonsense"], 2, "UNKNOWN_DEVICE"),
        (["--plant", "nonsense"], 2, "UNKNOWN_FAULT"),
        (["--case", "nonsense"], 2, "UNKNOWN_CASE"),
        (["--budget", "1"], 2, "USAGE"),
        (["--target", "./absent"], 2, "TARGET_ABSENT"),
        (["--target", "no-such-image"], 2, "IMAGE_UNKNOWN"),
    ],
)
def test_what_cannot_be_judged_is_refused_and_leaves_nothing(
    cpu_root: Path, tmp_path: Path, words: list[str], exit_code: int, code: str
) -> None:
    folder = tmp_path / "report"
    more = [] if "--target" in words else ["--target", str(cpu_root)]
    found, said = selftest(*words, *more, "--report", str(folder))
    assert (found, said["error"]["code"]) == (exit_code, code)
    assert not folder.exists()
