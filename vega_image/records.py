"""What the store remembers by name, read with suspicion: a damaged record is no record."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import ValidationError

from vega_image.digest import Json
from vega_image.lock import Digest
from vega_image.model import Model
from vega_image.store import Store

STEPS = "steps"
IMAGES = "images"
ARCHIVES = "archives"
RUNS = "runs"
# Trees and VM images of Windows targets: folders beside `refs`, no records.
MACHINES = "windows"
M = TypeVar("M", bound=Model)


class StepRecord(Model):
    """A finished step: what it made, for which target, in how many seconds."""

    target: str
    name: str
    kind: str
    digest: Digest
    media_type: str
    needs: tuple[Digest, ...]
    seconds: float

    def objects(self) -> set[str]:
        """Every store object that must be there."""
        return {self.digest, *self.needs}


class BuiltImage(Model):
    """An image in the store: its manifest's digest and the folder of its OCI layout."""

    target: str
    tag: str
    digest: Digest
    layout: str


class BuiltArchive(Model):
    """A .wsl archive in the store: `digest` is its object, `file` has its own name."""

    target: str
    tag: str
    digest: Digest
    bytes: int
    uncompressed_bytes: int
    file: str


class RunRecord(Model):
    """On which device an image of a target last answered."""

    device: str
    image: str


def remember(store: Store, kind: str, name: str, record: Model) -> None:
    """Write a record in place of the one before it."""
    value: Json = record.model_dump(mode="json")
    store.set_ref(kind, name, value)


def recall(store: Store, kind: str, name: str, shape: type[M]) -> M | None:
    """Read a record back; None when there is none or it is damaged."""
    try:
        return shape.model_validate_json(json.dumps(store.get_ref(kind, name)))
    except ValidationError:
        return None


def step_records(store: Store) -> dict[str, StepRecord]:
    """All step records by the hex digits of their step's id."""
    found = {name: recall(store, STEPS, name, StepRecord) for name in store.refs(STEPS)}
    return {name: record for name, record in found.items() if record is not None}
