"""The ggml suite on real back ends that need no GPU: the processor, and Vulkan on lavapipe.

What lavapipe gets wrong is pinned here as wrong: these are findings about that driver and
ggml's shaders for it (half-precision products of 32-bit matrices), not about a Radeon VII.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ggmlroot import ggml_root
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.adapter import FAULTS, Asked, judge_installation
from vega_image.selftest.external.ggml.installation import Installation
from vega_image.selftest.external.ggml.program import build, compile_command
from vega_image.selftest.external.ggml.results import as_results, software_of, source_of
from vega_image.selftest.external.ggml.upstream import read_upstream
from vega_image.selftest.external.protocol import Command, Line, parse_line
from vega_image.selftest.external.running import run
from vega_image.selftest.result import exit_code
from vega_image.selftest.verdict import Verdict

__all__ = ["ggml_root"]

pytestmark = [pytest.mark.slow, pytest.mark.needs("gcc", "network")]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("vega-ggml"))


def processor(root: Path) -> Installation:
    return Installation(root, "CPU")


def lavapipe(root: Path) -> Installation:
    icd = root / "usr/share/vulkan/icd.d/lvp_icd.json"
    environ = {"GGML_VK_VISIBLE_DEVICES": "0", "VK_ICD_FILENAMES": str(icd)}
    return Installation(root, "Vulkan0", environ)


def one_case(installation: Installation, program: Path, *words: str) -> tuple[int, list[Line]]:
    command = installation.ours(program, "r2")
    ended = run(replace(command, argv=(*command.argv, *words)))
    lines = [line for text in ended.stdout.splitlines() if (line := parse_line(text))]
    return ended.code, lines


def test_the_processor_matches_every_case(ggml_root: Path, program: Path) -> None:
    code, lines = one_case(processor(ggml_root), program, "--level", "r3")
    assert code == 0
    assert len(lines) > 170
    assert {line.verdict for line in lines} == {Verdict.MATCH}


def test_the_processor_by_the_adapter(ggml_root: Path, program: Path) -> None:
    verdicts = judge_installation(processor(ggml_root), Asked("r1"), program)
    assert {line.verdict for line in verdicts.lines} == {Verdict.MATCH}
    assert {line.verdict for line in verdicts.upstream} >= {Verdict.UPSTREAM_OK}
    assert exit_code(as_results(verdicts, Asked("r1"))) == 0


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "fp16-output"])
def test_every_planted_fault_is_seen_in_every_case(
    ggml_root: Path, program: Path, fault: str
) -> None:
    code, lines = one_case(processor(ggml_root), program, "--plant", fault)
    assert code == 8
    assert len(lines) > 160
    for line in lines:
        # One bit of 2^-10 in an attention's answer is what half precision may do: not a match.
        allowed = {Verdict.DEGRADED} if fault == "bit-flip" and "att" in line.case else set()
        assert line.verdict in {Verdict.MISMATCH, Verdict.NOT_FINITE} | allowed, line


def test_no_such_device_is_a_failure_though_upstream_says_ok(
    ggml_root: Path, program: Path
) -> None:
    absent = Installation(ggml_root, "ROCm0")
    with pytest.raises(SelftestError) as refused:
        judge_installation(absent, Asked("r1"), program)
    assert (refused.value.code, refused.value.exit_code) == ("NO_DEVICE", 7)
    ended = run(absent.upstream("ADD"))
    assert ended.code == 0
    assert "backends passed" in ended.stdout
    assert [line.verdict for line in read_upstream(ended, "ROCm0").lines] == [Verdict.UNPROVEN]


def test_a_wrong_shipped_hash_makes_a_case_invalid(ggml_root: Path, tmp_path: Path) -> None:
    build(tmp_path)
    table = tmp_path / "golden.def"
    text = table.read_text()
    at = text.index('"add-256x4x1", "') + len('"add-256x4x1", "')
    table.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])
    compiler = shutil.which("gcc")
    assert compiler is not None
    changed = tmp_path / "changed"
    assert run(Command(compile_command(compiler, tmp_path, changed), {})).code == 0
    code, (line,) = one_case(processor(ggml_root), changed, "--case", "add-256x4x1")
    assert (code, line.verdict) == (9, Verdict.INVALID)


def test_lavapipe_at_the_first_level(ggml_root: Path, program: Path) -> None:
    verdicts = judge_installation(lavapipe(ggml_root), Asked("r1"), program)
    assert verdicts.device is not None
    assert "llvmpipe" in software_of(verdicts.device)
    assert source_of(verdicts.device) == "cpu"
    words = {line.case: line.verdict for line in verdicts.lines}
    assert words["mul_mat-f32-bal-64x32x256"] is Verdict.MATCH
    assert words["soft_max-masked-64x8"] is Verdict.MATCH
    # Sums in half precision: allowed, and said.
    assert words["mul_mat-f16-acc-64x32x256"] is Verdict.DEGRADED
    assert exit_code(as_results(verdicts, Asked("r1"))) == 0
    assert {line.verdict for line in verdicts.upstream} >= {Verdict.UPSTREAM_OK}


def test_lavapipe_wrong_numbers_are_reported(ggml_root: Path, program: Path) -> None:
    """32-bit matrices are multiplied in half precision: what leaves its range is lost."""
    name = "mul_mat-f32-wide_a-128x64x100"
    code, (line,) = one_case(lavapipe(ggml_root), program, "--case", name)
    assert (code, line.verdict) == (8, Verdict.NOT_FINITE)
