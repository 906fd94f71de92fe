"""diffoscope, where it is installed, on the first file that a rebuild made differently."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from vega_image.process import run, which

LINES = 30
LARGEST = 8 << 20
_REPORT_BYTES = 20_000


def explained(sides: Mapping[str, bytes | memoryview]) -> list[str]:
    """Return diffoscope's first lines about two contents, `sides` being name -> bytes.

    Empty when it is not installed, has nothing to say, or a file is too large to wait for.
    """
    if which("diffoscope") is None or any(len(data) > LARGEST for data in sides.values()):
        return []
    with tempfile.TemporaryDirectory(prefix="vega-image-differ-") as name:
        paths = []
        for side, data in sides.items():
            paths.append(Path(name, side))
            paths[-1].write_bytes(data)
        limit = f"--max-text-report-size={_REPORT_BYTES}"
        said = run(["diffoscope", "--text=-", limit, "--", *map(str, paths)])
        return said.output.replace(f"{name}/", "").splitlines()[:LINES]
