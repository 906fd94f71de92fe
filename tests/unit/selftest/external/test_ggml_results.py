"""What the ggml suite's lines are worth, and where the shipped program comes from."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.adapter import FAULTS, Asked, Verdicts
from vega_image.selftest.external.ggml.making import compare, makers
from vega_image.selftest.external.ggml.place import device_name
from vega_image.selftest.external.ggml.program import origin, shipped, sources_sha256
from vega_image.selftest.external.ggml.results import as_results, software_of, source_of
from vega_image.selftest.external.protocol import Introduced, Line
from vega_image.selftest.result import exit_code
from vega_image.selftest.verdict import Verdict

R1 = Asked("r1")
SOURCE = Path(__file__).resolve().parents[4] / "vega_image/selftest/external/ggml"


def run_of(*, change: dict[str, Verdict], upstream: tuple[Line, ...] = ()) -> int:
    lines = tuple(Line(row.id, change.get(row.id, Verdict.MATCH), 0.0, 0.0) for row in R1.rows)
    return exit_code(as_results(Verdicts(lines, upstream, None), R1))


OK = Line("upstream:ADD(x)", Verdict.UPSTREAM_OK)


@pytest.mark.parametrize(
    ("case", "verdict", "code"),
    [
        ("mul_mat-f16-acc-64x32x256", Verdict.DEGRADED, 0),
        ("mul_mat-q4_0-acc-64x32x256", Verdict.DEGRADED, 0),
        ("mul_mat-f32-bal-64x32x256", Verdict.DEGRADED, 8),
        ("mul_mat-f32-bal-64x32x256", Verdict.MISMATCH, 8),
        ("mul_mat-f32-bal-64x32x256", Verdict.UNSUPPORTED, 9),
        ("mul_mat-f32-bal-64x32x256", Verdict.INVALID, 9),
        ("add-256x4x1", Verdict.CRASHED, 8),
    ],
)
def test_one_case_decides(case: str, verdict: Verdict, code: int) -> None:
    assert run_of(change={}, upstream=(OK,)) == 0
    assert run_of(change={case: verdict}, upstream=(OK,)) == code


def test_upstream_proves_nothing_and_can_still_be_wrong() -> None:
    only = as_results(Verdicts((), (OK,), None), R1)
    assert exit_code(only) == 9
    wrong = Line("upstream:ADD(y)", Verdict.MISMATCH)
    assert run_of(change={}, upstream=(OK, wrong)) == 8
    assert run_of(change={}, upstream=(Line("upstream", Verdict.UNPROVEN),)) == 9
    assert run_of(change={}, upstream=(Line("upstream:Z(x)", Verdict.UNSUPPORTED),)) == 0


@pytest.mark.parametrize(
    ("description", "kind", "source"),
    [
        ("AMD Radeon VII", "gpu", "device"),
        ("AMD Radeon VII (RADV VEGA20)", "gpu", "device"),
        ("llvmpipe (LLVM 21.1.8, 256 bits)", "gpu", "cpu"),
        ("SwiftShader Device", "igpu", "cpu"),
        ("", "gpu", "cpu"),
        ("AMD Ryzen", "cpu", "cpu"),
        ("AMX", "accel", "cpu"),
    ],
)
def test_a_renderer_is_no_card(description: str, kind: str, source: str) -> None:
    device = Introduced("Vulkan0", description, kind)
    assert source_of(device) == source
    assert bool(software_of(device)) == ("llvm" in description or "Swift" in description)


@pytest.mark.parametrize(
    "spec", ["cpu:0", "hip:", "hip:x", "cuda", "vulkan:-1", "hip:\u0662", ""]
)
def test_a_device_ggml_cannot_have_is_refused(spec: str) -> None:
    with pytest.raises(SelftestError) as refused:
        device_name(spec)
    assert (refused.value.code, refused.value.exit_code) == ("UNKNOWN_DEVICE", 2)


def test_the_faults_are_those_of_the_program() -> None:
    text = (SOURCE / "judge.c").read_text()
    table = text[text.index("FAULTS[]") :].split("};")[0]
    assert all(f'"{fault}"' in table for fault in FAULTS)
    assert table.count('"') == 2 * len(FAULTS)


def test_the_shipped_program_is_made_of_the_source_beside_it() -> None:
    assert shipped().startswith(b"\x7fELF")
    assert origin()["sources"] == sources_sha256(), "run: vega-image selftest program --write"


@pytest.mark.needs("gcc")
def test_the_shipped_program_can_be_made_again() -> None:
    known, here = origin(), makers()
    if any(known[name] != version for name, version in here.items()):
        pytest.skip(f"made with {known}, here is {here}: other bytes, not comparable")
    assert compare() == known


def test_other_bytes_than_the_recorded_are_not_started(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.pyz", tmp_path / "bad.pyz"
    words = [sys.executable, "-m", "vega_image.selftest", "pack", "--output", str(good)]
    subprocess.run(words, check=True, cwd=SOURCE.parents[3], stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(bad, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            changed = name.endswith("prebuilt/vega-ggml")
            new.writestr(name, data + b"x" if changed else data)
    root = tmp_path / "root"
    library = root / "usr/lib/x86_64-linux-gnu/libggml.so.0"
    library.parent.mkdir(parents=True)
    library.touch()
    argv = [sys.executable, str(bad), "--suite", "ggml", "--target", str(root), "--json"]
    argv += ["--report", str(tmp_path / "report")]
    done = subprocess.run(argv, cwd=tmp_path, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["code"] == "PROGRAM_DAMAGED"
    assert not (tmp_path / "report").exists()
