"""What to do when a card answers no more. Only said, never done: a reset is the host's."""

from __future__ import annotations

import re
import threading
import time

from vega_image.selftest.finding import Finding
from vega_image.selftest.reading import Sysroot

HOLDERS = "sys/class/kfd/kfd/proc"
POLL_SECONDS = 0.1
CODE = "NEEDS_HOST_RESET"


def released(root: Sysroot, pid: int, seconds: float) -> bool:
    """Wait until the compute driver has let a dead process go; False if it never did.

    True at once where there is no such driver. Inside a container the driver names
    processes by the host's numbers, so that ours is not found there and not waited for.
    """
    never = threading.Event()
    until = time.monotonic() + seconds
    while str(pid) in root.names(HOLDERS):
        if time.monotonic() >= until:
            return False
        never.wait(POLL_SECONDS)
    return True


def ladder(why: str, *, device: str, slot: str, container: bool) -> Finding:
    """Tell the ways to reset a card, the gentlest first; `device` is `hip` or `hip:N`.

    `slot` is the card's PCI address, empty if nobody knows it. Pure.
    """
    number = device.partition(":")[2]
    index = number if number.isdigit() else "0"
    known = re.fullmatch(r"[0-9a-f]{4,8}(:[0-9a-f]{2}){2}\.[0-7]", slot)
    bus = f"/sys/bus/pci/devices/{slot if known else 'SLOT'}"
    rungs = (
        f"sudo amd-smi reset --gpureset --gpu {index}",
        f"sudo cat /sys/kernel/debug/dri/{index}/amdgpu_gpu_recover",
        f"echo 1 | sudo tee {bus}/remove; echo 1 | sudo tee /sys/bus/pci/rescan",
        "sudo reboot",
    )
    steps = "; ".join(f"{number}. {rung}" for number, rung in enumerate(rungs, 1))
    where = "on the host, outside this container: " if container else ""
    return Finding(
        code=CODE,
        severity="refuse",
        title="The card computes nothing right any more and needs a reset by the host",
        detail=f"{why}. One after the other, with the quick test (--level r1) between: {steps}",
        action=f"{where}{rungs[0]}",
        hazards=("HW01", "VM01"),
    )
