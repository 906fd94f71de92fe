"""Hard limits of this process; a service it starts can set none higher."""

from __future__ import annotations

import resource

OPEN_FILES = resource.RLIMIT_NOFILE
PROCESSES = resource.RLIMIT_NPROC


def hard_limit(number: int) -> int | None:
    """Return a hard limit, None where there is none."""
    _soft, hard = resource.getrlimit(number)
    return None if hard == resource.RLIM_INFINITY else hard
