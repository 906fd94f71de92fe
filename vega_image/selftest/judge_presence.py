"""What the facts say about the card being there and open to us."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vega_image.selftest.access import Access
from vega_image.selftest.facts import Card, Facts
from vega_image.selftest.finding import Finding
from vega_image.selftest.host import BusDevice

VEGA20 = frozenset(
    f"1002:{device}" for device in ("66a0", "66a1", "66a2", "66a3", "66a7", "66af")
)


WSL = Finding(
    code="WSL_GFX906_UNSUPPORTED",
    severity="refuse",
    title="WSL cannot compute on a gfx906 card in any published version",
    detail="HIP reaches a card here through /dev/dxg and librocdxg, whose closed device table "
    "(wkmi) holds no Vega 20; no variable reaches past it",
    action="use Linux on the bare machine, or native Windows; --device cpu runs here and makes "
    "a reference",
    hazards=("WIN15", "WIN16"),
)


def judge_presence(facts: Facts) -> Iterator[Finding]:
    """Yield what keeps us from a card, and what other GPUs stand beside it."""
    for rule in RULES:
        yield from rule(facts)


def _presence(facts: Facts) -> Iterator[Finding]:
    if facts.machine.wsl:
        yield WSL
        return
    if facts.cards:
        return
    computing = [gpu for gpu in facts.other_gpus if isinstance(gpu.gfx, str)]
    if computing:
        names = ", ".join(f"{gpu.gfx} ({gpu.pci_id} at {gpu.pci_slot})" for gpu in computing)
        yield Finding(
            code="WRONG_GPU",
            severity="refuse",
            title=f"no gfx906 card; found {names}",
            detail="code objects for gfx906 run on no other architecture",
            action="use a machine with a Radeon VII; do not set HSA_OVERRIDE_GFX_VERSION",
            hazards=("TGT05",),
        )
    elif facts.unreadable:
        yield Finding(
            code="GPU_UNREADABLE",
            severity="refuse",
            title="the compute driver does not tell what its GPUs are",
            detail="; ".join(facts.unreadable),
            action="run doctor on the host, outside any container; update an old kernel",
            hazards=("PRM06",),
        )
    elif not _held_elsewhere(facts):
        yield _absent(facts)


def _absent(facts: Facts) -> Finding:
    title = "no GPU: the compute driver lists none"
    if _kernel_has(facts, "-cloud-"):
        action = "sudo apt install linux-image-amd64 firmware-amd-graphics, then reboot into it"
        return _no_gpu(f"{title}; a cloud kernel has no GPU driver", action, ())
    if _booted_with(facts, "nomodeset"):
        action = "remove nomodeset from the kernel command line, reboot"
        return _no_gpu(f"{title}; nomodeset keeps the driver off", action, ())
    if facts.driver.loaded is not True:
        action = "sudo modprobe amdgpu; sudo dmesg | grep -i amdgpu"
        return _no_gpu(f"{title}; amdgpu is not loaded", action, ())
    action = "check seat and both power plugs of the card, then: lspci -nn -d 1002:"
    return _no_gpu(title, action, ())


def _no_gpu(title: str, action: str, hazards: tuple[str, ...]) -> Finding:
    return Finding(
        code="NO_GPU",
        severity="refuse",
        title=title,
        detail="no node with gfx_target_version 90006 in /sys/class/kfd",
        action=action,
        hazards=hazards,
    )


def _kernel_has(facts: Facts, word: str) -> bool:
    return isinstance(facts.machine.kernel, str) and word in facts.machine.kernel.lower()


def _held_elsewhere(facts: Facts) -> list[BusDevice]:
    ours = {card.pci_slot for card in facts.cards}
    return [gpu for gpu in facts.bus if gpu.pci_id in VEGA20 and gpu.slot not in ours]


def _bus(facts: Facts) -> Iterator[Finding]:
    for gpu in _held_elsewhere(facts):
        held = f"held by {gpu.driver}" if isinstance(gpu.driver, str) else "held by no driver"
        reserved = gpu.driver == "vfio-pci"
        yield Finding(
            code="CARD_NOT_BOUND",
            severity="warn" if facts.cards else "refuse",
            title=f"the card at {gpu.slot} is on the bus but {held}, not usable by compute",
            detail="reserved for a virtual machine" if reserved else "amdgpu did not take it",
            action="run doctor inside that virtual machine"
            if reserved
            else "sudo dmesg | grep -iE 'amdgpu|BAR'; in the firmware set Above 4G Decoding on",
            hazards=("VM03",) if reserved else ("HW03", "HW04"),
        )


def _devices(facts: Facts) -> Iterator[Finding]:
    if not facts.cards:
        return
    yield from _device("KFD", facts.kfd, facts)
    for card in facts.cards:
        yield from _device("RENDER", card.render, facts)


def _device(name: str, access: Access, facts: Facts) -> Iterator[Finding]:
    if not access.exists:
        yield Finding(
            code=f"{name}_ABSENT",
            severity="refuse",
            title=f"{access.path} is not here, though the driver lists a card",
            detail="a container sees only the device nodes it was given",
            action=f"container: --device {access.path}; host: sudo udevadm trigger",
            hazards=("PRM07",),
        )
    elif access.allowed is not True:
        who = f"uid {facts.user.uid}, groups {', '.join(map(str, facts.user.gids)) or 'none'}"
        yield Finding(
            code=f"{name}_DENIED",
            severity="refuse",
            title=f"{access.path} cannot be opened by {who}: {access.error}",
            detail=f"owner {access.uid}, group {access.gid}, mode {access.mode}"
            + _mapped(facts),
            action=_open_up(access, facts),
            hazards=("PRM01", "PRM04"),
        )


def _mapped(facts: Facts) -> str:
    inside = facts.machine.user_namespace is True
    return "; in a user namespace, where host groups may be unmapped" if inside else ""


def _open_up(access: Access, facts: Facts) -> str:
    if not access.gid:
        return (
            f"{access.path} belongs to group 0: install the udev rules of your ROCm or systemd "
            "(group render, mode 0660), then: sudo udevadm trigger"
        )
    if facts.machine.container or facts.machine.user_namespace is True:
        return f"start the container with --group-add {access.gid} (by number, never by name)"
    return f"sudo usermod -aG {access.gid} $USER, then log in again"


def _second(facts: Facts) -> Iterator[Finding]:
    computing = [gpu for gpu in facts.other_gpus if isinstance(gpu.gfx, str)]
    if facts.cards and computing:
        names = ", ".join(f"{gpu.gfx} at {gpu.pci_slot}" for gpu in computing)
        yield Finding(
            code="SECOND_GPU",
            severity="warn",
            title=f"another GPU computes here too: {names}",
            detail="libraries may pick it, and mixed cards have crashed on the first copy",
            action=f"export ROCR_VISIBLE_DEVICES={_visible(facts.cards)}",
            hazards=("TGT02",),
        )
    if len(facts.cards) > 1 and not _booted_with(facts, "iommu=pt"):
        yield Finding(
            code="SEVERAL_CARDS",
            severity="info",
            title=f"{len(facts.cards)} gfx906 cards",
            detail="transfers between cards have hung without iommu=pt",
            action="add iommu=pt to the kernel command line before using them together",
            hazards=("VM05", "VM09"),
        )


def _visible(cards: tuple[Card, ...]) -> str:
    known = [card.unique_id for card in cards if isinstance(card.unique_id, str)]
    return ",".join(f"GPU-{number}" for number in known) or "INDEX (see rocminfo)"


def _booted_with(facts: Facts, parameter: str) -> bool:
    known = facts.machine.parameters
    return isinstance(known, tuple) and parameter in known


RULES: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _presence,
    _bus,
    _devices,
    _second,
)
