"""What we read of other people's OCI documents: shapes checked, unknown keys ignored."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vega_image.errors import BytesError

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Descriptor(_Document):
    """A blob: its digest cannot name anything outside `blobs/sha256`."""

    media_type: str = Field(alias="mediaType")
    digest: Digest
    size: int = Field(ge=0)
    annotations: dict[str, str] | None = None


class Index(_Document):
    """`index.json`."""

    schema_version: int = Field(alias="schemaVersion", ge=2, le=2)
    manifests: tuple[Descriptor, ...]


class Manifest(_Document):
    """An image manifest."""

    schema_version: int = Field(alias="schemaVersion", ge=2, le=2)
    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: dict[str, str] | None = None


class RootFs(_Document):
    """The uncompressed layers."""

    diff_ids: tuple[Digest, ...]


class Settings(_Document):
    """The part of a configuration that says how to start it."""

    labels: dict[str, str] | None = Field(default=None, alias="Labels")


class Config(_Document):
    """An image configuration."""

    config: Settings = Settings(Labels=None)
    rootfs: RootFs


DocumentT = TypeVar("DocumentT", bound=_Document)


def decode(kind: type[DocumentT], data: bytes, *, at: str) -> DocumentT:
    """Decode a document; raises BytesError LAYOUT_DAMAGED naming the first wrong key."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        msg = f"{at}: {where}: {first['msg']}"
        raise BytesError("LAYOUT_DAMAGED", msg, at=at) from error
