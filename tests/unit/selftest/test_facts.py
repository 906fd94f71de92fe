from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

import vega_image.selftest
from tests.workstation import DEVICE, NODE, OVERLAYS, STRANGER, assemble, edit, facts_of, write
from vega_image.selftest.drm import ErrorCount
from vega_image.selftest.facts import Facts, read_facts
from vega_image.selftest.reading import NotAvailable


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return assemble(tmp_path)


def test_the_good_card_is_read_in_full(good: Path) -> None:
    facts = facts_of(good)
    [card] = facts.cards
    assert (card.gfx, card.target_id) == ("gfx906", "gfx906:sramecc+:xnack-")
    assert (card.pci_slot, card.pci_id) == ("0000:03:00.0", "1002:66af")
    assert (card.subsystem, card.revision) == ("1002:081e", "0xc1")
    assert card.vbios == "113-D3600200-106"
    assert card.vram == card.vram_driver == 17163091968
    assert card.compute_units == 60
    assert (card.sramecc, card.hbm_ecc) == (True, False)
    assert card.unique_id == "0000000000000001"
    assert (card.firmware_mec, card.firmware_sdma) == (472, 145)
    assert not isinstance(card.atomics, NotAvailable)
    assert (card.atomics.bits32, card.atomics.bits64) == (True, True)
    link = card.link
    assert (link.width, link.speed, link.max_width, link.max_speed) == (16, 8.0, 16, 8.0)
    assert card.power.cap == 250
    assert card.render.path == "/dev/dri/renderD128"
    assert card.render.allowed is True
    assert facts.kfd.gid == good.stat().st_gid
    assert (facts.driver.loaded, facts.driver.noretry) == (True, -1)
    assert facts.other_gpus == ()


def test_temperatures_carry_the_limits_of_sysfs(good: Path) -> None:
    [card] = facts_of(good).cards
    assert not isinstance(card.temperatures, NotAvailable)
    limits = {sensor.label: (sensor.now, sensor.critical) for sensor in card.temperatures}
    assert limits == {"edge": (34, 100), "junction": (35, 118), "mem": (34, 94)}


def test_absent_error_counters_are_not_available_and_never_zero(good: Path) -> None:
    value = facts_of(good).to_json()
    assert isinstance(value, dict)
    assert value["cards"][0]["errors"] == "not available"
    assert "no error counters" in value["why_not_available"]["cards.0.errors"]


def test_error_counters_of_a_card_that_has_them(tmp_path: Path) -> None:
    [card] = facts_of(assemble(tmp_path, "mi50-66a1-sramecc")).cards
    assert not isinstance(card.errors, NotAvailable)
    assert ErrorCount(block="umc", uncorrected=0, corrected=2) in card.errors
    assert card.hbm_ecc is True


def test_a_damaged_counter_is_not_available(tmp_path: Path) -> None:
    root = assemble(tmp_path, "mi50-66a1-sramecc")
    write(root, f"{DEVICE}/ras/umc_err_count", "ue: 0\n")
    [card] = facts_of(root).cards
    assert not isinstance(card.errors, NotAvailable)
    [umc] = [count for count in card.errors if count.block == "umc"]
    assert umc.uncorrected == 0
    assert isinstance(umc.corrected, NotAvailable)


def test_sramecc_is_bit_26_of_the_capability(tmp_path: Path) -> None:
    [card] = facts_of(assemble(tmp_path, "sramecc-off")).cards
    assert card.target_id == "gfx906:sramecc-:xnack-"


@pytest.mark.parametrize(("noretry", "xnack"), [("-1", False), ("1", False), ("0", True)])
def test_xnack_follows_the_driver(good: Path, noretry: str, xnack: bool) -> None:  # noqa: FBT001
    write(good, "sys/module/amdgpu/parameters/noretry", noretry)
    assert facts_of(good).cards[0].xnack is xnack


def test_an_unknown_xnack_leaves_the_target_id_open(good: Path) -> None:
    (good / "sys/module/amdgpu/parameters/noretry").unlink()
    [card] = facts_of(good).cards
    assert str(card.xnack) == str(card.target_id) == "not available"


