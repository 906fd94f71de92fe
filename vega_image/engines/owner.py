"""Whose a container or image is: so that leftovers of the dead go and work of the living stays.

An owner is a process, told from all later ones with its number by boot, PID namespace and
start time. Linux only (/proc).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

OWNER_LABEL = "io.vega-image.owner"
_START_FIELD = 19


@dataclass(frozen=True, slots=True)
class Owner:
    """One process. `started` is in clock ticks since boot."""

    boot: str
    namespace: str
    pid: int
    started: int

    @classmethod
    def current(cls, proc: Path = Path("/proc")) -> Self:
        """Describe this process."""
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (proc / "self/ns/pid").readlink().name.strip("pid:[]")
        pid = os.getpid()
        return cls(boot, namespace, pid, _started(proc, pid) or 0)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a label back; None when it is none of ours."""
        boot, *rest = text.split("/")
        if len(rest) != 3 or not all(part.isdigit() for part in rest):  # noqa: PLR2004
            return None
        return cls(boot, rest[0], int(rest[1]), int(rest[2]))

    def __str__(self) -> str:
        return f"{self.boot}/{self.namespace}/{self.pid}/{self.started}"

    def surely_dead(self, seen_by: Owner, proc: Path = Path("/proc")) -> bool:
        """Whether no such process can be alive, as far as `seen_by` can see.

        A process of another PID namespace on this boot cannot be seen, so it may live.
        """
        if self.boot != seen_by.boot:
            return True
        if self.namespace != seen_by.namespace:
            return False
        return _started(proc, self.pid) != self.started


def _started(proc: Path, pid: int) -> int | None:
    try:
        stat = (proc / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name may hold spaces and brackets; what follows the last `)` does not.
    return int(stat.rpartition(")")[2].split()[_START_FIELD])
