from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.workstation import DEVICE, NODE, OVERLAYS, STRANGER, assemble, facts_of, write
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.facts import read_facts
from vega_image.selftest.finding import Finding
from vega_image.selftest.findings import judge_facts, refused
from vega_image.selftest.identity import card_of
from vega_image.selftest.judge_host import LOG
from vega_image.selftest.kernellog import SIGNS, scan

CARD = ("info", "CARD")
NO_ECC = ("info", "ECC_NOT_AVAILABLE")
VERDICTS = {
    "no-gpu": [("refuse", "NO_GPU")],
    "wrong-gpu-gfx1030": [("refuse", "WRONG_GPU")],
    "vram-8g": [("refuse", "VRAM_TOO_SMALL"), CARD, NO_ECC],
    "no-pcie-atomics": [("refuse", "NO_PCIE_ATOMICS"), CARD, NO_ECC],
    "link-x4-gen1": [("warn", "LINK_NARROW"), CARD, NO_ECC],
    "sramecc-off": [CARD, ("info", "SRAMECC_OFF"), NO_ECC],
    "mi50-as-66af": [CARD, ("info", "MI50_AS_66AF"), NO_ECC],
    "mi50-66a1-sramecc": [("warn", "ECC_CORRECTED"), CARD, ("info", "OTHER_VEGA20")],
}


def verdict(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.severity, finding.code) for finding in found]


def judge(root: Path, **environ: str) -> list[tuple[str, str]]:
    return verdict(judge_facts(facts_of(root, environ)))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return assemble(tmp_path)


def test_the_good_card_is_accepted(good: Path) -> None:
    assert judge(good) == [CARD, NO_ECC]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_recorded_machine_gets_exactly_its_verdict(tmp_path: Path, overlay: str) -> None:
    found = judge_facts(facts_of(assemble(tmp_path, overlay)))
    assert verdict(found) == VERDICTS[overlay]
    assert refused(found) is (VERDICTS[overlay][0][0] == "refuse")
    assert all(finding.title and finding.detail and finding.action for finding in found)


def test_the_narrow_link_is_told_with_its_speed(tmp_path: Path) -> None:
    [narrow, *_] = judge_facts(facts_of(assemble(tmp_path, "link-x4-gen1")))
    assert "x4 of x16" in narrow.title
    assert "2.5 GT/s now, 8 GT/s possible" in narrow.detail


def test_a_sleeping_link_of_full_width_is_no_finding(good: Path) -> None:
    write(good, f"{DEVICE}/current_link_speed", "2.5 GT/s PCIe")
    assert judge(good) == [CARD, NO_ECC]


def test_the_smaller_of_two_memory_sizes_decides(good: Path) -> None:
    write(good, f"{DEVICE}/mem_info_vram_total", "8573157376")
    assert judge(good)[0] == ("refuse", "VRAM_TOO_SMALL")


def test_unread_memory_and_atomics_are_said(good: Path) -> None:
    (good / f"{DEVICE}/mem_info_vram_total").unlink()
    (good / f"{NODE}/mem_banks/0/properties").unlink()
    (good / f"{NODE}/io_links/0/properties").unlink()
    assert judge(good)[:2] == [("warn", "VRAM_UNKNOWN"), ("warn", "PCIE_ATOMICS_UNKNOWN")]


@pytest.mark.parametrize(
    ("vbios", "code"),
    [
        ("113-D3600200-105", "BOARD_UNCERTAIN"),
        ("113-XYZ", "BOARD_UNCERTAIN"),
        ("113-D1631700-111", "MI50_AS_66AF"),
    ],
)
def test_the_id_does_not_prove_the_board(good: Path, vbios: str, code: str) -> None:
    write(good, f"{DEVICE}/vbios_version", vbios)
    assert judge(good) == [CARD, ("info", code), NO_ECC]


def test_uncorrected_errors_refuse(tmp_path: Path) -> None:
    root = assemble(tmp_path, "mi50-66a1-sramecc")
    write(root, f"{DEVICE}/ras/gfx_err_count", "ue: 1\nce: 0\n")
    assert judge(root)[0] == ("refuse", "ECC_UNCORRECTED")


