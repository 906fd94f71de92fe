"""The folder a jailed probe starts from, and the command that starts it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vega_image.finddb.probe.build import Tools
from vega_image.finddb.probe.card import Card
from vega_image.finddb.probe.library import Library, inside
from vega_image.store import disk_errors

INSIDE: Final = "/probe"
SHIM: Final = "shim.so"
DATABASES: Final = "db"
PROGRAM_MODE, FOLDER_MODE = 0o755, 0o755
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the library may use, and for how long; seconds are of waiting unless named cpu.

    `failures` is how many crashes and hangs of one task are put up with.
    """

    memory: int = 4 * GIB
    cpu_seconds: int = 900
    file_bytes: int = 64 << 20
    start_seconds: float = 120.0
    answer_seconds: float = 60.0
    failures: int = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A prepared folder; `environ` are the image's own variables for MIOpen."""

    folder: Path
    library: Library
    card: Card
    limits: Limits
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> Path:
        """The folder that is /probe inside."""
        return self.folder / "tools"

    def furnish(self, programs: Tools) -> None:
        """Fill the folder, which must be empty; raises EngineError DISK_FULL."""
        with disk_errors(self.folder):
            for path in (self.folder / "stage", self.tools, self.tools / DATABASES):
                path.mkdir(mode=FOLDER_MODE)
            _place(programs.jail, self.folder / "jail")
            _place(programs.probe, self.tools / "probe")
            _place(programs.shim, self.tools / SHIM)
            for name in self.library.shimmed:
                (self.tools / name).symlink_to(SHIM)

    def command(self, *, databases: str = DATABASES, env: Mapping[str, str]) -> Sequence[str]:
        """Return the argv of one jailed probe.

        `databases` names a folder of /probe that MIOpen takes for its system databases; what
        `env` says goes before what the image says.
        """
        variables = {
            "HOME": "/tmp",  # noqa: S108 - a tmpfs inside the jail
            "MIOPEN_LOG_LEVEL": "3",
            **self.environ,
            "MIOPEN_SYSTEM_DB_PATH": f"{INSIDE}/{databases}",
            "MIOPEN_USER_DB_PATH": "/tmp",  # noqa: S108
            "MIOPEN_DISABLE_CACHE": "1",
            **env,
            "VEGA_ARCH": self.card.arch,
            "VEGA_CU": str(self.card.cu),
            "VEGA_MEMORY": str(self.card.memory),
            "LD_LIBRARY_PATH": f"{INSIDE}:{self.library.path.rpartition('/')[0]}",
            "LD_PRELOAD": f"{INSIDE}/{SHIM}",
        }
        limits = (self.limits.memory, self.limits.cpu_seconds, self.limits.file_bytes)
        return (
            str(self.folder / "jail"),
            str(self.folder / "stage"),
            str(self.library.root),
            str(self.tools),
            *map(str, limits),
            *(f"{name}={value}" for name, value in sorted(variables.items())),
            "--",
            self.library.loader,
            f"{INSIDE}/probe",
            self.library.path,
        )

    def write_database(self, text: str, *, databases: str = DATABASES) -> None:
        """Write the find-db of this card that the next probe will read."""
        folder = self.tools / databases
        path = folder / f"{self.card.base_name}.HIP.fdb.txt"
        with disk_errors(path):
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="ascii")

    def show_models(self, databases: str, *, folder: str | None) -> None:
        """Give /probe a folder with the models, but no find-db, of a folder of the root."""
        place = self.tools / databases
        with disk_errors(place):
            place.mkdir(exist_ok=True)
            there = inside(self.library.root, folder) if folder else None
            for model in sorted(there.glob("*.model")) if there else ():
                link = place / model.name
                if not link.is_symlink():
                    link.symlink_to(f"/{folder}/{model.name}")


def _place(program: Path, target: Path) -> None:
    shutil.copyfile(program, target)
    target.chmod(PROGRAM_MODE)
