"""The journal: one JSON line per trial, appended, so that a kill loses at most one line.

A later run into the same folder appends to it: a journal is never cut or written anew, and
its reports tell of the last run only. Two runs at once into one folder are refused.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from vega_image.selftest.errors import SelftestError

SCHEMA = "vega-selftest-journal/1"
DEVICE_FIELDS = ("pci", "subsystem", "vbios", "unique_id", "arch", "cu")


@dataclass(frozen=True)
class Entry:
    """One trial. `key` is the library's problem key where there is one, else the trial's.

    `solver` is the one that was forced, `solver_ran` the one that ran; empty: not known.
    `time_ms` is the device's time; `lib_sha256` and `db_sha256` are of the library and its
    find-db where they were read.
    """

    key: str
    trial: str
    case: str
    direction: str
    dtype: str
    verdict: str
    source: str
    suite: str
    device: Mapping[str, object]
    driver: str = ""
    solver: str = ""
    solver_ran: str = ""
    algo: str = ""
    time_ms: float | None = None
    workspace_bytes: int | None = None
    perf_config: str = ""
    oracle: str = ""
    seed: int = 0
    rep: int = 0
    error: float | None = None
    bound: float | None = None
    detail: str = ""
    lib_sha256: str = ""
    db_sha256: str = ""
    schema: str = field(default=SCHEMA)

    def to_line(self) -> bytes:
        """Write it as one line of JSON; numbers JSON has no word for become null."""
        value = {item.name: _plain(getattr(self, item.name)) for item in fields(self)}
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"


def device_of(identity: Mapping[str, object]) -> dict[str, object]:
    """Pick what a journal says of a device; what is not known is `not available`.

    >>> device_of({"arch": "gfx906", "cu": 60})["vbios"]
    'not available'
    """
    return {name: identity.get(name, "not available") for name in DEVICE_FIELDS}


class Journal:
    """An open journal; every line is handed to the kernel at once."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._path, self._fresh = path, not path.exists()
        try:
            self._file = os.open(path, flags, 0o644)
            if not _locked(self._file):
                raise SelftestError(
                    "REPORT_BUSY",
                    f"another run is writing to {path.parent}",
                    hint="choose another folder with --report DIR",
                    at=str(path),
                )
            self._before = os.fstat(self._file).st_size
            self._mend(path)
        except OSError as error:
            raise self._refused(error) from error
        self._keep_from_children()

    def _keep_from_children(self) -> None:
        """Close it in every copy of this process.

        What runs there is judged and must not write here; and a copy that outlives us for a
        moment, after a kill, would hold the lock against the next run.
        """
        if not hasattr(os, "register_at_fork"):
            return
        ours = weakref.ref(self)

        def close() -> None:
            journal = ours()
            if journal is not None:
                journal.drop()

        os.register_at_fork(after_in_child=close)

    def drop(self) -> None:
        """Close the file as it is; may be called again."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def _mend(self, path: Path) -> None:
        # A line cut short by a kill must not swallow the first line of this run.
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if file.read(1) not in {b"\n", b""}:
                os.write(self._file, b"\n")

    def add(self, entry: Entry) -> None:
        """Append one line. Raises SelftestError (5) if there is no room for all of it."""
        data = memoryview(entry.to_line())
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise self._refused(error) from error

    def undo(self) -> None:
        """Take back what was added since it was opened, and close it."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._before)
            self.drop()
            if self._fresh:
                self._path.unlink()

    def close(self) -> None:
        """Make the lines durable. Raises SelftestError (5) where they cannot be."""
        try:
            os.fsync(self._file)
            self.drop()
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> SelftestError:
        return SelftestError(
            "JOURNAL",
            f"cannot write {self._path}: {error.strerror or error}",
            exit_code=5,
            hint="make room, or choose another folder with --report DIR",
            at=str(self._path),
        )


def _locked(file: int) -> bool:
    """Take the file for this run; the kernel lets it go when the run ends, however it ends."""
    try:
        import fcntl  # noqa: PLC0415 - POSIX only
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_entries(data: bytes) -> Iterator[Entry]:
    """Read a journal, leaving out lines that a kill cut short.

    Raises SelftestError for a line that is whole but none of ours.
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        yield _entry(value, number)


def _entry(value: object, number: int) -> Entry:
    names = {item.name for item in fields(Entry)}
    known = isinstance(value, dict) and value.get("schema") == SCHEMA and set(value) == names
    if not known:
        raise SelftestError(
            "JOURNAL_LINE",
            f"line {number} is not of {SCHEMA}",
            exit_code=4,
            at=f"line {number}",
        )
    assert isinstance(value, dict)
    return Entry(**value)


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return value