def test_xnack_refuses(good: Path) -> None:
    write(good, "sys/module/amdgpu/parameters/noretry", "0")
    assert judge(good)[0] == ("refuse", "XNACK_ON")


def test_heat_and_a_raised_power_limit_warn(good: Path) -> None:
    write(good, f"{DEVICE}/hwmon/hwmon3/temp2_input", "118000")
    write(good, f"{DEVICE}/hwmon/hwmon3/power1_cap", "300000000")
    assert judge(good)[:2] == [("warn", "TOO_HOT"), ("warn", "POWER_CAP_CHANGED")]


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("HSA_OVERRIDE_GFX_VERSION", "9.0.6", "refuse"),
        ("ROCBLAS_TENSILE_LIBPATH", "/opt/x", "refuse"),
        ("MIOPEN_DEBUG_AMD_WINOGRAD_MPASS_F3X4", "1", "refuse"),
        ("MIOPEN_DEBUG_AMD_WINOGRAD_MPASS_F3X4", "0", "warn"),
        ("MIOPEN_FIND_MODE", "2", "warn"),
        ("ROCR_VISIBLE_DEVICES", "1", "warn"),
        ("LD_LIBRARY_PATH", "/opt/rocm/lib", "warn"),
    ],
)
def test_foreign_variables(good: Path, name: str, value: str, severity: str) -> None:
    assert judge(good, **{name: value})[0] == (severity, "FOREIGN_VARIABLE")


def test_a_second_gpu_warns_and_names_the_way_to_choose(good: Path) -> None:
    text = (good / f"{NODE}/properties").read_text()
    other = text.replace("gfx_target_version 90006", "gfx_target_version 90012")
    write(
        good, f"{NODE[:-1]}2/properties", other.replace("location_id 768", "location_id 1024")
    )
    [second, *_] = judge_facts(facts_of(good))
    assert (second.severity, second.code) == ("warn", "SECOND_GPU")
    assert "gfx90c at 0000:04:00.0" in second.title
    assert second.action == "export ROCR_VISIBLE_DEVICES=GPU-0000000000000001"


def test_two_cards_are_judged_one_by_one(good: Path) -> None:
    text = (
        (good / f"{NODE}/properties").read_text().replace("location_id 768", "location_id 1024")
    )
    write(good, f"{NODE[:-1]}2/properties", text)
    found = judge(good)
    assert found.count(CARD) == 2
    assert ("info", "SEVERAL_CARDS") in found
    assert ("warn", "VRAM_UNKNOWN") in found
    write(good, "proc/cmdline", "quiet iommu=pt")
    assert ("info", "SEVERAL_CARDS") not in judge(good)


def test_a_user_outside_the_group_is_told_its_number(good: Path) -> None:
    found = judge_facts(read_facts(good, {}, uid=STRANGER, gids={STRANGER}))
    assert verdict(found)[:2] == [("refuse", "KFD_DENIED"), ("refuse", "RENDER_DENIED")]
    gid = good.stat().st_gid
    assert "EACCES" in found[0].title
    assert f"usermod -aG {gid} " in found[0].action or gid == 0


def test_the_hint_for_a_group_is_numeric(good: Path) -> None:
    facts = facts_of(good)
    denied = replace(facts.kfd, gid=992, allowed=False, error="EACCES")
    [kfd, *_] = judge_facts(replace(facts, kfd=denied))
    assert kfd.action.startswith("sudo usermod -aG 992 $USER")
    boxed = replace(facts, kfd=denied, machine=replace(facts.machine, container=True))
    assert "--group-add 992 (by number" in judge_facts(boxed)[0].action


def test_a_container_without_the_device_node(good: Path) -> None:
    (good / "dev/kfd").unlink()
    (good / "dev/dri/renderD128").unlink()
    assert judge(good)[:2] == [("refuse", "KFD_ABSENT"), ("refuse", "RENDER_ABSENT")]


def test_a_node_that_tells_nothing_is_not_called_no_gpu(good: Path) -> None:
    write(good, f"{NODE}/properties", "")
    assert judge(good) == [("refuse", "GPU_UNREADABLE")]


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("proc/sys/kernel/osrelease", "6.1.0-57-cloud-amd64", "cloud kernel"),
        ("proc/cmdline", "quiet nomodeset", "nomodeset"),
        ("sys/module/amdgpu/initstate", "coming", "amdgpu is not loaded"),
        ("proc/cmdline", "quiet", "the compute driver lists none"),
    ],
)
def test_why_there_is_no_gpu(tmp_path: Path, name: str, text: str, word: str) -> None:
    root = assemble(tmp_path, "no-gpu")
    write(root, name, text)
    [finding] = judge_facts(facts_of(root))
    assert finding.code == "NO_GPU"
    assert word in finding.title


