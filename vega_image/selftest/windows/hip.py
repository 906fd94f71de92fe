"""Does HIP see the card, and as what: hipInfo against Plug and Play. Pure."""

from __future__ import annotations

from vega_image.selftest.reading import NotAvailable
from vega_image.selftest.windows.cause import Cause, unread
from vega_image.selftest.windows.hipinfo import NO_DEVICE, arch_parts
from vega_image.selftest.windows.presence import the_card
from vega_image.selftest.windows.values import Gathered, HipDevice, HipInfo

GFX906 = "gfx906"
PAL_GAP = (
    "the PAL back end of the HIP runtime (paldevice.cpp) lists no gfx9 part since rocm-systems "
    "commit 52a1f5d; known as TheRock #1300, #1904, #5003 and rocm-systems #6421"
)
PAL_WAYS = (
    "GPU_ENABLE_PAL=0 (HIP over ROCr), or an image with the patched CLR, or one with an older "
    "CLR that still has the row; none of the three is proven on this card"
)
DLL_NOT_FOUND = {-1073741515: "0xC0000135", 3221225781: "0xC0000135"}
DLL_UNFIT = {-1073741511: "0xC0000139", 3221225785: "0xC0000139",
             -1073741701: "0xC000007B", 3221225595: "0xC000007B"}  # fmt: skip


def seen_by_hip(gathered: Gathered) -> Cause | None:
    """Judge whether HIP shows the card that PCI shows."""
    hip = gathered.hip
    if isinstance(hip, NotAvailable):
        return unread(hip.why)
    if hip.error == NO_DEVICE and not hip.devices:
        detail = f"hipInfo: error 100, no ROCm-capable device is detected; {PAL_GAP}"
        return Cause("HIP_PAL_GAP", detail, PAL_WAYS)
    if cause := _failed(hip):
        return cause
    if hip_device(gathered) is not None:
        return None
    if cause := _elsewhere(gathered, hip):
        return cause
    others = ", ".join(sorted({one.arch or "unnamed" for one in hip.devices}))
    if len(hip.devices) == 1 and _on_card(gathered, hip.devices[0]):
        detail = f"HIP calls the device {others}, a Vega 20 is {GFX906}"
        hint = "remove HSA_OVERRIDE_GFX_VERSION and what else renames devices"
        return Cause("WRONG_ARCH", detail, hint)
    listed = f"hipInfo lists only {others}" if others else "hipInfo lists no device"
    return Cause("HIP_PAL_GAP", f"{listed}; {PAL_GAP}", PAL_WAYS)


def _failed(hip: HipInfo) -> Cause | None:
    if hip.timed_out:
        hint = "restart the machine; if it stays, read the System log for event 4101"
        return Cause("HIP_FAILED", "hipInfo did not end in time", hint)
    code = hip.exit_code
    if code is None:
        hint = "is hipInfo.exe where gather-facts.ps1 -HipInfo says, and not quarantined?"
        return Cause("HIP_FAILED", f"hipInfo did not start: {hip.why or 'no reason'}", hint)
    if code in DLL_NOT_FOUND:
        detail = f"hipInfo ended with {DLL_NOT_FOUND[code]}: a library it needs is missing"
        return Cause("DLL_MISSING", detail, "copy the image's HIP libraries again")
    if code in DLL_UNFIT:
        detail = f"hipInfo ended with {DLL_UNFIT[code]}: a library of another version or kind"
        return Cause("DLL_SHADOWED", detail, "copy the image's HIP libraries again")
    if code or hip.error is not None:
        said = "" if hip.error is None else f", HIP error {hip.error}"
        return Cause("HIP_FAILED", f"hipInfo ended with {code}{said}", "read hipinfo.txt")
    return None


def hip_device(gathered: Gathered) -> HipDevice | None:
    """Return HIP's device for the card: by PCI bus, else the only gfx906 there is."""
    if isinstance(gathered.hip, NotAvailable):
        return None
    named, card = _named(gathered.hip), the_card(gathered)
    lone = named[0] if len(named) == 1 else None
    if card is None or card.bus is None:
        return lone
    exact = next((one for one in named if one.bus == card.bus), None)
    return exact or (lone if lone is not None and lone.bus is None else None)


def _elsewhere(gathered: Gathered, hip: HipInfo) -> Cause | None:
    named, card = _named(hip), the_card(gathered)
    if not named or card is None:
        return None
    buses = ", ".join(f"bus {one.bus}" for one in named)
    detail = f"HIP shows {GFX906} on {buses}, the card is on bus {card.bus}"
    hint = "take other Vega 20 cards out, or remove HIP_VISIBLE_DEVICES"
    return Cause("HIP_FAILED", detail, hint)


def _named(hip: HipInfo) -> list[HipDevice]:
    return [one for one in hip.devices if _gfx(one) == GFX906]


def right_arch(gathered: Gathered) -> Cause | None:
    """Judge the features in gcnArchName; sramecc is taken as it stands, never assumed."""
    device = hip_device(gathered)
    parts = None if device is None or device.arch is None else arch_parts(device.arch)
    if device is None or parts is None or not parts[1].get("xnack"):
        return None
    detail = f"gcnArchName is {device.arch}; code objects here are made for xnack-"
    hint = "remove HSA_XNACK; put back driver and HIP libraries of one version"
    return Cause("XNACK_ON", detail, hint)


def _gfx(device: HipDevice) -> str:
    parts = arch_parts(device.arch or "")
    return parts[0] if parts else ""


def _on_card(gathered: Gathered, device: HipDevice) -> bool:
    card = the_card(gathered)
    return card is not None and card.bus is not None and device.bus == card.bus
