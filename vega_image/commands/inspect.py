"""vega-image inspect: what an image is and which device code is in it."""

from __future__ import annotations

from collections.abc import Iterator

from vega_image.clioptions import Call
from vega_image.codeobjects.census import DeviceCode, census_file
from vega_image.codeobjects.listing import code_lines
from vega_image.console import table
from vega_image.digest import Json
from vega_image.images import layout_of
from vega_image.oci.layout import Layout, read_layout
from vega_image.oci.unpack import image_files
from vega_image.store import Store
from vega_image.units import megabytes
from vega_image.wsl.handover import archive_of
from vega_image.wsl.looking import inspect_archive


def inspect(call: Call, ref: str, *, device_code: bool) -> int:
    """Print digest, layers and labels; with `device_code` file x architecture x bytes."""
    call.factory.refuse_windows(ref)
    store = call.store
    archive = archive_of(store, ref)
    if archive is not None:
        return inspect_archive(call, archive, device_code=device_code)
    layout = read_layout(layout_of(store, ref))
    wanted = device_code or call.console.as_json
    codes = list(device_code_of(layout, store)) if wanted else []
    value: Json = {
        "digest": layout.digest,
        "image_id": layout.config_digest,
        "tag": layout.tag,
        "compressed_bytes": layout.compressed_bytes,
        "uncompressed_bytes": layout.uncompressed_bytes,
        "layers": [
            {"name": x.name, "digest": x.digest, "diff_id": x.diff_id, "bytes": x.size}
            for x in layout.layers
        ],
        "labels": layout.labels,
        "device_code": [
            {"path": code.path, "arch": code.arch, "bytes": code.bytes} for code in codes
        ],
    }
    lines = list(code_lines(codes)) if device_code else list(_lines(layout))
    call.console.result(lines, value)
    return 0


def device_code_of(layout: Layout, store: Store) -> Iterator[DeviceCode]:
    """Yield the device code of every file the image shows."""
    for file in image_files(layout, store):
        if file.content is not None and file.type == "0" and file.content.size:
            place = file.content
            path = store.path(place.object)
            yield from census_file(path, file.path, offset=place.offset, size=place.size)


def _lines(layout: Layout) -> Iterator[str]:
    yield f"digest    {layout.digest}"
    yield f"image id  {layout.config_digest}"
    yield f"tag       {layout.tag}"
    yield ""
    rows = [
        (layer.name, megabytes(layer.size), megabytes(layer.uncompressed or 0), layer.digest)
        for layer in layout.layers
    ]
    total = (
        "total",
        megabytes(layout.compressed_bytes),
        megabytes(layout.uncompressed_bytes),
        "",
    )
    yield from table(("LAYER", "TRANSFER", "UNPACKED", "DIGEST"), [*rows, total])
    yield ""
    yield from (f"{key} = {text}" for key, text in sorted(layout.labels.items()))
