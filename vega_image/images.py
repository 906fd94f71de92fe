"""Built images by name: `refs/images/<target>.json`, and what a REF stands for."""

from __future__ import annotations

import re
from pathlib import Path

from vega_image.digest import PREFIX
from vega_image.errors import UsageError
from vega_image.records import (
    ARCHIVES,
    IMAGES,
    RUNS,
    BuiltArchive,
    BuiltImage,
    RunRecord,
    recall,
    remember,
)
from vega_image.store import Store


def remember_image(store: Store, image: BuiltImage) -> None:
    """Make an image the newest of its target, also when an archive was that before."""
    store.drop_ref(ARCHIVES, image.target)
    remember(store, IMAGES, image.target, image)


def built_image(store: Store, target: str) -> BuiltImage | None:
    """Return the newest image built for a target here, or None; a store may have moved."""
    image = recall(store, IMAGES, target, BuiltImage)
    if image is None:
        return None
    folder = store.root / "images" / Path(image.layout).name
    there = (folder / "index.json").is_file()
    return image.model_copy(update={"layout": str(folder)}) if there else None


def remember_run(store: Store, target: str, *, device: str, image: str) -> None:
    """Record that an image of a target answered, and on which device."""
    remember(store, RUNS, target, RunRecord(device=device, image=image))


def last_run(store: Store, target: str) -> str | None:
    """Return the device on which an image of a target last answered here, or None."""
    row = recall(store, RUNS, target, RunRecord)
    return row.device if row else None


def layout_of(store: Store, ref: str) -> Path:
    """Find the OCI layout a REF names: `TARGET`, `name:tag`, `name@sha256:...` or `oci:DIR`.

    Raises UsageError IMAGE_UNKNOWN with the command that builds or lists.
    """
    if ref.startswith("oci:"):
        folder = Path(ref.removeprefix("oci:"))
        if not (folder / "index.json").is_file():
            msg = f"{folder}: not an OCI layout (no index.json)"
            raise UsageError("IMAGE_UNKNOWN", msg, at=ref, hint="oci:DIR")
        return folder
    name, _, digest = ref.partition("@")
    name, _, tag = name.removeprefix("localhost/").partition(":")
    image = built_image(store, name) if _safe(name) else None
    if image is None and _safe(name) and recall(store, ARCHIVES, name, BuiltArchive):
        raise no_image(name)
    if image is None:
        msg = f"{ref}: no such image in {store.root}"
        raise UsageError("IMAGE_UNKNOWN", msg, at=ref, hint=f"vega-image build {name}")
    if tag and tag != image.tag:
        msg = f"{ref}: the image here is tagged {image.tag}"
        raise UsageError("IMAGE_UNKNOWN", msg, at=ref, hint=f"{name}:{image.tag}")
    if digest and digest != image.digest:
        msg = f"{ref}: the image here is {image.digest}"
        known = digest.startswith(PREFIX)
        hint = f"{name}@{image.digest}" if known else f"{name}@sha256:<64 hex digits>"
        raise UsageError("IMAGE_UNKNOWN", msg, at=ref, hint=hint)
    return Path(image.layout)


def no_image(name: str) -> UsageError:
    """Make the error for a word that needs an image, said of a .wsl target."""
    msg = f"{name} is a .wsl archive: Windows starts it, there is no image that runs here"
    hint = f"vega-image build|inspect|reproduce {name}"
    return UsageError("TARGET_KIND", msg, hint=hint, at=name)


def _safe(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9][a-z0-9.+-]{0,99}", name) is not None
