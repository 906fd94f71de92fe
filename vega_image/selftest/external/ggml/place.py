"""Where a llama.cpp is and how programs start there: a root folder, or an engine's image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.ggml.installation import Installation
from vega_image.selftest.external.ggml.program import find_program
from vega_image.selftest.external.protocol import Command, Ended
from vega_image.selftest.external.running import Told, run

DEVICES = {"cpu": "CPU", "vulkan": "Vulkan0", "hip": "ROCm0"}
HINT = "cpu, vulkan, vulkan:N, hip or hip:N"


@dataclass(frozen=True)
class Place:
    """Something to judge. `run` starts programs in it; `name` and `digests` say what it is."""

    name: str
    installation: Installation
    program: Path
    run: Callable[[Command, Told], Ended]
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """What `--target` and `--device` say, and how long a program may be silent, in seconds."""

    target: str
    device: str
    silence: float


OpenPlace = Callable[[Wanted], AbstractContextManager[Place]]


def device_name(spec: str) -> str:
    """Translate --device to ggml's name; raises SelftestError for one it cannot have.

    >>> device_name("hip:1"), device_name("vulkan")
    ('ROCm1', 'Vulkan0')
    """
    word, colon, number = spec.partition(":")
    fits = number.isascii() and number.isdigit() and len(number) < 4  # noqa: PLR2004
    if word not in DEVICES or (colon and (word == "cpu" or not fits)):
        text = f"ggml has no device {spec}"
        raise SelftestError("UNKNOWN_DEVICE", text, hint=HINT, at=spec)
    name = DEVICES[word]
    return name if word == "cpu" else name.rstrip("0") + str(int(number or "0"))


@contextmanager
def folder_place(wanted: Wanted) -> Iterator[Place]:
    """Open a root folder, `/` where none is named.

    Raises SelftestError TARGET_ABSENT (2) for what is no folder, and as find_program does.
    """
    root = Path(wanted.target or "/")
    if not root.is_dir():
        text = f"{wanted.target} is no folder"
        hint = "--target FOLDER; images are judged by vega-image, not by the archive alone"
        raise SelftestError("TARGET_ABSENT", text, hint=hint, at=wanted.target)
    root = root.resolve()
    with TemporaryDirectory(prefix="vega-ggml-") as folder:
        name = device_name(wanted.device)
        installation = Installation(root, name, silence=wanted.silence)
        # Before anything is compiled: what is not there needs no program.
        installation.library.resolve()
        yield Place(str(root), installation, find_program(root, Path(folder)), run)
