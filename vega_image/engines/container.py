"""What `run` and the smoke tests ask of an engine: one container in the sandbox, as a value.

The sandbox is not a choice: no network but `lo`, read-only root, no capability, no new
privileges, no core dump, no log on disk. A spec can only say what goes in and how much it gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

LABEL = "io.vega-image.step"
"""Label on everything an engine holds for us; its value is the step id or the word's name."""

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host path inside the container; read-only unless said otherwise (the socket folder)."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tmpfs:
    """Scratch in memory: noexec, nosuid, nodev. `mode` is octal permission bits.

    Where the image has a folder at `target`, runc 1.1 gives the mount that folder's mode
    instead, and root as owner: an image's /tmp must be 1777.
    """

    target: str
    size_bytes: int = 64 * MIB
    mode: int = 0o1777


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """One container.

    `image` is what `load_image` returned (or a name@digest). `command` goes to the image's
    entrypoint, or replaces it together with `entrypoint`. `user` is numeric `UID:GID`;
    `groups` are the host's numeric gids (never names: the image may number `render`
    otherwise, hazards PRM01-02). `devices` appear inside under their own path, for read and
    write. `shm_bytes` 0 leaves out /dev/shm. `label` tells leftovers apart; `name` must be
    unused.
    """

    name: str
    image: str
    label: str
    user: str
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    groups: tuple[int, ...] = ()
    devices: tuple[Path, ...] = ()
    mounts: tuple[Mount, ...] = ()
    tmpfs: tuple[Tmpfs, ...] = ()
    pids_limit: int = 512
    memory_bytes: int | None = None
    shm_bytes: int = MIB
    open_files: int = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What became of a container; `exit_code` is None while it runs."""

    running: bool
    exit_code: int | None
    oom_killed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A started container. `lines` yields its stdout and stderr until it ends.

    Nothing keeps these lines but the reader: the engine's own log is off, for what a server
    prints may hold a user's prompt.
    """

    id: str
    lines: Iterator[str]


class ContainerHost(Protocol):
    """The half of an engine that runs finished images."""

    @property
    def name(self) -> str:
        """What `--engine` calls this engine."""
        ...

    def load_image(
        self, archive: Iterable[bytes], *, progress: Callable[[int], None] = lambda _bytes: None
    ) -> str:
        """Load a docker-archive stream (uncompressed layers) and return the image id.

        `progress` is told the bytes sent so far. Raises EngineError LOAD_FAILED.
        """
        ...

    def has_image(self, image: str) -> bool:
        """Whether the engine holds this image id or name."""
        ...

    def start_container(self, spec: ContainerSpec) -> Started:
        """Create and start; raises EngineError CONTAINER_FAILED when the engine refuses."""
        ...

    def state(self, container: str) -> State | None:
        """Look a container (id or name) up; None when there is none."""
        ...

    def wait(self, container: str) -> State | None:
        """Wait for a container's end and return its last state; None when it is gone."""
        ...

    def stop(self, container: str, *, grace_seconds: int = 5) -> None:
        """TERM, a grace period, KILL; nothing to do when it is gone or has ended."""
        ...

    def remove(self, container: str) -> None:
        """Kill if needed and remove with its volumes; nothing to do when it is gone."""
        ...

    def sweep(self, label: str | None = None) -> list[str]:
        """Remove containers (also running ones) with our label; return their names.

        `label` narrows it to one value; otherwise all of ours whose owner is dead.
        """
        ...
