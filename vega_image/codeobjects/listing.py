"""Device code as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from vega_image.codeobjects.census import DeviceCode
from vega_image.console import table
from vega_image.units import megabytes


def code_lines(codes: list[DeviceCode]) -> Iterator[str]:
    """Write device code as a table: large files by name, folders of small ones summed."""
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
