"""The two small documents that make layers an image: OCI configuration and manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from vega_image.digest import Json, canonical, digest_bytes
from vega_image.lock import Lock
from vega_image.spec import ImageConfig, Target

MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE: Final = "application/vnd.oci.image.config.v1+json"
OWN: Final = "io.vega-image."
OCI: Final = "org.opencontainers.image."
LAYER_NAME: Final = OWN + "layer.name"
LAYER_BYTES: Final = OWN + "layer.uncompressed-bytes"
LAYER_CODEC: Final = OWN + "layer.compression"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLayer:
    """A layer in both forms.

    `diff_id` and `size` are those of its tar, `blob` and `blob_size` of what is transferred.
    """

    name: str
    diff_id: str
    size: int
    blob: str
    blob_size: int
    media_type: str
    compression: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image's documents as exact bytes."""

    config: bytes
    manifest: bytes

    @property
    def config_digest(self) -> str:
        """The image id that Docker and podman show."""
        return digest_bytes(self.config)

    @property
    def digest(self) -> str:
        """What a registry calls the image."""
        return digest_bytes(self.manifest)


def make_image(
    layers: Sequence[ImageLayer],
    config: ImageConfig,
    *,
    labels: Mapping[str, str],
    epoch: int,
    architecture: str = "amd64",
) -> Image:
    """Describe layers, lowest first; `labels` go into config and manifest alike.

    Docker shows a config's labels, registries a manifest's annotations.
    """
    created = rfc3339(epoch)
    config_bytes = canonical(
        {
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": _process(config) | {"Labels": dict(labels)},
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [
                {"created": created, "created_by": f"vega-image layer {layer.name}"}
                for layer in layers
            ],
        }
    )
    manifest: Json = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(CONFIG_TYPE, config_bytes),
        "layers": [_layer(layer) for layer in layers],
        "annotations": dict(labels),
    }
    return Image(config_bytes, canonical(manifest))


def labels_of(target: Target, lock: Lock) -> dict[str, str]:
    """Return an image's labels: OCI's keys as far as we know them, the spec's own, and ours.

    A label of the spec may replace one of OCI's, never one that says what was built.
    """
    oci = {
        "title": target.title,
        "description": target.description,
        "version": target.version,
        "licenses": target.licenses,
        "ref.name": target.name,
    }
    built = {
        OCI + "created": rfc3339(lock.epoch),
        OWN + "target": target.name,
        OWN + "gpu.arch": target.gpu,
        OWN + "lock.digest": lock.digest,
        OWN + "spec.digest": lock.spec_digest,
    }
    if target.serve:
        built[OWN + "serve"] = canonical(target.serve.model_dump(mode="json")).decode()
    return {OCI + key: text for key, text in oci.items()} | target.config.labels | built


def rfc3339(epoch: int) -> str:
    """Write seconds since 1970 as OCI wants a time.

    >>> rfc3339(1764460800)
    '2025-11-30T00:00:00Z'
    """
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def descriptor(media_type: str, data: bytes) -> dict[str, Json]:
    """Describe bytes as OCI does."""
    return {"mediaType": media_type, "digest": digest_bytes(data), "size": len(data)}


def _layer(layer: ImageLayer) -> Json:
    notes = {LAYER_NAME: layer.name, LAYER_BYTES: str(layer.size)}
    if layer.compression:
        notes[LAYER_CODEC] = layer.compression
    return {
        "mediaType": layer.media_type,
        "digest": layer.blob,
        "size": layer.blob_size,
        "annotations": notes,
    }


def _process(config: ImageConfig) -> dict[str, Json]:
    settings: dict[str, Json] = {
        "User": config.user,
        "Env": [f"{key}={config.env[key]}" for key in sorted(config.env)],
        "WorkingDir": config.workdir,
    }
    if config.entrypoint:
        settings["Entrypoint"] = list(config.entrypoint)
    if config.cmd:
        settings["Cmd"] = list(config.cmd)
    return settings
