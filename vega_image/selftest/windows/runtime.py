"""Can HIP start at all: the C++ runtime and which copy of each library Windows takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vega_image.selftest.reading import NotAvailable
from vega_image.selftest.windows.cause import Cause, unread
from vega_image.selftest.windows.values import Gathered, Libraries, Library, Sdk

NEEDED = ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll")
OLDEST = (14, 43)
"""The runtime must not be older than the compiler: Visual Studio 17.13 is MSVC 14.43."""
VC_HINT = "install or repair the Visual C++ 2015-2022 x64 runtime, then restart"
HIP = re.compile(r"amdhip64(?:_[0-9]+)?\.dll")
COMGR = re.compile(r"amd_comgr[0-9_]*\.dll")
PLACES = ("program", "system32", "path")
"""The order in which Windows looks; the current folder, between the last two, is ours."""


def vc_runtime(gathered: Gathered) -> Cause | None:
    """Judge the Visual C++ runtime: broken, it looks like a missing card (hip #3910)."""
    if isinstance(gathered.runtime, NotAvailable):
        return unread(gathered.runtime.why)
    known = {file.name: file.version for file in gathered.runtime}
    missing = [name for name in NEEDED if not known.get(name)]
    if missing:
        return Cause("VC_RUNTIME_MISSING", f"not there: {', '.join(missing)}", VC_HINT)
    for name in NEEDED:
        version = known[name] or ""
        if _version(version) < OLDEST:
            detail = f"{name} {version}, at least 14.43 is needed"
            return Cause("VC_RUNTIME_OLD", detail, VC_HINT)
    return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", text)[:2])


def right_libraries(gathered: Gathered) -> Cause | None:
    """Judge which copies of the HIP libraries are in use."""
    found = gathered.libraries
    if isinstance(found, NotAvailable):
        return unread(found.why)
    if isinstance(gathered.image, NotAvailable):
        return unread(gathered.image.why)
    for kind, pattern in (("HIP runtime amdhip64", HIP), ("amd_comgr", COMGR)):
        used = in_use(found, pattern)
        if not used:
            hint = "copy the image's HIP libraries beside the program again"
            return Cause("DLL_MISSING", f"no {kind}*.dll that Windows would load", hint)
        for library in used:
            if cause := _judged(library, found, gathered):
                return cause
        if len({library.name for library in used}) > 1:
            names = ", ".join(library.path for library in used)
            hint = "remove the program that brings the second one"
            return Cause("DLL_SHADOWED", f"two of {kind} at once: {names}", hint)
    return None


def in_use(found: Libraries, pattern: re.Pattern[str]) -> tuple[Library, ...]:
    """Return the copies that were loaded; if none was seen, those Windows would take.

    A loaded copy that was not hashed counts with no digest: nobody knows what it is.
    """
    known = {copy.path.lower(): copy for copy in found.copies}
    seen = [path for path in found.loaded if pattern.fullmatch(_name(path))]
    if seen:
        unknown = "0" * 64
        return tuple(
            known.get(path.lower()) or Library(_name(path), path, "path", unknown, None)
            for path in seen
        )
    copies = [copy for copy in found.copies if pattern.fullmatch(copy.name)]
    names = {copy.name for copy in copies if copy.place == "program"} or {
        copy.name for copy in copies
    }
    return tuple(_first([one for one in copies if one.name == name]) for name in sorted(names))


def _first(copies: Sequence[Library]) -> Library:
    return min(copies, key=lambda copy: PLACES.index(copy.place))


def _judged(library: Library, found: Libraries, gathered: Gathered) -> Cause | None:
    beside = [one for one in found.copies if one.place == "program"]
    ours = next((one for one in beside if one.name == library.name), None)
    sdk = _sdk_of(library, gathered)
    if sdk is not None:
        word = "too old" if _version(sdk.version) < (5, 7) else "too new: gfx906 was cut"
        fitting = _version(sdk.version)[:1] == (5,) and word != "too old"
        judged = "no MIOpen and no PyTorch are made for it" if fitting else word
        detail = f"{library.path} is of HIP SDK {sdk.version}: {judged}"
        return Cause("HIP_SDK", detail, "uninstall the HIP SDK, then restart")
    if library.place != "program":
        own = f"the image's is {_told(ours)}" if ours else f"none of its name in {found.folder}"
        detail = f"Windows loads {_told(library)}; {own}"
        hint = f"PATH cannot win against System32: keep the image's copy in {found.folder}"
        return Cause("DLL_SHADOWED", detail, f"{hint}, and start the program from there")
    if isinstance(gathered.image, NotAvailable):
        return unread(gathered.image.why)
    wanted = gathered.image.libraries.get(library.name)
    if wanted is not None and wanted != library.sha256:
        detail = f"{library.path} has SHA-256 {library.sha256[:12]}, the image's {wanted[:12]}"
        return Cause("DLL_SHADOWED", detail, "copy the image's HIP libraries again")
    return None


def _sdk_of(library: Library, gathered: Gathered) -> Sdk | None:
    if isinstance(gathered.drivers, NotAvailable):
        return None
    path = library.path.lower()
    for sdk in gathered.drivers.sdks:
        if sdk.path and path.startswith(sdk.path.lower().rstrip("\\") + "\\"):
            return sdk
    return None


def _told(library: Library) -> str:
    version = library.version or "of no version"
    return f"{library.path} ({version}, SHA-256 {library.sha256[:12]})"


def _name(path: str) -> str:
    return path.replace("/", "\\").rpartition("\\")[2].lower()
