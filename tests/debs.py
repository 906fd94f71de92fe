"""A .deb byte by byte, so that its content may be as hostile as a test wants."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from vega_image.lock import PackageFile
from vega_image.store import Store


def tar(*members: tarfile.TarInfo | tuple[str, str]) -> bytes:
    """A tar of (path, text) files and of whatever else is given as TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for one in members:
            if isinstance(one, tarfile.TarInfo):
                archive.addfile(one)
                continue
            info = tarfile.TarInfo(f"./{one[0]}")
            info.size = len(one[1])
            archive.addfile(info, io.BytesIO(one[1].encode()))
    return out.getvalue()


def deb(name: str, data: bytes, *, version: str = "1.0-1", md5sums: str = "") -> bytes:
    """A .deb of architecture amd64 with this data.tar."""
    fields = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMulti-Arch: same\n"
    control = fields + "Maintainer: T <t@example.org>\nDescription: tiny\n"
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar": tar(("control", control), ("md5sums", md5sums)),
        "data.tar": data,
    }
    rows = [b"!<arch>\n"]
    for part, content in parts.items():
        rows.append(f"{part:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
        rows.append(content + b"\n" * (len(content) % 2))
    return b"".join(rows)


def locked(store: Store, name: str, data: bytes, **control: str) -> PackageFile:
    """Put a .deb into the store as a locked package."""
    content = deb(name, data, **control)
    store.put(content)
    return PackageFile(
        package=name,
        version=control.get("version", "1.0-1"),
        architecture="amd64",
        suite="trixie",
        pool_path=f"pool/main/{name}.deb",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def member(path: str, kind: bytes, link: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    """A member without bytes."""
    info = tarfile.TarInfo(path)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def spoil(path: Path, data: bytes) -> None:
    """Overwrite a store object."""
    path.chmod(0o644)
    path.write_bytes(data)
