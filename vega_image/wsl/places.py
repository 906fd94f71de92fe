"""Where things lie in a .wsl archive. Paths are relative to its root."""

from __future__ import annotations

from typing import Final

from vega_image.spec import Target

CONF: Final = "etc/wsl.conf"
DISTRIBUTION: Final = "etc/wsl-distribution.conf"
OOBE: Final = "usr/lib/vega-image/oobe"
REFERENCE: Final = "usr/bin/vega-reference"
PROFILE: Final = "etc/profile.d/vega-image.sh"
UNITS: Final = "usr/lib/systemd/system"
MASKS: Final = "etc/systemd/system"
SHARE: Final = "usr/share/vega-image"
TERMINAL: Final = f"{SHARE}/terminal-profile.json"
LOCK: Final = f"{SHARE}/lock.json"
PYZ: Final = f"{SHARE}/vega-selftest.pyz"
README: Final = f"{SHARE}/README.md"
STATE: Final = "var/lib/vega-image/reference"
EXECUTABLE: Final = frozenset({OOBE, REFERENCE, PYZ})

# MicrosoftDocs/WSL, build-custom-distro: units that do not get along with WSL's own init.
MASKED: Final = (
    "NetworkManager.service",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-resolved.service",
    "systemd-tmpfiles-clean.service",
    "systemd-tmpfiles-clean.timer",
    "systemd-tmpfiles-setup-dev-early.service",
    "systemd-tmpfiles-setup-dev.service",
    "systemd-tmpfiles-setup.service",
    "tmp.mount",
)
ENABLED: Final = {
    "multi-user.target.wants/vega-reference.service": "vega-reference.service",
    "timers.target.wants/vega-reference.timer": "vega-reference.timer",
}


def archive_name(target: Target) -> str:
    """Name the archive's file: NAME-VERSION.wsl."""
    return f"{target.name}-{target.version}.wsl"
