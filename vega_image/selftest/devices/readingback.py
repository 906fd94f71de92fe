"""A device whose answers say which MIOpen solver made them. Only in a sweep's child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vega_image.selftest.miopen.library import loaded, note
from vega_image.selftest.miopen.readback import only_solver
from vega_image.selftest.seam import Computed, Device, Outcome, Request

LIBRARY = "library.json"


@dataclass(frozen=True)
class ReadingBack:
    """Reads the find-db that MIOpen writes into `user_db`, which was empty when it began.

    Leaves beside it a note of the library that was loaded, for the parent to hash.
    """

    device: Device
    user_db: Path

    @property
    def name(self) -> str:
        """Return the device's name."""
        return self.device.name

    @property
    def source(self) -> str:
        """Return the device's source."""
        return self.device.source

    def identity(self) -> Mapping[str, object]:
        """Return the device's identity."""
        return self.device.identity()

    def run(self, request: Request) -> Outcome:
        """Ask the device; add the solver that its find chose."""
        self.note_library()
        outcome = self.device.run(request)
        self.note_library()
        if isinstance(outcome, Computed):
            return replace(outcome, solver=only_solver(user_text(self.user_db, "ufdb")))
        return outcome

    def note_library(self) -> None:
        """Write down which libMIOpen is loaded, if one is."""
        library = loaded()
        if library is not None:
            (self.user_db.parent / LIBRARY).write_text(note(library), encoding="utf-8")


def user_text(folder: Path, kind: str) -> str:
    """Return what MIOpen wrote: kind `ufdb` (find-db) or `udb` (perf-db); empty if nothing."""
    found = sorted(folder.glob(f"*.{kind}.txt"))
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in found)
