from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.workstation import assemble, facts_of
from vega_image.commands.doctor import HEADER, doctor
from vega_image.hostcheck import HostProbe

HOST = HostProbe(
    engines=(),
    tools={},
    mirror=None,
    keyring=None,
    store=Path("/store"),
    disk_free=None,
    memory_free=None,
    python="3.11.2",
    libzstd="1.5.7",
)


@pytest.mark.parametrize(("overlay", "code"), [("", 0), ("no-gpu", 7), ("link-x4-gen1", 0)])
def test_the_exit_code_follows_the_card(tmp_path: Path, overlay: str, code: int) -> None:
    report = doctor(probe=None, facts=facts_of(assemble(tmp_path, overlay)))
    assert report.exit_code == code


def test_a_build_host_that_lacks_something_is_5() -> None:
    report = doctor(probe=HOST, facts=None)
    assert report.exit_code == 5
    assert report.summary() == ["build host: refused (exit 5): TOOL_ABSENT"]


def test_both_are_said_and_the_card_outranks(tmp_path: Path) -> None:
    report = doctor(probe=HOST, facts=facts_of(assemble(tmp_path, "no-gpu")))
    assert report.exit_code == 7
    assert report.summary() == [
        "card and host: refused (exit 7): NO_GPU",
        "build host: refused (exit 5): TOOL_ABSENT",
    ]


def test_rows_are_complete_and_the_gravest_comes_first(tmp_path: Path) -> None:
    rows = doctor(probe=HOST, facts=facts_of(assemble(tmp_path, "no-pcie-atomics"))).rows()
    assert all(len(row) == len(HEADER) and all(row) for row in rows)
    assert rows[0][:2] == ["refuse", "NO_PCIE_ATOMICS (HW08, NUM12)"]
    order = [row[0] for row in rows]
    assert order == sorted(order, key=["refuse", "warn", "info"].index)


def test_json_holds_findings_and_facts(tmp_path: Path) -> None:
    tools = {"dpkg-deb": "/usr/bin/dpkg-deb", "apt-get": "/usr/bin/apt-get"}
    facts = facts_of(assemble(tmp_path))
    value = json.loads(
        json.dumps(doctor(probe=replace(HOST, tools=tools), facts=facts).to_json())
    )
    assert value["exit"] == 0
    assert {found["part"] for found in value["findings"]} == {"card", "build-host"}
    assert value["facts"]["cards"][0]["vbios"] == "113-D3600200-106"
    assert value["facts"]["cards"][0]["errors"] == "not available"


def test_json_without_the_card_has_no_facts() -> None:
    value = doctor(probe=HOST, facts=None).to_json()
    assert isinstance(value, dict)
    assert value["facts"] is None
