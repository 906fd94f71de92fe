from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.selftest.suites import rng

FROZEN = [16, -8, 36, 21, 8, 36]
SEEDS = st.integers(0, 2**64 - 1)


def splitmix(seed: int, count: int) -> list[int]:
    """The published algorithm, with Python's own integers."""
    mask, state, found = 2**64 - 1, seed, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        found.append(z ^ (z >> 31))
    return found


@given(SEEDS, st.integers(0, 50))
def test_words_are_those_of_the_published_generator(seed: int, count: int) -> None:
    assert rng.words(seed, count).tolist() == splitmix(seed, count)


@given(SEEDS, st.integers(0, 40), st.integers(0, 40))
def test_a_stream_can_be_begun_anywhere(seed: int, start: int, count: int) -> None:
    assert (
        rng.words(seed, count, start=start).tolist()
        == rng.words(seed, start + count)[start:].tolist()
    )


def test_blocks_join_without_a_seam() -> None:
    count = 2 * rng.BLOCK + 3
    assert rng.words(5, count)[-4:].tolist() == rng.words(5, 4, start=count - 4).tolist()


@pytest.mark.parametrize("most", [1, 2, 21, 1023, 1024, 1 << 20])
def test_integers_keep_their_range_and_reach_its_ends(most: int) -> None:
    drawn = rng.integers(7, most, (200_000,))
    assert drawn.min() >= -most
    assert drawn.max() <= most
    if most <= 1024:
        assert {-most, most} <= set(drawn.tolist())
    assert (0 in drawn) == (most > 1) or most > 1024
    assert abs(float(drawn.mean())) < 6 * most / np.sqrt(3 * 200_000) * 1.8


def test_normal_numbers_are_centred_and_of_unit_variance() -> None:
    drawn = rng.normal(3, (400_000,))
    assert abs(drawn.mean()) < 6 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1) < 6 * np.sqrt(2 / drawn.size)
    assert np.abs(drawn).max() < 3.47


def test_what_the_goldens_rest_on_has_not_moved() -> None:
    name = "conv 1x3x224x224 -> 64, 7x7 s2x2 p3x3 d1x1 g1:fp32:W:int"
    assert rng.integers(rng.seed_of(f"{name}/0"), 36, (6,)).tolist() == FROZEN
