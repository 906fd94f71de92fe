"""The order of versions is dpkg's."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from vega_image.debversion import compare, sort_key
from vega_image.process import run

pieces = st.sampled_from(
    ["0", "1", "9", "10", "00", "a", "b", "rc", "~", "+", ".", "dfsg", "Z"]
)
upstreams = st.lists(pieces, max_size=5).map(lambda parts: "1" + "".join(parts))
versions = st.builds(
    lambda epoch, upstream, revision: epoch + upstream + revision,
    st.sampled_from(["", "0:", "1:"]),
    upstreams,
    st.one_of(st.just(""), upstreams.map(lambda text: f"-{text}")),
)


@settings(max_examples=60, deadline=None)
@given(versions, versions)
def test_as_dpkg(left: str, right: str) -> None:
    word = {-1: "lt", 0: "eq", 1: "gt"}[compare(left, right)]
    assert run(["dpkg", "--compare-versions", left, word, right]).returncode == 0


@given(versions, versions)
def test_both_ways(left: str, right: str) -> None:
    assert compare(left, right) == -compare(right, left)
    assert compare(left, left) == 0


def test_sorted() -> None:
    mixed = ["1.10", "1.0~", "1:0.1", "1.0+b1", "1.0", "1.9", "1.0~~", "1.0.1"]
    ordered = ["1.0~~", "1.0~", "1.0", "1.0+b1", "1.0.1", "1.9", "1.10", "1:0.1"]
    assert sorted(mixed, key=sort_key) == ordered
