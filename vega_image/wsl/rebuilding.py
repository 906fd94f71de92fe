"""`reproduce` of a .wsl archive: build again from the spec and lock inside it, and compare."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from pydantic import ValidationError

from vega_image.clioptions import Call
from vega_image.digest import Json
from vega_image.errors import BytesError, LockError
from vega_image.executor import execute
from vega_image.freshstore import empty_store
from vega_image.line import real_job
from vega_image.lock import Lock
from vega_image.lockfile import check_lock, decode_lock
from vega_image.oci.compress import tool_versions
from vega_image.prepare import prepare
from vega_image.records import BuiltArchive
from vega_image.rootfs.generated import LOCK_PATH, TARGET_PATH
from vega_image.spec import Target
from vega_image.wsl.archive import Archive
from vega_image.wsl.looking import verified
from vega_image.wsl.reading import list_archive, opened, small_files

Row = tuple[str, str]


def reproduce_archive(call: Call, ref: str, built: BuiltArchive) -> int:
    """Rebuild and compare; raises BytesError NOT_REPRODUCED naming the first difference."""
    path = verified(built)
    target, lock = inside(path)
    prepared = prepare(call.factory, target, lock)
    with empty_store(call.store, lock) as fresh:
        with real_job(call, prepared, fresh) as job:
            made = execute(job, call.console)[-1].artifact
        new = Archive.from_json(fresh.read_json(made.digest, what="the rebuilt archive"))
        if new.digest != built.digest:
            where, what = difference(path, fresh.path(new.digest))
            msg = f"{ref}: the rebuild is {new.digest}, not {built.digest}"
            msg += f"\n  first: {where}: {what}"
            hint = f"vega-image inspect {ref}"
            raise BytesError("NOT_REPRODUCED", msg, at=where, hint=hint)
    value: Json = {"ref": ref, "digest": built.digest, "reproduced": True}
    line = f"{ref}: rebuilt from an empty store, same digest {built.digest}"
    call.console.result([line], value)
    return 0


def inside(path: Path) -> tuple[Target, Lock]:
    """Read spec and lock out of an archive; raises LockError NO_LOCK_INSIDE, LOCK_EDITED."""
    files = small_files(list_archive(path))
    hint = "vega-image build TARGET makes ones that do"
    try:
        target = Target.model_validate_json(files[TARGET_PATH])
        lock = decode_lock(files[LOCK_PATH], at=LOCK_PATH)
    except (KeyError, ValidationError):
        msg = f"{path.name}: the archive does not carry its spec and lock"
        raise LockError("NO_LOCK_INSIDE", msg, hint=hint) from None
    check_lock(lock, target, tools=tool_versions(target.compression.codec))
    return target, lock


def difference(left: Path, right: Path) -> Row:
    """Say in which member two archives first differ, and what the two have there."""
    for one, other in zip_longest(_rows(left), _rows(right), fillvalue=("", "absent")):
        if one != other:
            return min(filter(None, (one[0], other[0]))), f"{one[1]} became {other[1]}"
    return left.name, "the same files, compressed to other bytes"


def _rows(path: Path) -> Iterator[Row]:
    with opened(path) as tar:
        for member in tar:
            content = sha256()
            for data in tar.chunks():
                content.update(data)
            link = f" -> {member.link}" if member.link else ""
            what = f"type {member.type}, {member.mode:04o} {member.uid}:{member.gid}{link}"
            yield member.path, f"{what}, sha256:{content.hexdigest()}"
