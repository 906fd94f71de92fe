"""dpkg's own records of extracted packages, so that scanners and `dpkg -V` see them.

Formats: deb-control(5), dpkg(1) FILES. `*.list` and `*.md5sums` speak of the files that were
kept, md5sums with the package's own sums: `dpkg -V` then names exactly the slimmed files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from vega_image.errors import StageError
from vega_image.lock import PackageFile
from vega_image.rootfs.collect import parents
from vega_image.rootfs.deb import Extracted

FOLDER: Final = "var/lib/dpkg"
_INSTALLED: Final = "Status: install ok installed"


def dpkg_files(
    parts: Sequence[Extracted], packages: Sequence[PackageFile]
) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of each record.

    Raises StageError BROKEN_PACKAGE when a control file speaks of another package.
    """
    locked = {package.package: package for package in packages}
    stanzas: list[str] = []
    for part in sorted(parts, key=lambda part: part.package):
        package = locked[part.package]
        stanza = part.control["control"].strip("\n")
        fields = _fields(stanza)
        _check(fields, package)
        stanzas.append(_status(stanza))
        shared = fields.get("Multi-Arch") == "same"
        name = f"{package.package}:{package.architecture}" if shared else package.package
        yield f"{FOLDER}/info/{name}.list", _list(part)
        yield f"{FOLDER}/info/{name}.md5sums", part.control.get("md5sums", "")
    yield f"{FOLDER}/info/format", "1\n"
    yield f"{FOLDER}/status", "".join(f"{stanza}\n\n" for stanza in stanzas)


def _fields(stanza: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in stanza.split("\n") if line[:1].strip())
    return {key: text.strip() for key, _, text in pairs}


def _check(fields: Mapping[str, str], package: PackageFile) -> None:
    said = [fields.get(key) for key in ("Package", "Version", "Architecture")]
    wanted = [package.package, package.version, package.architecture]
    if said != wanted:
        msg = f"{package.pool_path}: its control file says {said}, the lock {wanted}"
        raise StageError("BROKEN_PACKAGE", msg, at=package.pool_path)


def _status(stanza: str) -> str:
    lines = [line for line in stanza.split("\n") if line.strip()]
    first = next(i for i, line in enumerate(lines) if line.startswith("Package:"))
    return "\n".join([*lines[: first + 1], _INSTALLED, *lines[first + 1 :]])


def _list(part: Extracted) -> str:
    paths = {entry.path for entry in part.entries}
    paths |= {parent for path in paths for parent in parents(path)}
    return "/.\n" + "".join(f"/{path}\n" for path in sorted(paths))
