"""A ContainerSpec as the body of the Docker API's `POST /containers/create` (v1.41)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vega_image.digest import Json
from vega_image.engines.container import ContainerSpec, Mount
from vega_image.errors import UsageError

_CSV = ',"\n\r'
_SAFE = "noexec,nosuid,nodev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What an engine on this machine does unless told otherwise.

    `processes` is the hard limit RLIMIT_NPROC (podman's own default is above many), `opened`
    are folders that a read-only container would still be able to write.
    """

    processes: int | None = None
    opened: tuple[str, ...] = ()


def create_body(
    spec: ContainerSpec, labels: Mapping[str, str], *, machine: Machine
) -> dict[str, Json]:
    """Return the whole request, the sandbox included: it is the same for every spec.

    Raises UsageError MOUNT_PATH for a mount that is not there or cannot be named.
    """
    body: dict[str, Json] = {
        "Image": spec.image,
        "Cmd": list(spec.command),
        "Env": [f"{name}={value}" for name, value in sorted(spec.env.items())],
        "User": spec.user,
        "WorkingDir": spec.workdir or "",
        "Labels": dict(labels),
        "NetworkDisabled": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": _host_config(spec, machine),
    }
    if spec.entrypoint is not None:
        body["Entrypoint"] = list(spec.entrypoint)
    return body


def _host_config(spec: ContainerSpec, machine: Machine) -> Json:
    shm: dict[str, Json] = (
        {"ShmSize": spec.shm_bytes} if spec.shm_bytes else {"IpcMode": "none"}
    )
    limits = {"core": 0, "nofile": spec.open_files}
    if machine.processes is not None:
        limits["nproc"] = machine.processes
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "LogConfig": {"Type": "none", "Config": {}},
        "Ulimits": [
            {"Name": name, "Soft": value, "Hard": value} for name, value in limits.items()
        ],
        "PidsLimit": spec.pids_limit,
        "Memory": spec.memory_bytes or 0,
        "GroupAdd": [str(gid) for gid in spec.groups],
        "Devices": [_device(str(path)) for path in spec.devices],
        "Tmpfs": _tmpfs(spec, machine),
        **_mounts(spec),
        **shm,
    }


def _tmpfs(spec: ContainerSpec, machine: Machine) -> Json:
    mounts = dict.fromkeys(machine.opened, f"ro,{_SAFE},size=4096")
    for item in spec.tmpfs:
        mounts[item.target] = f"rw,{_SAFE},size={item.size_bytes},mode={item.mode:o}"
    return mounts


def _mounts(spec: ContainerSpec) -> dict[str, Json]:
    """Both engines cut a bind at `:`; podman reads a mount as comma-separated values."""
    binds: list[Json] = []
    mounts: list[Json] = []
    for item in spec.mounts:
        source = str(item.source)
        if not item.source.exists():
            # Both engines would make a folder of that name, as root.
            msg = f"{source}: cannot be mounted: no such file"
            raise UsageError("MOUNT_PATH", msg, at=source)
        if ":" not in source:
            binds.append(f"{source}:{item.target}:{'ro' if item.read_only else 'rw'}")
        elif set(source).isdisjoint(_CSV):
            mounts.append(_mount(item))
        else:
            msg = f"{source}: a path with `:` and one of , and quotes cannot be mounted"
            raise UsageError("MOUNT_PATH", msg, at=source, hint="rename it, or link to it")
    return {"Mounts": mounts, "Binds": binds}


def _mount(item: Mount) -> Json:
    return {
        "Type": "bind",
        "Source": str(item.source),
        "Target": item.target,
        "ReadOnly": item.read_only,
    }


def _device(path: str) -> Json:
    return {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}
