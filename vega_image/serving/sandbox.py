"""How an image is run: one `Serve` and one visit make one ContainerSpec. Pure.

What every container of ours has (no network, read-only root, no capability, no new
privileges, no core dump, no log on disk) is said in engines/container.py and done by the
engine; here is what differs: who, which card, which files, how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from vega_image.engines.container import GIB, MIB, ContainerSpec, Mount, Tmpfs
from vega_image.errors import UsageError
from vega_image.serving import llama
from vega_image.spec import Serve

LABEL_VALUE = "run"
KFD = Path("/dev/kfd")
SCRATCH = "/tmp"  # noqa: S108 - a tmpfs inside the container
IMAGE_UID = 10001
"""Whom root's containers run as: no account of the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuChoice:
    """The one card a container gets.

    `groups` are the numeric owners of /dev/kfd and the render node on this host;
    `pci_address` (`0000:03:00.0`) is None where the host does not tell it.
    """

    name: str
    render_node: Path
    groups: tuple[int, ...]
    pci_address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whom the server runs as, and who owns the socket folder. Never 0."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One run of an image: `gpu` None means the CPU was asked for by name."""

    name: str
    image: str
    model: Path
    model_bytes: int
    socket_folder: Path
    account: Account
    gpu: GpuChoice | None
    memory_bytes: int | None = None


def account_for(uid: int, gid: int) -> Account:
    """Return the calling user, or the image's own number where that would be root.

    The server's socket answers only its owner, so the bridge must be that user or root.

    >>> account_for(1000, 100), account_for(0, 0)
    (Account(uid=1000, gid=100), Account(uid=10001, gid=10001))
    """
    return Account(uid=uid, gid=gid) if uid else Account(uid=IMAGE_UID, gid=IMAGE_UID)


def container_spec(serve: Serve, visit: Visit) -> ContainerSpec:
    """Return the container of one visit.

    Raises UsageError SERVE_REFUSED for an image that would put the socket or the model
    outside a folder of their own, or that does not pin its device.
    """
    _check(serve, gpu=visit.gpu is not None)
    return ContainerSpec(
        name=visit.name,
        image=visit.image,
        label=LABEL_VALUE,
        user=f"{visit.account.uid}:{visit.account.gid}",
        command=llama.arguments(serve, gpu=visit.gpu is not None, model=visit.model.name),
        env={"HOME": SCRATCH, "XDG_CACHE_HOME": SCRATCH},
        workdir="/",
        groups=() if visit.gpu is None else visit.gpu.groups,
        devices=() if visit.gpu is None else (KFD, visit.gpu.render_node),
        mounts=(
            Mount(source=visit.model, target=serve.model),
            Mount(source=visit.socket_folder, target=_parent(serve.socket), read_only=False),
        ),
        tmpfs=(Tmpfs(target=SCRATCH, size_bytes=64 * MIB),),
        memory_bytes=visit.memory_bytes or memory_for(visit.model_bytes),
    )


def memory_for(model_bytes: int) -> int:
    """Return a limit that holds the mapped model, one repacked copy and the caches.

    >>> memory_for(4 * GIB) // GIB
    16
    """
    return 2 * model_bytes + 8 * GIB


def socket_name(serve: Serve) -> str:
    """Return the socket's file name, the same on both sides of the mount."""
    return PurePosixPath(serve.socket).name


def _parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _check(serve: Serve, *, gpu: bool) -> None:
    for what, path in (("socket", serve.socket), ("model", serve.model)):
        pure = PurePosixPath(path)
        if not pure.is_absolute() or ".." in pure.parts or len(pure.parts) < 3:  # noqa: PLR2004 - "/", folder, file
            _refuse(f"its {what} is {path!r}: not a file in a folder of its own")
    wanted = serve.gpu_device if gpu else "none"
    if llama.pinned_device(serve.gpu_args if gpu else serve.cpu_args) != wanted:
        _refuse(f"its arguments do not say --device {wanted}, so another device could answer")


def _refuse(why: str) -> NoReturn:
    msg = f"this image cannot be served: {why}"
    raise UsageError("SERVE_REFUSED", msg, hint="vega-image inspect REF", at="serve")
