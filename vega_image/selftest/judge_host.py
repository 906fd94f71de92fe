"""What the facts around a card mean: kernel, virtual machine, environment, kernel log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from vega_image.selftest.facts import Facts
from vega_image.selftest.finding import Finding, Severity
from vega_image.selftest.kernellog import Sign
from vega_image.selftest.reading import NotAvailable

OLDEST_KERNEL = (5, 0, 0)
# ROCm stopped working on these (legacy-rocm-build 4919, seen on an older card).
BROKEN_KERNELS = ((6, 14, 0), (6, 15, 8))

REENABLING = re.compile(
    r"MIOPEN_DEBUG_(AMD_WINOGRAD_MPASS_F3X[456]|CONV_DIRECT_OCL_.*|.*MP_BD_WINOGRAD.*)"
)
OFF = frozenset({"", "0", "no", "off", "false", "disable", "disabled"})
HIDING = frozenset(
    {
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
    }
)


def judge_host(facts: Facts) -> Iterator[Finding]:
    """Yield everything to say about the machine."""
    for rule in RULES:
        yield from rule(facts)


def _kernel(facts: Facts) -> Iterator[Finding]:
    found = re.match(r"(\d{1,3})\.(\d{1,4})(?:\.(\d{1,6}))?", str(facts.machine.kernel))
    if not found or isinstance(facts.machine.kernel, NotAvailable):
        return
    version = tuple(int(part or 0) for part in found.groups())
    if version < OLDEST_KERNEL:
        yield Finding(
            code="KERNEL_TOO_OLD",
            severity="refuse",
            title=f"kernel {facts.machine.kernel} is older than 5.0",
            detail="its driver does not know Vega 20 well enough to compute",
            action="sudo apt install linux-image-amd64, then reboot",
            hazards=("HW09",),
        )
    elif BROKEN_KERNELS[0] <= version < BROKEN_KERNELS[1]:
        yield Finding(
            code="KERNEL_SUSPECT",
            severity="warn",
            title=f"kernel {facts.machine.kernel}: ROCm stopped on 6.14 to 6.15.7 elsewhere",
            detail="reported for an older card, fixed in 6.15.8",
            action="update the kernel to 6.15.8 or later",
            hazards=("HW10",),
        )


def _virtual(facts: Facts) -> Iterator[Finding]:
    if facts.cards and facts.machine.virtual is True:
        yield Finding(
            code="VIRTUAL_MACHINE",
            severity="warn",
            title="the card is handed to this virtual machine",
            detail="Vega 20 does not reset reliably: a restart may need a reboot of the host",
            action="after a hang reboot the host; never trust a reset reported in a log",
            hazards=("VM01", "VM03"),
        )


def _environment(facts: Facts) -> Iterator[Finding]:
    for variable in facts.environment:
        severity, hazard, detail = _variable(variable.name, variable.value)
        yield Finding(
            code="FOREIGN_VARIABLE",
            severity=severity,
            title=f"{variable.name}={variable.value}",
            detail=detail,
            action=f"unset {variable.name}, and remove it from ~/.profile and /etc/environment",
            hazards=(hazard,),
        )


def _variable(name: str, value: str) -> tuple[Severity, str, str]:
    if name.startswith("HSA_OVERRIDE_"):
        return "refuse", "TGT01", "makes libraries run code made for another GPU"
    if REENABLING.fullmatch(name) and value.strip().lower() not in OFF:
        return "refuse", "NUM09", "switches on convolution solvers that compute wrong numbers"
    if name == "ROCBLAS_TENSILE_LIBPATH":
        return "refuse", "TGT08", "makes rocBLAS load kernels from another installation"
    if name in HIDING:
        return "warn", "TGT02", "hides or reorders GPUs"
    if name in {"LD_LIBRARY_PATH", "LD_PRELOAD"}:
        return "warn", "TGT08", "may load libraries of another ROCm"
    return "warn", "TGT01", "changes what ROCm libraries do"


LOG: dict[str, tuple[Severity, str, tuple[str, ...]]] = {
    "HARDWARE_ERROR": (
        "refuse",
        "power the machine off for a minute, reseat the card; if it returns, replace the card",
        ("HW01", "HW02"),
    ),
    "INIT_FAILED": (
        "refuse",
        "power the machine off for a minute, reseat the card, check its power plugs",
        ("HW03",),
    ),
    "PROBE_FAILED": (
        "refuse",
        "in the firmware set Above 4G Decoding on; else boot with pci=realloc",
        ("HW04", "HW05"),
    ),
    "ATOMICS_REJECTED": (
        "refuse",
        "move the card to the first slot, the one wired to the processor",
        ("HW08",),
    ),
    "FIRMWARE_MISSING": (
        "refuse",
        "sudo apt install firmware-amd-graphics (component non-free-firmware), then reboot",
        ("HW11",),
    ),
    "ILLEGAL_OPCODE": ("warn", "reboot and run selftest before trusting results", ("HW06",)),
    "GPU_RESET": ("warn", "reboot and run selftest before trusting results", ("HW01",)),
}


def _log(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.log, NotAvailable):
        return
    for sign in facts.log:
        yield _sign(sign)


def _sign(sign: Sign) -> Finding:
    severity, action, hazards = LOG[sign.code]
    return Finding(
        code=f"LOG_{sign.code}",
        severity=severity,
        title=f"the kernel's log says so {sign.count} times since boot: {sign.code}",
        detail=sign.last,
        action=action,
        hazards=hazards,
    )


RULES: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _kernel,
    _virtual,
    _environment,
    _log,
)
