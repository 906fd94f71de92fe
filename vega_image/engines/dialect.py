"""Where the Docker APIs of dockerd and podman differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Where an engine's Docker API differs.

    `no_network` is what the `networkmode` of a build must say: podman takes any word it does
    not know, also Docker's `none`, for its default, the host's network (4.3.1: seen).
    `opened` are the folders that stay writable in a read-only container.
    """

    no_network: str
    opened: tuple[str, ...] = ()


DIALECTS = {
    "docker": Dialect(no_network="none"),
    "podman": Dialect(no_network="NetworkDisabled", opened=("/run", "/tmp", "/var/tmp")),  # noqa: S108
}
