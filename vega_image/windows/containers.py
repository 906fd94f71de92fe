"""Windows containers: asked for in several ways, refused in one. Pure.

Windows gives a container DirectX and what stands on it, in process isolation, from the base
image `windows` only (Microsoft, GPU acceleration in Windows containers); HIP is none of that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vega_image.errors import UsageError

NAMES: Final = frozenset({"windows-container", "windows-containers"})
# The last parts of Microsoft's base images' names, whatever registry or mirror they come from.
_BASE: Final = re.compile(
    r"(^|/)(windows(-?servercore|-?nanoserver)?|windows/(servercore|nanoserver|server|iotcore))"
    r"(?=[:@]|$)",
    re.IGNORECASE,
)
_FROM: Final = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)", re.IGNORECASE)


def refuse_windows_container(word: str, *, at: str) -> None:
    """Raise UsageError WINDOWS_CONTAINERS_UNSUPPORTED for the kind or target `word`."""
    if word in NAMES:
        raise _unsupported(at, f"{word!r} is asked for")


def refuse_windows_base(files: Mapping[str, bytes], *, stage: str) -> None:
    """Raise the same for a stage whose Dockerfile starts from one of Microsoft's images."""
    for path, data in files.items():
        if path.rpartition("/")[2] != "Dockerfile":
            continue
        for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
            image = _FROM.match(line)
            if image and _BASE.search(image[1]):
                at = f"stages/{stage}/{path}:{number}"
                raise _unsupported(at, f"it starts from {image[1]}")


def _unsupported(at: str, what: str) -> UsageError:
    msg = (
        f"{at}: {what}, but in a Windows container only DirectX and frameworks on top of it "
        "reach a GPU, and HIP is neither; under Hyper-V isolation nothing does"
    )
    hint = (
        "vega-image build linux-inference (a container on Linux), "
        "or vega-image build windows-ltsc (native Windows)"
    )
    return UsageError("WINDOWS_CONTAINERS_UNSUPPORTED", msg, hint=hint, at=at)
