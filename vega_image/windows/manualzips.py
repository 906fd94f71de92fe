"""Locked zips that nobody publishes as such: how the operator makes them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vega_image.lock import LockedGit
from vega_image.windows.parts import Job

# What the stage `prerequisites` looks for, too.
COMPONENTS = (
    "Microsoft.VisualStudio.Component.VC.Tools.x86.x64",
    "Microsoft.VisualStudio.Component.VC.CMake.Project",
    "Microsoft.VisualStudio.Component.VC.ATL",
    "Microsoft.VisualStudio.Component.Windows11SDK.22621",
)
_VS, _WHEELS, _INTEROP = "vs-build-tools", "python-wheels", "amdgpu-windows-interop"
_SYSTEMS = "rocm-systems"
# Whose requirements.txt the wheels are for.
_ASKING = ("therock", "pytorch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A git source as the page writes it: `commit` may be a branch while nobody knows more."""

    name: str
    url: str
    commit: str


def zip_values(job: Job) -> dict[str, object]:
    """Return the values of readme/zips.md.j2; `made` is whether any zip has to be made."""
    files = {item.name: item.file for item in job.payload() if item.sha256 is None}
    checkouts = {item.name: item for item in _checkouts(job)}
    asking = [checkouts[name] for name in _ASKING if name in checkouts]
    systems = checkouts.get(_SYSTEMS)
    values: dict[str, object] = {
        "vs": files.get(_VS, ""),
        "wheels": files.get(_WHEELS, "") if asking else "",
        "interop": files.get(_INTEROP, "") if systems else "",
    }
    made = any(values.values())
    components = " ".join(f"--add {name}" for name in COMPONENTS)
    more = {"git": asking, "systems": systems, "components": components, "made": made}
    return {**values, **more}


def _checkouts(job: Job) -> Iterator[Checkout]:
    for name, source in sorted(job.lock.sources.items()):
        if isinstance(source, LockedGit):
            commit = source.commit or source.branch or ""
            yield Checkout(name=name, url=source.url, commit=commit)
