"""What the playbooks, the roles and the example office promise, read as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from vega_image.checks.ansible_inventory import check_inventory
from vega_image.checks.ansible_transport import check_transport
from vega_image.windows.stages import FILES_ROOT

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path for path in (ROOT / "playbooks/roles").iterdir() if path.is_dir())
STAGES = [
    "prerequisites",
    "compiler-runtime",
    "enumeration",
    "math-libs",
    "wheels",
    "pytorch",
    "seal",
]


def texts() -> Iterator[Path]:
    for folder in ("playbooks", "inventory"):
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.is_file())


def defaults(role: Path) -> str:
    return (role / "defaults/main.yaml").read_text()


def test_every_host_of_the_example_is_one_of_documentation() -> None:
    office = yaml.safe_load((ROOT / "inventory/office.yaml").read_text())
    hosts: list[str] = []
    waiting = [office]
    while waiting:
        here = waiting.pop()
        hosts += list(here.get("hosts") or {}) if isinstance(here, dict) else []
        waiting += [value for value in (here or {}).values() if isinstance(value, dict)]
    assert hosts
    assert all(host.endswith(".example") for host in hosts)


@pytest.mark.parametrize(
    "path", list(texts()), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_address_outside_an_example(path: Path) -> None:
    for address in re.findall(r"https?://([^\s'\"/)]+)", path.read_text()):
        assert address.endswith(".example"), f"{path}: {address}"


def test_transport_rules_hold_and_inventory_is_well_formed() -> None:
    found = [row for row in check_transport(ROOT, {}) if row.rule != "transport-variable"]
    assert [row.text() for row in [*found, *check_inventory(ROOT)]] == []


def test_nothing_reaches_a_host_without_its_key_or_certificate() -> None:
    # Coarser than our own rules, so that a hole in them shows.
    words = re.compile(
        r"accept-new|StrictHostKeyChecking=(?!yes)|cert_validation: (?!validate)|: *basic\b"
        r"|:5985|host_key_checking *=(?! *True)|_auth: (?!certificate)|become_pass",
        re.IGNORECASE,
    )
    for path in texts():
        found = words.search(path.read_text())
        assert found is None, f"{path}: {found}"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_variable_of_a_role_carries_its_name(role: Path) -> None:
    assert set(yaml.safe_load(defaults(role))) <= set(
        re.findall(rf"^({role.name}_\w+):", defaults(role), re.MULTILINE)
    )


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_role_is_in_the_table_with_where_it_ran(role: Path) -> None:
    table = (ROOT / "playbooks/README.md").read_text()
    row = re.search(rf"^\| {role.name} \|.*\| ([^|]+) \|$", table, re.MULTILINE)
    assert row, f"{role.name} is not in playbooks/README.md"
    windows = "win_" in "".join(path.read_text() for path in role.rglob("*.yaml"))
    assert row[1] == ("never on Windows" if windows else "over ssh, in the tests")


def test_stages_are_those_of_the_rendered_tree_in_their_order() -> None:
    values = yaml.safe_load(defaults(ROOT / "playbooks/roles/native_build"))
    assert values["native_build_stages"] == STAGES
    assert values["native_build_installers"] == FILES_ROOT


def test_tdr_is_left_alone_and_no_source_is_assumed() -> None:
    power = yaml.safe_load(defaults(ROOT / "playbooks/roles/power_update"))
    packages = yaml.safe_load(defaults(ROOT / "playbooks/roles/packages"))
    assert power["power_update_tdr_delay"] == ""
    assert [packages[f"packages_{name}"] for name in ("from", "source", "layout")] == [
        "",
        "",
        "",
    ]


def test_no_role_opens_the_service_or_its_port() -> None:
    text = (ROOT / "playbooks/roles/inference_service/tasks/main.yaml").read_text()
    assert "start_mode: disabled" in text
    assert not re.search(r"start_mode: (?!disabled)|enabled: (?!false)|state: started", text)
    for path in texts():
        if path.suffix == ".yaml" and "inference_service" not in path.parts:
            assert "name: VegaInference" not in path.read_text()
