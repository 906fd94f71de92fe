"""A ContainerSpec as the body of the Docker API's `POST /containers/create` (v1.41); pure."""

from __future__ import annotations

from collections.abc import Mapping

from vega_image.digest import Json
from vega_image.engines.container import ContainerSpec


def create_body(spec: ContainerSpec, labels: Mapping[str, str]) -> dict[str, Json]:
    """Return the whole request, the sandbox included: it is the same for every spec."""
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
        "HostConfig": _host_config(spec),
    }
    if spec.entrypoint is not None:
        body["Entrypoint"] = list(spec.entrypoint)
    return body


def _host_config(spec: ContainerSpec) -> Json:
    shm: dict[str, Json] = (
        {"ShmSize": spec.shm_bytes} if spec.shm_bytes else {"IpcMode": "none"}
    )
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "LogConfig": {"Type": "none", "Config": {}},
        "Ulimits": [_ulimit("core", 0), _ulimit("nofile", spec.open_files)],
        "PidsLimit": spec.pids_limit,
        "Memory": spec.memory_bytes or 0,
        "GroupAdd": [str(gid) for gid in spec.groups],
        "Devices": [_device(str(path)) for path in spec.devices],
        "Tmpfs": {
            item.target: f"rw,noexec,nosuid,nodev,size={item.size_bytes},mode={item.mode:o}"
            for item in spec.tmpfs
        },
        "Mounts": [
            {
                "Type": "bind",
                "Source": str(item.source),
                "Target": item.target,
                "ReadOnly": item.read_only,
            }
            for item in spec.mounts
        ],
        **shm,
    }


def _ulimit(name: str, value: int) -> Json:
    return {"Name": name, "Soft": value, "Hard": value}


def _device(path: str) -> Json:
    return {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}
