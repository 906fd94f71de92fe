"""`inspect` of a .wsl archive: what it is, does it keep the rules, which device code it has."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.codeobjects.census import DeviceCode, census_file
from vega_image.codeobjects.listing import code_lines
from vega_image.digest import Json
from vega_image.errors import BytesError
from vega_image.lockfile import decode_lock
from vega_image.records import BuiltArchive
from vega_image.rootfs.generated import PACKAGES_PATH
from vega_image.rootfs.tarread import TarStream
from vega_image.store import CHUNK, Store, digest_file, disk_errors
from vega_image.units import megabytes
from vega_image.wsl.checks import check_archive
from vega_image.wsl.places import LOCK
from vega_image.wsl.reading import inflated, list_archive, small_files


def inspect_archive(call: Call, built: BuiltArchive, *, device_code: bool) -> int:
    """Print what an archive of the store is; with `device_code` also its GPU code.

    Raises BytesError STORE_TAMPERED, NOT_AN_ARCHIVE.
    """
    path = verified(built)
    listing = list_archive(path)
    texts = small_files(listing)
    lock = decode_lock(texts.get(LOCK, b""), at=LOCK)
    packages = json.loads(texts.get(PACKAGES_PATH, b'{"packages": []}'))["packages"]
    findings = check_archive(listing, epoch=lock.epoch)
    wanted = device_code or call.console.as_json
    codes = list(_device_code(path, call.store)) if wanted else []
    value: Json = {
        "kind": "wsl",
        "digest": built.digest,
        "tag": built.tag,
        "archive": str(path),
        "compressed_bytes": built.bytes,
        "uncompressed_bytes": built.uncompressed_bytes,
        "files": len(listing.nodes),
        "packages": len(packages),
        "findings": [finding.to_json() for finding in findings],
        "device_code": [{"path": c.path, "arch": c.arch, "bytes": c.bytes} for c in codes],
    }
    lines = [
        f"digest    {built.digest}",
        f"tag       {built.tag}",
        f"archive   {path}",
        f"size      {megabytes(built.bytes)}, {megabytes(built.uncompressed_bytes)} unpacked",
        f"holds     {len(listing.nodes)} files of {len(packages)} packages",
        f"lock      {lock.digest}",
        "rules     kept" if not findings else f"rules     {len(findings)} broken",
        *(f"  {finding.text()}" for finding in findings),
    ]
    call.console.result(list(code_lines(codes)) if device_code else lines, value)
    return 0


def verified(built: BuiltArchive) -> Path:
    """Return the path of an archive of the store, re-hashed; raises STORE_TAMPERED."""
    path = Path(built.file)
    found = digest_file(path)
    if found != built.digest:
        msg = f"{path}: its bytes are {found}, not {built.digest}"
        hint = f"vega-image clean {built.target} --yes, then build again"
        raise BytesError("STORE_TAMPERED", msg, at=str(path), hint=hint)
    return path


def _device_code(path: Path, store: Store) -> Iterator[DeviceCode]:
    """Inflate the archive beside the store for a moment: a census jumps about in a file."""
    with disk_errors(store.tmp), tempfile.NamedTemporaryFile(dir=store.tmp) as plain:
        with inflated(path) as source:
            while data := source.read(CHUNK):
                plain.write(data)
        plain.flush()
        place = Path(plain.name)
        with place.open("rb") as file:
            for member in TarStream(file, path.name):
                if member.type in "07" and member.size:
                    yield from census_file(
                        place, member.path, offset=member.offset, size=member.size
                    )
