"""The machine around the card: kernel, driver, virtualisation, PCI bus, environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vega_image.selftest import drm
from vega_image.selftest.reading import NotAvailable, Reading, Sysroot, printable

AMD = "1002"
DISPLAY_CLASS = 0x03
MODULE = "sys/module/amdgpu"
IDENTITY_MAP = ["0", "0", "4294967295"]
VALUE_LIMIT = 1000

PARAMETERS = ("amdgpu.", "nomodeset", "iommu", "amd_iommu", "intel_iommu", "pci=", "pcie_")
FOREIGN_PREFIXES = ("HSA_", "MIOPEN_", "ROCBLAS_", "ROCR_", "HIP_")
FOREIGN_NAMES = frozenset(
    {"LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The amdgpu module. `version` is only there for drivers from outside the kernel.

    `noretry` and `ras_enable` are module parameters; -1 leaves the choice to the driver.
    """

    loaded: Reading[bool]
    version: Reading[str]
    source_version: Reading[str]
    noretry: Reading[int]
    ras_enable: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What runs the driver, and inside what; `parameters` are the kernel's that matter here."""

    kernel: Reading[str]
    parameters: Reading[tuple[str, ...]]
    vendor: Reading[str]
    product: Reading[str]
    virtual: Reading[bool]
    container: bool
    wsl: bool
    user_namespace: Reading[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class BusDevice:
    """An AMD display device on the PCI bus and the kernel driver that holds it."""

    slot: str
    pci_id: Reading[str]
    driver: Reading[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An environment variable that changes what ROCm libraries do."""

    name: str
    value: str


def read_driver(root: Sysroot) -> Driver:
    """Read the state of the amdgpu module."""
    return Driver(
        loaded=_loaded(root),
        version=root.text(f"{MODULE}/version"),
        source_version=root.text(f"{MODULE}/srcversion"),
        noretry=root.integer(f"{MODULE}/parameters/noretry"),
        ras_enable=root.integer(f"{MODULE}/parameters/ras_enable"),
    )


def _loaded(root: Sysroot) -> Reading[bool]:
    if not root.names("sys/module"):
        return NotAvailable("sys/module: cannot be listed")
    state = root.text(f"{MODULE}/initstate")
    # A driver built into the kernel has the folder but no state.
    return state == "live" if isinstance(state, str) else root.exists(MODULE)


def read_machine(root: Sysroot) -> Machine:
    """Read kernel, board and the walls around us."""
    return Machine(
        kernel=root.text("proc/sys/kernel/osrelease"),
        parameters=_parameters(root),
        vendor=root.text("sys/class/dmi/id/sys_vendor"),
        product=root.text("sys/class/dmi/id/product_name"),
        virtual=_virtual(root),
        container=root.exists(".dockerenv") or root.exists("run/.containerenv"),
        wsl=_wsl(root),
        user_namespace=_user_namespace(root),
    )


def _wsl(root: Sysroot) -> bool:
    """Whether Windows runs this Linux: its GPU device node, or the kernel's name."""
    release = root.text("proc/sys/kernel/osrelease")
    named = isinstance(release, str) and "microsoft" in release.lower()
    return named or root.exists("dev/dxg")


def _parameters(root: Sysroot) -> Reading[tuple[str, ...]]:
    # Only what bears on the card: a command line may also hold names and secrets.
    text = root.text("proc/cmdline")
    if isinstance(text, NotAvailable):
        return text
    return tuple(word for word in text.split() if word.startswith(PARAMETERS))


def _virtual(root: Sysroot) -> Reading[bool]:
    text = root.text("proc/cpuinfo")
    return text if isinstance(text, NotAvailable) else "hypervisor" in text.split()


def _user_namespace(root: Sysroot) -> Reading[bool]:
    text = root.text("proc/self/uid_map")
    return text if isinstance(text, NotAvailable) else text.split() != IDENTITY_MAP


def read_bus(root: Sysroot) -> tuple[BusDevice, ...]:
    """List AMD display devices, also those no driver holds."""
    slots = (slot for slot in root.names(drm.PCI) if _is_amd_display(root, slot))
    return tuple(
        BusDevice(
            slot=slot,
            pci_id=drm.pci_id(root, f"{drm.PCI}/{slot}"),
            driver=root.target(f"{drm.PCI}/{slot}/driver"),
        )
        for slot in slots
    )


def _is_amd_display(root: Sysroot, slot: str) -> bool:
    vendor = root.integer(f"{drm.PCI}/{slot}/vendor", base=16)
    kind = root.integer(f"{drm.PCI}/{slot}/class", base=16)
    return vendor == int(AMD, 16) and isinstance(kind, int) and kind >> 16 == DISPLAY_CLASS


def foreign(environ: Mapping[str, str]) -> tuple[Variable, ...]:
    """Pick the variables that reach into ROCm, sorted by name."""
    return tuple(
        Variable(name=printable(name), value=printable(value)[:VALUE_LIMIT])
        for name, value in sorted(environ.items())
        if name.startswith(FOREIGN_PREFIXES) or name in FOREIGN_NAMES
    )
