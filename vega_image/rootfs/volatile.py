"""Paths that tell of the build's moment or host instead of its input.

Found by building twice on different storage, and by looking for the host's name and name
server in what came out; see docs/architecture.md.
"""

from __future__ import annotations

from typing import Final

from vega_image.rootfs.selection import Selection

VOLATILE: Final = (
    "*/__pycache__",
    "*/__pycache__/*",
    ".dockerenv",
    "dev/*",
    "etc/*.lock",
    "etc/apt/apt.conf.d/99mmdebstrap",
    "etc/apt/sources.list",
    "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
    "etc/group-",
    "etc/gshadow-",
    "etc/hostname",
    "etc/hosts",
    "etc/machine-id",
    "etc/mtab",
    "etc/passwd-",
    "etc/resolv.conf",
    "etc/shadow-",
    "etc/subgid-",
    "etc/subuid-",
    "proc/*",
    "root/.cache/*",
    "run/*",
    "sys/*",
    "tmp/*",
    "var/cache/apt/*.bin",
    "var/cache/apt/archives/*",
    "var/cache/debconf/*-old",
    "var/cache/ldconfig/*",
    "var/lib/apt/lists/*",
    "var/lib/dbus/machine-id",
    "var/lib/dpkg/*-old",
    "var/lib/dpkg/lock*",
    "var/lib/dpkg/triggers/Lock",
    "var/lib/systemd/random-seed",
    "var/log/*.log",
    "var/log/apt/*",
    "var/tmp/*",
)

STABLE: Final = Selection(exclude=VOLATILE)
"""Keeps every path that does not depend on when or where an image was built."""
