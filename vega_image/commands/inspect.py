"""vega-image inspect: what an image is and which device code is in it."""

from __future__ import annotations

from collections.abc import Iterator

from vega_image.clioptions import Call
from vega_image.codeobjects.census import DeviceCode, census_file
from vega_image.console import table
from vega_image.digest import Json
from vega_image.images import layout_of
from vega_image.oci.layout import Layout, read_layout
from vega_image.oci.unpack import image_files
from vega_image.store import Store
from vega_image.units import megabytes


def inspect(call: Call, ref: str, *, device_code: bool) -> int:
    """Print digest, layers and labels; with `device_code` file x architecture x bytes."""
    store = call.store
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
    lines = list(_code_lines(codes)) if device_code else list(_lines(layout))
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


def _code_lines(codes: list[DeviceCode]) -> Iterator[str]:
    if not codes:
        yield "no device code"
        return
    archs = sorted({code.arch for code in codes})
    large = [code for code in codes if code.objects > 1]
    small = [code for code in codes if code.objects == 1]
    rows = [(c.arch, megabytes(c.bytes), str(c.objects), c.path) for c in large]
    for folder in sorted({_folder(code.path) for code in small}):
        for arch in archs:
            inside = [c for c in small if c.arch == arch and _folder(c.path) == folder]
            if inside:
                size = megabytes(sum(code.bytes for code in inside))
                rows.append((arch, size, str(len(inside)), f"{folder}/ ({len(inside)} files)"))
    yield from table(("ARCH", "BYTES", "OBJECTS", "FILE"), rows)
    yield f"architectures: {', '.join(archs)}; every file: --json"


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
