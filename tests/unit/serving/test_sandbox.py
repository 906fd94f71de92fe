from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vega_image.engines.container import GIB, MIB, ContainerSpec, Mount, Tmpfs
from vega_image.errors import UsageError
from vega_image.serving.sandbox import Account, GpuChoice, Visit, account_for, container_spec
from vega_image.spec import Serve

SERVE = Serve(
    protocol="llama-server",
    socket="/run/vega/llama.sock",
    model="/models/model.gguf",
    args=("--ctx-size", "4096"),
    gpu_args=("--device", "ROCm0", "--gpu-layers", "all"),
    cpu_args=("--device", "none"),
    gpu_device="ROCm0",
)
GPU = GpuChoice(
    name="gfx906 at 0000:03:00.0", render_node=Path("/dev/dri/renderD129"), groups=(44, 992)
)
VISIT = Visit(
    name="vega-image-run-x",
    image="sha256:1",
    model=Path("/big/My model.gguf"),
    model_bytes=GIB,
    socket_folder=Path("/run/user/1000/s"),
    account=Account(uid=1000, gid=100),
    gpu=GPU,
)


def test_the_container_is_exactly_this() -> None:
    assert container_spec(SERVE, VISIT) == ContainerSpec(
        name="vega-image-run-x",
        image="sha256:1",
        label="run",
        user="1000:100",
        command=(
            *("--host", "/run/vega/llama.sock", "--model", "/models/model.gguf"),
            *("--alias", "My-model", "--offline", "--no-ui", "--no-slots"),
            *("--log-verbosity", "4", "--log-colors", "off", "--cache-ram", "1024"),
            *("--ctx-size", "4096", "--device", "ROCm0", "--gpu-layers", "all"),
        ),
        env={"HOME": "/tmp", "XDG_CACHE_HOME": "/tmp"},
        workdir="/",
        groups=(44, 992),
        devices=(Path("/dev/kfd"), Path("/dev/dri/renderD129")),
        mounts=(
            Mount(source=Path("/big/My model.gguf"), target="/models/model.gguf"),
            Mount(source=Path("/run/user/1000/s"), target="/run/vega", read_only=False),
        ),
        tmpfs=(Tmpfs(target="/tmp", size_bytes=64 * MIB, mode=0o1777),),
        pids_limit=512,
        memory_bytes=10 * GIB,
        shm_bytes=MIB,
    )


def test_without_a_gpu_no_device_and_no_group_goes_in() -> None:
    spec = container_spec(SERVE, replace(VISIT, gpu=None))
    assert (spec.devices, spec.groups) == ((), ())
    assert spec.command[-2:] == ("--device", "none")


def test_the_server_never_runs_as_root() -> None:
    assert account_for(0, 0) == Account(uid=10001, gid=10001)
    assert account_for(1000, 100) == Account(uid=1000, gid=100)


@pytest.mark.parametrize(
    "change",
    [
        {"socket": "/llama.sock"},
        {"socket": "run/vega/llama.sock"},
        {"socket": "/run/../../etc/x"},
        {"model": "/model.gguf"},
        {"gpu_args": ("--gpu-layers", "all")},
        {"gpu_args": ("--device", "none")},
        {"gpu_args": ("--device", "ROCm0", "--device", "ROCm1")},
    ],
)
def test_an_image_that_cannot_be_held_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        container_spec(SERVE.model_copy(update=change), VISIT)
    assert caught.value.code == "SERVE_REFUSED"


def test_an_image_that_would_take_the_gpu_under_cpu_is_refused() -> None:
    serve = SERVE.model_copy(update={"cpu_args": ()})
    with pytest.raises(UsageError):
        container_spec(serve, replace(VISIT, gpu=None))
