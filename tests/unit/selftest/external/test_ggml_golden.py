"""The ggml suite's table and hashes, and its C reference against numpy's."""

from __future__ import annotations

from pathlib import Path

import pytest

from vega_image.selftest.external.ggml.program import cases
from vega_image.selftest.external.ggml.table import rows

FOLDER = Path(__file__).resolve().parents[4] / "vega_image/selftest/external/ggml"
REQUIRED = {
    "MUL_MAT", "MUL_MAT_ID", "ADD", "MUL", "RMS_NORM", "SOFT_MAX", "ROPE", "GET_ROWS",
    "SET_ROWS", "CPY", "CONT", "SCALE", "SILU", "SWIGLU", "FLASH_ATTN", "ATTENTION",
}  # fmt: skip


def test_levels_are_cumulative_and_cover_what_a_language_model_runs() -> None:
    ids = [{row.id for row in cases(level)} for level in ("r1", "r2", "r3", "r4")]
    assert ids[0] < ids[1] < ids[2] <= ids[3]
    assert {row.op for row in cases("r2")} >= REQUIRED
    products = {row.type for row in cases("r1") if row.op == "MUL_MAT"}
    assert products == {"F32", "F16", "Q8_0", "Q4_0"}


def test_a_wide_accumulator_is_never_asked_for_without_a_narrow_twin() -> None:
    for row in cases("r2"):
        if row.profile == "ACC":
            twin = (row.op, row.type, row.a, row.b, row.c, row.d)
            assert any(
                (other.op, other.type, other.a, other.b, other.c, other.d) == twin
                for other in cases("r4")
                if other.profile == "ANY"
            ), row.id


def test_a_table_that_names_a_case_twice_is_refused() -> None:
    text = (FOLDER / "cases.def").read_text()
    with pytest.raises(ValueError, match="twice"):
        rows(text + text)


def test_the_shipped_hashes_are_those_of_the_table() -> None:
    from vega_image.selftest.suites.ggml.golden import golden_text

    text = golden_text((FOLDER / "cases.def").read_text())
    assert text == (FOLDER / "golden.def").read_text()


def test_changing_one_seed_changes_the_hash() -> None:
    from vega_image.selftest.suites.ggml.golden import golden_text

    text = (FOLDER / "cases.def").read_text()
    assert golden_text(text.replace("add-256x4x1", "add-256x4x9")) != golden_text(text)


def test_half_precision_products_stay_finite_and_exact() -> None:
    """No sum of absolute products leaves the accumulator its profile names."""
    import numpy as np

    from vega_image.selftest.suites.ggml.products import product

    for row in cases("r2"):
        if row.op != "MUL_MAT":
            continue
        sums = np.abs(product(row))
        limit = {"ANY": 2048, "ACC": 65504}.get(row.profile, 1 << 24)
        assert sums.max() <= limit, row.id
