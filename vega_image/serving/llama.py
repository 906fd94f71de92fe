"""What we say to llama-server, and what its start-up lines prove about the device. Pure.

Its HTTP answers do not name the device (llama.cpp 0.7.0, /props and /v1/models), and
without `--device` it goes on with the CPU after one line of log. Where each layer went is
printed at verbosity 4, while the model loads, before anybody can send a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from vega_image.errors import HostError
from vega_image.spec import Serve

CACHE_MIB = 1024
_ALWAYS = (
    *("--offline", "--no-ui", "--no-slots"),
    *("--log-verbosity", "4", "--log-colors", "off"),
    *("--cache-ram", str(CACHE_MIB)),
)
_DEVICE_LINE = re.compile(r"common_param: +- (\S+) +: (.+) \(\d+ MiB, \d+ MiB free\)$")
_USING = re.compile(r"using device (\S+) \((.+)\) \(([^()]*)\) - \d+ MiB free$")
_LAYERS = re.compile(r"offloaded (\d+)/(\d+) layers to GPU$")
_BUFFER = re.compile(r"load_tensors: +(\S+) model buffer size = +([\d.]+) MiB$")
_CRASH = re.compile(
    r"(?:[\d.]+ E )?(?:ggml_\w+: |[\w/.+-]*ggml-\w+[\w/.+-]*:\d+: |GGML_ASSERT|HSA_STATUS"
    r"|(?:CUDA|ROCm|HIP|HSA) error|Memory access fault|terminate called"
    r"|Unable to open /dev/kfd|error while handling argument)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the server says the model lies: `layers` is (on the GPU, all), buffers in MiB."""

    known: dict[str, str]
    used: dict[str, str]
    pci: dict[str, str]
    layers: tuple[int, int] | None
    buffers: dict[str, float]


def arguments(serve: Serve, *, gpu: bool, model: str) -> tuple[str, ...]:
    """Return the server's arguments; `model` is the file's name, shown to API clients."""
    return (
        *("--host", serve.socket, "--model", serve.model, "--alias", alias(model)),
        *_ALWAYS,
        *serve.args,
        *(serve.gpu_args if gpu else serve.cpu_args),
    )


def alias(model: str) -> str:
    """Return a name the server takes as one word.

    >>> alias("Smol LM, 135M.Q4_1.gguf")
    'Smol-LM-135M.Q4_1'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model.removesuffix(".gguf")).strip("-") or "model"


def pinned_device(args: Sequence[str]) -> str | None:
    """Return the value of the last `--device`; None when the server would choose by itself.

    >>> pinned_device(["--device", "ROCm0", "--n-gpu-layers", "all"])
    'ROCm0'
    """
    pairs = reversed(list(pairwise(args)))
    return next((value for name, value in pairs if name in {"--device", "-dev"}), None)


def placement(lines: Iterable[str]) -> Placement:
    """Read the start-up lines; a line that is none of ours is passed over."""
    known: dict[str, str] = {}
    used: dict[str, str] = {}
    pci: dict[str, str] = {}
    buffers: dict[str, float] = {}
    layers: tuple[int, int] | None = None
    for raw in lines:
        line = raw.rstrip()
        if found := _DEVICE_LINE.search(line):
            known[found[1]] = found[2]
        elif found := _USING.search(line):
            used[found[1]], pci[found[1]] = found[2], found[3]
        elif found := _LAYERS.search(line):
            layers = (int(found[1]), int(found[2]))
        elif found := _BUFFER.search(line):
            buffers[found[1]] = buffers.get(found[1], 0.0) + float(found[2])
    return Placement(known=known, used=used, pci=pci, layers=layers, buffers=buffers)


def prove_gpu(found: Placement, device: str, *, pci_address: str | None) -> str:
    """Return the GPU's name as the server says it.

    Raises HostError GPU_NOT_USED when the server did not put every layer there, WRONG_GPU
    when it names a card at another PCI address.
    """
    name = found.used.get(device)
    if name is None or set(found.used) != {device}:
        _not_used(f"it names {_listed(found.used)}, not {device}")
    if found.layers is None or found.layers[0] == 0 or not found.buffers.get(device):
        _not_used(f"it put no layer on {device}")
    if found.layers[0] != found.layers[1]:
        _not_used(
            f"only {found.layers[0]} of {found.layers[1]} layers fit on {device},"
            " the CPU would compute the rest",
            hint="take a smaller model or quantisation",
        )
    said = found.pci[device].lower()
    if pci_address and re.fullmatch(r"[0-9a-f:.]+", said) and said != pci_address.lower():
        msg = f"the server computes on the card at {said}, not at {pci_address}"
        raise HostError("WRONG_GPU", msg, hint="vega-image doctor")
    return name


def prove_cpu(found: Placement) -> str:
    """Return the CPU's name as the server says it; raises HostError if it took a GPU."""
    if found.used or (found.layers and found.layers[0]):
        msg = f"the CPU was asked for, but the server took {_listed(found.used)}"
        raise HostError("CPU_NOT_USED", msg, hint="vega-image inspect REF")
    if not found.buffers:
        msg = "the server did not say which device holds the model"
        raise HostError("DEVICE_UNKNOWN", msg, hint="vega-image inspect REF")
    return found.known.get("CPU", "CPU")


def is_crash(line: str) -> bool:
    """Whether a line is the runtime's own last words: such a line never holds a prompt."""
    return bool(_CRASH.match(line))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no GPU"


def _not_used(
    why: str, *, hint: str = "vega-image doctor, or --cpu to use the CPU"
) -> NoReturn:
    msg = f"the server does not compute on the GPU: {why}"
    raise HostError("GPU_NOT_USED", msg, hint=hint)
