"""What this workstation is, read without any tool or library and without touching the card.

Everything comes from /sys, /proc and /dev below one root, so a recorded machine reads like
a live one. A field nobody could read says so; it never holds a stand-in value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from vega_image.selftest import drm, host, kernellog, kfd
from vega_image.selftest.access import Access, User, read_access
from vega_image.selftest.encode import Json, encode, reasons
from vega_image.selftest.reading import NotAvailable, Reading, Sysroot

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU of architecture gfx906. Memory in bytes; `node` is the KFD node.

    `target_id` is what ROCm calls the card, e.g. `gfx906:sramecc+:xnack-`; code objects for
    plain `gfx906` run on every one of them.
    """

    node: int
    gfx: str
    target_id: Reading[str]
    sramecc: Reading[bool]
    xnack: Reading[bool]
    hbm_ecc: Reading[bool]
    compute_units: Reading[int]
    pci_slot: Reading[str]
    pci_id: Reading[str]
    subsystem: Reading[str]
    revision: Reading[str]
    vbios: Reading[str]
    unique_id: Reading[str]
    vram: Reading[int]
    vram_driver: Reading[int]
    vram_visible: Reading[int]
    atomics: Reading[kfd.Atomics]
    link: drm.Link
    errors: Reading[tuple[drm.ErrorCount, ...]]
    temperatures: Reading[tuple[drm.Temperature, ...]]
    power: drm.Power
    performance_level: Reading[str]
    firmware_mec: Reading[int]
    firmware_sdma: Reading[int]
    render: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGpu:
    """A GPU that is not a gfx906: where the compute or the graphics driver lists it."""

    gfx: Reading[str]
    pci_slot: Reading[str]
    pci_id: Reading[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A workstation. `unreadable` names KFD nodes that did not tell what they are."""

    schema: int
    machine: host.Machine
    driver: host.Driver
    user: User
    kfd: Access
    cards: tuple[Card, ...]
    other_gpus: tuple[OtherGpu, ...]
    unreadable: tuple[str, ...]
    bus: tuple[host.BusDevice, ...]
    environment: tuple[host.Variable, ...]
    log: Reading[tuple[kernellog.Sign, ...]]

    def to_json(self) -> Json:
        """Encode; `why_not_available` maps the path of each unread field to its reason."""
        value = encode(self)
        assert isinstance(value, dict)
        return {**value, "why_not_available": reasons(self)}


def read_facts(
    sysroot: Path, environ: Mapping[str, str], *, uid: int, gids: Collection[int]
) -> Facts:
    """Read everything a verdict about this machine needs. Raises nothing for what it finds.

    `sysroot` is `/`, or the folder of a recorded machine; `uid` and `gids` are those of the
    user who will compute. Whether the device nodes open is asked of the kernel on `/`, and
    judged from their modes otherwise.
    """
    root = Sysroot(sysroot)
    user = User.of(uid, gids)
    nodes = kfd.read_nodes(root)
    driver = host.read_driver(root)
    cpus = frozenset(node.index for node in nodes if node.is_cpu)
    return Facts(
        schema=SCHEMA,
        machine=host.read_machine(root),
        driver=driver,
        user=user,
        kfd=read_access(root, "dev/kfd", user),
        cards=tuple(_card(root, node, user, cpus, driver) for node in nodes if _is_ours(node)),
        other_gpus=_others(root, nodes),
        unreadable=tuple(_why(node) for node in nodes if not (node.is_cpu or _tells(node))),
        bus=host.read_bus(root),
        environment=host.foreign(environ),
        log=kernellog.read_signs(root),
    )


def _is_ours(node: kfd.Node) -> bool:
    return node.value("gfx_target_version") == kfd.GFX906


def _tells(node: kfd.Node) -> bool:
    return node.positive("gfx_target_version")


def _why(node: kfd.Node) -> str:
    version = node.value("gfx_target_version")
    return version.why if isinstance(version, NotAvailable) else f"node {node.index}: no GPU"


def _card(
    root: Sysroot, node: kfd.Node, user: User, cpus: frozenset[int], driver: host.Driver
) -> Card:
    slot = kfd.pci_slot(node)
    minor = node.value("drm_render_minor")
    folder = drm.device_folder(root, slot, minor)
    sramecc, xnack = kfd.capability(node, kfd.SRAMECC), _xnack(driver)
    return Card(
        node=node.index,
        gfx="gfx906",
        target_id=_target_id("gfx906", sramecc, xnack),
        sramecc=sramecc,
        xnack=xnack,
        hbm_ecc=kfd.capability(node, kfd.HBM_ECC),
        compute_units=kfd.compute_units(node),
        pci_slot=slot,
        pci_id=_pci_id(root, node, folder),
        subsystem=drm.pci_id(root, folder, prefix="subsystem_"),
        revision=root.text(f"{folder}/revision"),
        vbios=root.text(f"{folder}/vbios_version"),
        unique_id=_unique_id(root, node, folder),
        vram=kfd.local_memory(node),
        vram_driver=root.integer(f"{folder}/mem_info_vram_total"),
        vram_visible=root.integer(f"{folder}/mem_info_vis_vram_total"),
        atomics=kfd.atomics(node, cpus),
        link=drm.read_link(root, folder),
        errors=drm.read_errors(root, folder),
        temperatures=drm.read_temperatures(root, folder),
        power=drm.read_power(root, folder),
        performance_level=root.text(f"{folder}/power_dpm_force_performance_level"),
        firmware_mec=node.value("fw_version"),
        firmware_sdma=node.value("sdma_fw_version"),
        render=read_access(root, f"dev/dri/{drm.render_name(minor)}", user),
    )


def _xnack(driver: host.Driver) -> Reading[bool]:
    # Left to itself (-1) amdgpu does not retry on Vega 20: amdgpu_gmc_noretry_set, GC 9.4.0.
    if isinstance(driver.noretry, NotAvailable):
        return driver.noretry
    return driver.noretry == 0


def _target_id(gfx: str, sramecc: Reading[bool], xnack: Reading[bool]) -> Reading[str]:
    if isinstance(sramecc, NotAvailable):
        return sramecc
    if isinstance(xnack, NotAvailable):
        return xnack
    return f"{gfx}:sramecc{'+' if sramecc else '-'}:xnack{'+' if xnack else '-'}"


def _pci_id(root: Sysroot, node: kfd.Node, folder: str) -> Reading[str]:
    vendor, device = node.value("vendor_id"), node.value("device_id")
    if isinstance(vendor, int) and isinstance(device, int):
        return drm.pci_text(vendor, device)
    return drm.pci_id(root, folder)


def _unique_id(root: Sysroot, node: kfd.Node, folder: str) -> Reading[str]:
    number = node.value("unique_id")
    if isinstance(number, int) and number > 0:
        return f"{number:016x}"
    return drm.unique_id(root, folder)


def _others(root: Sysroot, nodes: tuple[kfd.Node, ...]) -> tuple[OtherGpu, ...]:
    computing = tuple(
        _other(root, node) for node in nodes if _tells(node) and not _is_ours(node)
    )
    seen = {kfd.pci_slot(node) for node in nodes if node.is_gpu}
    folders = {drm.slot_of(root, folder): folder for folder in drm.card_folders(root)}
    drawing = tuple(
        OtherGpu(
            gfx=NotAvailable("the compute driver does not list it"),
            pci_slot=slot,
            pci_id=drm.pci_id(root, folder),
        )
        for slot, folder in folders.items()
        if isinstance(slot, str) and slot not in seen
    )
    return computing + drawing


def _other(root: Sysroot, node: kfd.Node) -> OtherGpu:
    version, slot = node.value("gfx_target_version"), kfd.pci_slot(node)
    folder = drm.device_folder(root, slot, node.value("drm_render_minor"))
    return OtherGpu(
        gfx=kfd.gfx_name(version) if isinstance(version, int) else version,
        pci_slot=slot,
        pci_id=_pci_id(root, node, folder),
    )
