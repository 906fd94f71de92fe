"""A built .wsl archive gets its name, its record and its distribution manifest."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.records import ARCHIVES, IMAGES, BuiltArchive, recall, remember
from vega_image.spec import Target
from vega_image.store import Store, disk_errors, write_atomic
from vega_image.units import megabytes
from vega_image.wsl.archive import Archive
from vega_image.wsl.manifest import (
    MANIFEST,
    distribution_info,
    manifest_url,
    next_commands,
)
from vega_image.wsl.places import archive_name

_NAME: Final = r"[a-z0-9][a-z0-9.+-]{0,99}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Where the files go besides the store, and which address the manifest names."""

    output: Path | None = None
    url_base: str | None = None

    def over(
        self, store: Store, target: Target, made: str
    ) -> tuple[list[str], dict[str, Json]]:
        """Keep the archive that the store object `made` describes, and say what it is.

        Returns the lines for a person and the value for a script. Raises BytesError
        STORE_TAMPERED or OBJECT_GONE, EngineError DISK_FULL.
        """
        built = keep_archive(store, target, made)
        manifest = distribution_info(target, digest=built.digest, url_base=self.url_base)
        folder = Path(built.file).parent
        with disk_errors(folder):
            write_atomic(folder / MANIFEST, manifest)
        if self.output:
            folder = self.output
            place_archive(built, manifest, folder)
        file = folder / archive_name(target)
        commands = next_commands(target, url_base=self.url_base)
        sizes = f"{megabytes(built.bytes)}, {megabytes(built.uncompressed_bytes)} unpacked"
        lines = [
            f"{built.target}:{built.tag}",
            f"  digest   {built.digest}",
            f"  size     {sizes}",
            f"  archive  {file}",
            f"  manifest {folder / MANIFEST}",
            "  on Windows: never run; in WSL no gfx906 card computes (WSL_GFX906_UNSUPPORTED)",
            "  next, on Windows, with both files in place:",
            *(f"    {command}" for command in commands),
        ]
        value: dict[str, Json] = {
            "target": built.target,
            "kind": "wsl",
            "tag": built.tag,
            "digest": built.digest,
            "archive": str(file),
            "manifest": str(folder / MANIFEST),
            "manifest_url": manifest_url(self.url_base),
            "compressed_bytes": built.bytes,
            "uncompressed_bytes": built.uncompressed_bytes,
            "next": list(commands),
        }
        return lines, value


def keep_archive(store: Store, target: Target, made: str) -> BuiltArchive:
    """Give an archive of the store its file name, re-hashed, and remember it as the newest."""
    archive = Archive.from_json(store.read_json(made, what=f"archive of {target.name}"))
    source = store.verify(archive.digest, what=f"archive of {target.name}")
    folder = store.root / "images" / f"{target.name}-{archive.digest[7:23]}"
    file = folder / archive_name(target)
    with store.locked(f"build-{target.name}"), disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _named(source, file, store)
        built = BuiltArchive(
            target=target.name,
            tag=f"{target.version}-candidate",
            digest=archive.digest,
            bytes=archive.size,
            uncompressed_bytes=archive.uncompressed,
            file=str(file),
        )
        remember(store, ARCHIVES, target.name, built)
        # What the target was before it was of this kind is not its newest any more.
        store.drop_ref(IMAGES, target.name)
    return built


def built_archive(store: Store, name: str) -> BuiltArchive | None:
    """Return the newest archive built for a target here, or None; a store may have moved."""
    built = recall(store, ARCHIVES, name, BuiltArchive)
    if built is None:
        return None
    old = Path(built.file)
    file = store.root / "images" / old.parent.name / old.name
    return built.model_copy(update={"file": str(file)}) if file.is_file() else None


def archive_of(store: Store, ref: str) -> BuiltArchive | None:
    """Find the archive a REF names: `TARGET`, `name:tag` or `name@sha256:...`; None for others.

    Raises UsageError IMAGE_UNKNOWN when it names another one than the newest here.
    """
    name, _, digest = ref.partition("@")
    name, _, tag = name.partition(":")
    built = built_archive(store, name) if re.fullmatch(_NAME, name) else None
    if built is None:
        return None
    if tag not in {"", built.tag} or digest not in {"", built.digest}:
        msg = f"{ref}: the archive here is {name}:{built.tag}, {built.digest}"
        raise UsageError("IMAGE_UNKNOWN", msg, at=ref, hint=f"{name}@{built.digest}")
    return built


def place_archive(built: BuiltArchive, manifest: bytes, folder: Path) -> None:
    """Copy archive and manifest into a folder of the user's, sharing nothing with the store."""
    file = Path(built.file)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{file.name}.")
        os.close(handle)
        try:
            shutil.copyfile(file, draft)
            Path(draft).chmod(0o644)
            Path(draft).replace(folder / file.name)
        finally:
            Path(draft).unlink(missing_ok=True)
        write_atomic(folder / MANIFEST, manifest)


def refuse_wsl_options(
    target: Target, *, output: Path | None, url_base: str | None, codec: str | None
) -> None:
    """Raise UsageError BAD_CODEC, BAD_URL_BASE or FOLDER_IN_USE before work starts."""
    if codec not in {None, "gzip"}:
        msg = f"a .wsl archive is gzip, not {codec}"
        raise UsageError("BAD_CODEC", msg, at="--codec", hint="leave --codec out")
    manifest_url(url_base)
    if output is None or not output.exists():
        return
    names = [path.name for path in output.iterdir()] if output.is_dir() else [output.name]
    ours = (MANIFEST, f"{target.name}-*.wsl")
    foreign = [name for name in names if not any(fnmatchcase(name, glob) for glob in ours)]
    if foreign:
        msg = f"{output} is there and holds {foreign[0]}; nothing was written"
        raise UsageError("FOLDER_IN_USE", msg, at=str(output), hint="choose another folder")


def _named(source: Path, file: Path, store: Store) -> None:
    """Link or copy a store object to a name of its own, in one rename."""
    draft = store.tmp / f"named-{file.name}"
    draft.unlink(missing_ok=True)
    try:
        os.link(source, draft)
    except OSError:
        shutil.copyfile(source, draft)
    draft.replace(file)
    # Renaming a link onto another one of the same file does nothing and leaves both.
    draft.unlink(missing_ok=True)
