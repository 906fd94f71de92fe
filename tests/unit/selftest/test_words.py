"""What the words do before anything runs."""

from __future__ import annotations

import os

import pytest

from vega_image.selftest.main import share_processors


@pytest.mark.parametrize(("count", "threads"), [(1, "1"), (2, "1"), (3, "1"), (16, "8")])
def test_a_run_leaves_half_of_the_processors_to_others(
    monkeypatch: pytest.MonkeyPatch, count: int, threads: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)), raising=False)
    environ: dict[str, str] = {}
    share_processors(environ)
    assert environ == {"OMP_NUM_THREADS": threads}


def test_who_says_how_many_threads_is_heard() -> None:
    environ = {"OMP_NUM_THREADS": "7"}
    share_processors(environ)
    assert environ == {"OMP_NUM_THREADS": "7"}