@pytest.mark.parametrize("overlay", ["", "no-gpu"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2"),
        ("proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft"),
        ("dev/dxg", ""),
    ],
)
def test_wsl_is_refused_with_the_reason_and_both_ways_out(
    tmp_path: Path, overlay: str, name: str, text: str
) -> None:
    root = assemble(tmp_path, overlay)
    write(root, name, text)
    finding = judge_facts(facts_of(root))[0]
    assert (finding.severity, finding.code) == ("refuse", "WSL_GFX906_UNSUPPORTED")
    assert "wkmi" in finding.detail
    assert "Linux on the bare machine" in finding.action
    assert "native Windows" in finding.action
    with pytest.raises(SelftestError) as caught:
        card_of(facts_of(root), "hip")
    assert (caught.value.code, caught.value.exit_code) == ("WSL_GFX906_UNSUPPORTED", 7)


@pytest.mark.parametrize(
    ("driver", "word"), [("vfio-pci", "virtual machine"), ("", "amdgpu did not")]
)
def test_a_card_no_driver_took(tmp_path: Path, driver: str, word: str) -> None:
    root = assemble(tmp_path, "no-gpu")
    base = "sys/bus/pci/devices/0000:03:00.0"
    for name, text in (("vendor", "0x1002"), ("device", "0x66af"), ("class", "0x030000")):
        write(root, f"{base}/{name}", text)
    if driver:
        (root / base / "driver").symlink_to(f"../../drivers/{driver}")
    [finding] = judge_facts(facts_of(root))
    assert finding.code == "CARD_NOT_BOUND"
    assert word in finding.detail


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("4.18.0-1", ("refuse", "KERNEL_TOO_OLD")),
        ("6.14.0-202.fc42", ("warn", "KERNEL_SUSPECT")),
        ("6.15.7", ("warn", "KERNEL_SUSPECT")),
        ("6.15.8", CARD),
        ("6.1.0-57-amd64", CARD),
        ("weird", CARD),
    ],
)
def test_kernels(good: Path, release: str, expected: tuple[str, str]) -> None:
    write(good, "proc/sys/kernel/osrelease", release)
    assert judge(good)[0] == expected


def test_a_virtual_machine_warns(good: Path) -> None:
    write(good, "proc/cpuinfo", "flags : fpu hypervisor lahf_lm\n")
    assert judge(good)[0] == ("warn", "VIRTUAL_MACHINE")


def test_the_kernel_log_is_read(good: Path) -> None:
    line = "[9.1] amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT)"
    write(good, "var/log/dmesg", f"{line}\n{line}\n")
    [first, *_] = judge_facts(facts_of(good))
    assert (first.severity, first.code) == ("refuse", "LOG_HARDWARE_ERROR")
    assert "2 times" in first.title


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init", "INIT_FAILED"),
        ("amdgpu 0000:03:00.0: probe with driver amdgpu failed with error -12", "PROBE_FAILED"),
        (
            "amdgpu: probe of 0000:03:00.0 failed; amdgpu: BAR 0: no space for it",
            "PROBE_FAILED",
        ),
        (
            "kfd kfd: amdgpu: skipped device 1002:66af, PCI rejects atomics 730<0",
            "ATOMICS_REJECTED",
        ),
        ("amdgpu: Failed to load firmware amdgpu/vega20_sos.bin", "FIRMWARE_MISSING"),
        ("amdgpu 0000:03:00.0: amdgpu: Illegal opcode in command stream", "ILLEGAL_OPCODE"),
        ("amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", "GPU_RESET"),
    ],
)
def test_signs_of_trouble(line: str, code: str) -> None:
    assert [sign.code for sign in scan(["usb 1-1: fine", line])] == [code]


def test_every_sign_has_advice() -> None:
    assert {code for code, _ in SIGNS} == set(LOG)
