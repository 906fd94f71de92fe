"""A right answer of linear algebra, from the processor: only shapes and faults rest on it."""

from __future__ import annotations

from collections.abc import Mapping

from vega_image.selftest.devices.tensors import to_array, to_tensor
from vega_image.selftest.seam import Array
from vega_image.selftest.suites.backend import load_torch
from vega_image.selftest.suites.linalg.row import Params, Row


def right_answer(row: Row, inputs: Mapping[str, Array], params: Params) -> Mapping[str, Array]:
    """Run a row on the processor."""
    torch = load_torch()
    given = {name: to_tensor(torch, array) for name, array in inputs.items()}
    found = row.run(torch, given, params)
    return {name: to_array(torch, found[name]) for name in row.returned(params)}
