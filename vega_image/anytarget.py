"""Every kind of target: which class reads a spec of that kind."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from vega_image.spec import Target, TargetKind
from vega_image.windows.spec import WindowsTarget

AnyTarget: TypeAlias = Target | WindowsTarget
SPECS: Mapping[str, type[Target | WindowsTarget]] = MappingProxyType(
    {
        TargetKind.OCI: Target,
        TargetKind.WSL: Target,
        TargetKind.WINDOWS: WindowsTarget,
    }
)
