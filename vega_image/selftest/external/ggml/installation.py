"""Where a llama.cpp installation keeps what the suite needs, and how its programs start.

Below a root that is not `/` programs start through the root's own dynamic loader, so that a
root unpacked from an image is judged with its own libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.protocol import Command

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = "lib64/ld-linux-x86-64.so.2"
UPSTREAM = "usr/libexec/x86_64-linux-gnu/ggml/test-backend-ops"
BACKENDS = "ggml/backends0"
DRIVERS = "usr/share/vulkan/icd.d"
VULKAN_DRIVERS = "VK_DRIVER_FILES"


@dataclass(frozen=True)
class Installation:
    """A root folder, `/` for the running system; `device` is ggml's name, e.g. `ROCm0`.

    `inside`: the root is that of an image and only programs started in it can see it.
    """

    root: Path
    device: str
    environ: Mapping[str, str] = field(default_factory=dict)
    silence: float = 180.0
    inside: bool = False

    @property
    def library(self) -> Path:
        """The libggml to load; raises SelftestError LIBGGML_ABSENT (7)."""
        path = self.root / LIBRARIES / "libggml.so.0"
        if not (self.inside or path.exists()):
            hint = "--target FOLDER or IMAGE with llama.cpp in it"
            raise SelftestError(
                "LIBGGML_ABSENT", f"no {path}", exit_code=7, at=str(path), hint=hint
            )
        return path

    @property
    def backends(self) -> Path:
        """The folder of back ends."""
        return self.root / LIBRARIES / BACKENDS

    @property
    def has_upstream(self) -> bool:
        """Whether upstream's test may be there; of an image nobody knows before it starts."""
        return self.inside or (self.root / UPSTREAM).is_file()

    def ours(self, program: Path, level: str, after: str = "") -> Command:
        """Start vega-ggml, from the first case or behind one."""
        argv = [*self._loader(), str(program), "--level", level, "--json"]
        argv += ["--device", self.device, "--library", str(self.library)]
        argv += ["--backends", str(self.backends)]
        argv += ["--after", after] if after else []
        return Command(tuple(argv), self._environ(), self.silence)

    def upstream(self, operations: str) -> Command:
        """Start upstream's test in the folder of back ends, the only place it searches."""
        argv = [*self._loader(), str(self.root / UPSTREAM), "test", "-b", self.device]
        argv += ["-o", operations] if operations else []
        return Command(tuple(argv), self._environ(), self.silence, str(self.backends))

    def _loader(self) -> list[str]:
        if self.root == Path("/"):
            # Through the loader, so that a missing program is its answer and not the engine's.
            return [f"/{LOADER}"] if self.inside else []
        return [str(self.root / LOADER), "--library-path", str(self.root / LIBRARIES)]

    def _environ(self) -> Mapping[str, str]:
        """Add the root's own Vulkan drivers: the loader would look for them in our `/`."""
        if self.inside or self.root == Path("/") or "Vulkan" not in self.device:
            return self.environ
        drivers = ":".join(map(str, sorted((self.root / DRIVERS).glob("*.json"))))
        return {VULKAN_DRIVERS: drivers, **self.environ} if drivers else self.environ
