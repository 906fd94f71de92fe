"""The list of all rules of a Windows tree, for the documentation and for whoever reads one."""

from __future__ import annotations

import pytest

from tests.marks import CASES, tree
from vega_image.checks import answerfile, cmdfile, crossrefs, powershell, secrets
from vega_image.checks.packer import PACKER_RULES
from vega_image.checks.windows import WINDOWS_RULES, check_windows_tree
from vega_image.errors import EngineError
from vega_image.windows.spec import Platform


def test_every_rule_is_listed_once_and_says_what_it_refuses() -> None:
    parts = [powershell.RULES, answerfile.RULES, cmdfile.RULES, crossrefs.RULES, secrets.RULES]
    assert len(WINDOWS_RULES) == len(PACKER_RULES) + sum(map(len, parts))
    assert set(PACKER_RULES) <= set(WINDOWS_RULES)
    assert len(set(WINDOWS_RULES.values())) == len(WINDOWS_RULES)


def test_without_packer_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    good = tree(CASES / "crossrefs/good")
    with pytest.raises(EngineError) as caught:
        check_windows_tree(good, platform=Platform.QEMU)
    assert caught.value.code == "TOOL_ABSENT"


def test_metal_may_do_without_packer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    files = {"a.cmd": b"@echo off\r\nexit /b 0\r\n"}
    assert check_windows_tree(files, platform=Platform.METAL) == []
