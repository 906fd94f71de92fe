"""Deny rules: each has grounds, each denies what it is about and nothing beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vega_image.errors import UsageError
from vega_image.finddb.problem import parse_key
from vega_image.finddb.record import Item
from vega_image.finddb.rule import decode_rule, shipped_rules

FOLDER = Path(__file__).parents[3] / "vega_image" / "finddb" / "rules"
FILES = sorted(FOLDER.iterdir())
GOOD = """
id: some-rule
deny: [fft]
why: a reason that is long enough to be one
source: ["ROCm/MIOpen#1"]
"""
S2 = "512-19-19-3x3-256-38-38-32-1x1-2x2-1x1-0-NCHW-FP32-W"
WINO = "ConvWinograd3x3MultipassWrW<3-4>"


def denied(key: str, solver: str, workspace: int = 0) -> str | None:
    item = Item(solver=solver, time=1.0, workspace=workspace, algorithm="")
    rule = shipped_rules().denying(parse_key(key), item)
    return rule.id if rule else None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_shipped_rule_has_grounds(path: Path) -> None:
    value = yaml.safe_load(path.read_text())
    assert value.get("source") or value.get("evidence"), "neither source nor evidence"
    rule = decode_rule(path.read_text(), path.name)
    assert rule.solvers
    without = {name: item for name, item in value.items() if name not in {"source", "evidence"}}
    with pytest.raises(UsageError, match="source or evidence"):
        decode_rule(yaml.safe_dump(without), path.name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('source: ["ROCm/MIOpen#1"]', ""),
        ('["ROCm/MIOpen#1"]', "[]"),
        ('"ROCm/MIOpen#1"', "somebody said so"),
        ("fft", "nosuchsolver"),
        ("[fft]", "[]"),
        ("some-rule", "other-rule"),
        ("a reason that is long enough to be one", "because"),
        ("why", "when: {colour: red}\nwhy"),
        ("why", "when: {direction: X}\nwhy"),
        ("id: some-rule", "- id: some-rule"),
        ("id", "\tid"),
    ],
)
def test_a_rule_without_grounds_or_meaning_is_refused(old: str, new: str) -> None:
    assert decode_rule(GOOD, "some-rule.yaml").id == "some-rule"
    with pytest.raises(UsageError) as caught:
        decode_rule(GOOD.replace(old, new, 1), "some-rule.yaml")
    assert caught.value.code == "RULE_INVALID"


@pytest.mark.parametrize(
    ("key", "solver", "workspace", "rule"),
    [
        (S2, "ConvAsmBwdWrW3x3", 0, "asm-wrw3x3-stride"),
        (S2.replace("2x2", "1x1"), "ConvAsmBwdWrW3x3", 0, None),
        (S2.replace("2x2", "1x2"), "ConvAsmBwdWrW3x3", 0, "asm-wrw3x3-stride"),
        (S2.replace("FP32", "FP16"), WINO, 0, "multipass-winograd-fp16"),
        (S2, WINO, 0, None),
        (S2, WINO, 2_000_000_000, None),
        (S2, WINO, 2_000_000_001, "winograd-workspace-cap"),
        ("64-106-106-7x7-3-112-112-8-0x0-1x1-1x1-0-NCHW-FP32-W", "ConvOclBwdWrW53", 0,
         "wrw53-7x7-at-112"),
        ("64-107-108-7x7-3-113-114-8-0x0-1x1-1x1-0-NCHW-FP32-W", "ConvOclBwdWrW53", 0, None),
        ("64-113-218-7x7-3-119-224-8-0x0-1x1-1x1-0-NCHW-FP32-W", "ConvOclBwdWrW53", 0,
         "wrw53-7x7-at-112"),
        ("3-12-12-7x8-2-18-19-2-0x0-1x1-1x1-0-NCHW-FP32-W", "ConvOclBwdWrW2<4>", 0,
         "wrw2-even-width"),
        ("3-12-13-7x7-2-18-19-2-0x0-1x1-1x1-0-NCHW-FP32-W", "ConvOclBwdWrW2<4>", 0, None),
        ("1024-1-1-1x1-1024-1-1-400-0x0-1x1-1x1-0-NCHW-FP32-W", "ConvHipImplicitGemmV4R1WrW",
         0, "v4r1-wrw-mi60-1x1"),
        ("32-28-28-1x7-64-30-24-8-1x1-1x1-1x1-0-NCHW-FP16-F", "ConvHipImplicitGemmV4R1Fwd", 0,
         "v4r1-fwd-fp16-1x7"),
        ("16-8-8-3x3-16-8-8-8-1x1-1x1-1x1-0-NCHW-FP32-F", "ConvMPBidirectWinograd<2-3>", 0,
         "mp-bidirectional-winograd"),
    ],
)  # fmt: skip
def test_what_is_known_to_be_wrong_is_denied(
    key: str, solver: str, workspace: int, rule: str | None
) -> None:
    assert denied(key, solver, workspace) == rule


def test_no_rule_denies_the_fallback() -> None:
    fallback = {"GemmWrwUniversal", "ConvDirectNaiveConvWrw", "GemmFwdRest"}
    assert not any(rule.solvers & fallback for rule in shipped_rules().all)
