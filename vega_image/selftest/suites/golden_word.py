"""The word `golden`: check the shipped hashes, make them anew, note edited tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from importlib import resources
from pathlib import Path

from vega_image.selftest import datafiles
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.files import writable_folder, write_whole
from vega_image.selftest.out import remark, show, show_json
from vega_image.selftest.suites.golden import DisagreementError, document
from vega_image.selftest.suites.golden_table import FILE, shipped

STEP = 250
WRONG_BYTES, NO_ROOM = 4, 5
Compute = Callable[[Callable[[int, int], None]], str]


def main(*, write: bool, tables: bool, as_json: bool) -> int:
    """Compute all hashes again, and say whether the shipped ones are right.

    `write` puts them into the file instead; `tables` only notes the digests of edited tables.
    Raises SelftestError: 4 where hashes or implementations differ, 5 for an unwritable file.
    """
    if write or tables:
        said = make(data_folder(), document) if write else note(data_folder())
    else:
        said = check(document)
    if as_json:
        show_json({"golden": said})
    else:
        show(said)
    return 0


def data_folder() -> Path:
    """Return where the tables lie. Raises SelftestError (5) where nothing can be written."""
    folder = Path(str(resources.files("vega_image.selftest"))) / "data"
    if not folder.is_dir():
        text = f"{folder} is inside an archive"
        raise SelftestError(
            "GOLDEN_FILE",
            text,
            exit_code=NO_ROOM,
            hint="run it in a checkout of vega-image",
            at=str(folder),
        )
    writable_folder(folder)
    return folder


def check(compute: Compute) -> str:
    """Return a sentence. Raises SelftestError (4) where a hash is not what is computed."""
    for name in datafiles.TABLES:
        datafiles.table(name)
    known = shipped()
    fresh = _computed(compute)
    if datafiles.table(FILE).decode() == fresh:
        return f"as shipped: {len(known)} hashes"
    found = json.loads(fresh)["sha256"]
    old = json.loads(datafiles.table(FILE))["sha256"]
    off = sorted(name for name in {*found, *old} if found.get(name) != old.get(name))
    first = off[0] if off else "the form of the file"
    raise SelftestError(
        "GOLDEN_DIFFERS",
        f"{FILE}: {len(off)} hashes are not what this suite computes, first {first}",
        exit_code=WRONG_BYTES,
        hint="vega-image selftest golden --write, if the suite changed on purpose",
        at=FILE,
    )


def make(folder: Path, compute: Compute) -> str:
    """Write hashes and digests; on any failure all is as before. Return a sentence."""
    manifest = folder / datafiles.MANIFEST
    before = manifest.read_bytes() if manifest.exists() else None
    # Edited tables are what the hashes are made for, so they count from here on.
    note(folder)
    try:
        fresh = _computed(compute)
        _written(folder / FILE, fresh.encode())
    except BaseException:
        if before is not None:
            _written(manifest, before)
        raise
    note(folder)
    return f"{folder / FILE}: {len(json.loads(fresh)['sha256'])} hashes"


def note(folder: Path) -> str:
    """Note the digests of the tables as they are. Return a sentence."""
    contents = {name: (folder / name).read_bytes() for name in datafiles.TABLES}
    _written(folder / datafiles.MANIFEST, datafiles.manifest(contents))
    return str(folder / datafiles.MANIFEST)


def _computed(compute: Compute) -> str:
    try:
        return compute(_say)
    except DisagreementError as error:
        raise SelftestError(
            "GOLDEN_DISAGREEMENT",
            f"{error}; nothing was written",
            exit_code=WRONG_BYTES,
            hint="one of the two implementations is wrong on this machine: try another",
        ) from error
    except BrokenProcessPool as error:
        raise SelftestError(
            "GOLDEN_CHILD",
            "a process that computes hashes was killed; nothing was written",
            exit_code=NO_ROOM,
            hint="is there memory left? 4 GB are enough for two processors",
        ) from error


def _written(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        text = f"cannot write {path}: {error.strerror or error}"
        raise SelftestError("GOLDEN_FILE", text, exit_code=NO_ROOM, at=str(path)) from error


def _say(done: int, total: int) -> None:
    if done % STEP == 0:
        remark(f"{done} of {total}")