@pytest.mark.parametrize(("flags", "bits"), [(5, (False, True)), (9, (True, False))])
def test_each_atomics_bit_has_its_own_meaning(
    good: Path, flags: int, bits: tuple[bool, bool]
) -> None:
    edit(good, f"{NODE}/io_links/0/properties", "flags 1", f"flags {flags}")
    [card] = facts_of(good).cards
    assert not isinstance(card.atomics, NotAvailable)
    assert (card.atomics.bits32, card.atomics.bits64) == bits


def test_a_link_to_another_gpu_says_nothing_about_atomics(good: Path) -> None:
    edit(good, f"{NODE}/io_links/0/properties", "node_to 0", "node_to 7")
    assert isinstance(facts_of(good).cards[0].atomics, NotAvailable)


def test_the_slot_behind_the_cards_own_switch_counts(good: Path) -> None:
    real = "sys/devices/pci0000:00/0000:01:00.0/0000:02:00.0/0000:03:00.0"
    (good / real).parent.mkdir(parents=True)
    (good / DEVICE).rename(good / real)
    (good / DEVICE).symlink_to(os.path.relpath(good / real, (good / DEVICE).parent))
    for bridge, width in (("0000:01:00.0", "4"), ("0000:01:00.0/0000:02:00.0", "16")):
        write(good, f"sys/devices/pci0000:00/{bridge}/current_link_width", width)
        write(good, f"sys/devices/pci0000:00/{bridge}/current_link_speed", "8.0 GT/s PCIe")
    link = facts_of(good).cards[0].link
    assert (link.width, link.max_width, link.hop) == (4, 16, "0000:01:00.0")


def test_foreign_variables_are_listed_and_others_are_not(good: Path) -> None:
    environ = {
        "HSA_X": "1",
        "MIOPEN_Y": "\x1b[2J\udcff",
        "ROCBLAS_Z": "",
        "PATH": "/",
        "HOME": "/",
    }
    found = facts_of(good, environ).environment
    assert [item.name for item in found] == ["HSA_X", "MIOPEN_Y", "ROCBLAS_Z"]
    assert found[1].value.isprintable()


def test_a_kernel_that_names_no_architecture_is_unreadable_not_another_gpu(good: Path) -> None:
    edit(good, f"{NODE}/properties", "gfx_target_version 90006\n", "")
    facts = facts_of(good)
    assert (facts.cards, facts.other_gpus) == ((), ())
    assert "gfx_target_version missing" in facts.unreadable[0]


def test_of_the_kernels_command_line_only_what_bears_on_the_card_is_kept(good: Path) -> None:
    write(good, "proc/cmdline", "root=LABEL=x secret=1 iommu=pt amdgpu.noretry=0 pci=realloc\n")
    kept = facts_of(good).machine.parameters
    assert kept == ("iommu=pt", "amdgpu.noretry=0", "pci=realloc")


def test_bus_lists_a_card_without_a_driver(good: Path) -> None:
    for name, text in (("vendor", "0x1002"), ("device", "0x66af"), ("class", "0x030000")):
        write(good, f"sys/bus/pci/devices/0000:04:00.0/{name}", text)
    write(good, "sys/bus/pci/devices/0000:05:00.0/vendor", "0x8086")
    [device] = facts_of(good).bus
    assert (device.slot, device.pci_id) == ("0000:04:00.0", "1002:66af")
    assert isinstance(device.driver, NotAvailable)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_facts_are_json_and_every_gap_says_why(tmp_path: Path, overlay: str) -> None:
    value = facts_of(assemble(tmp_path, overlay)).to_json()
    assert isinstance(value, dict)
    text = json.dumps(value)
    assert text.count('"not available"') == len(value["why_not_available"])
    assert all(value["why_not_available"].values())


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    live = read_facts(Path("/"), os.environ, uid=os.geteuid(), gids=os.getgroups())
    assert isinstance(live.machine.kernel, str)
    json.dumps(live.to_json())
    empty = read_facts(tmp_path, {}, uid=STRANGER, gids=())
    assert isinstance(empty, Facts)
    assert empty.cards == ()
    assert isinstance(empty.driver.loaded, NotAvailable)


def test_the_core_is_written_for_python_3_10() -> None:
    folder = Path(str(vega_image.selftest.__file__)).parent
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 10))
        newer = {"StrEnum", "tomllib", "file_digest", "ExceptionGroup", "Self", "UTC"}
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & newer, path
