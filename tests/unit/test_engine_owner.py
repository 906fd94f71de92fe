from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from vega_image.engines.owner import Owner


def test_this_process_is_alive_and_its_label_reads_back() -> None:
    mine = Owner.current()
    assert Owner.parse(str(mine)) == mine
    assert mine.pid == os.getpid()
    assert not mine.surely_dead(mine)


def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    mine = Owner.current()
    assert replace(mine, started=mine.started - 1).surely_dead(mine)


def test_a_number_nobody_has_is_dead() -> None:
    mine = Owner.current()
    assert replace(mine, pid=2**22 + 1).surely_dead(mine)


def test_before_the_last_boot_everybody_is_dead() -> None:
    mine = Owner.current()
    assert replace(mine, boot="another").surely_dead(mine)


def test_a_process_of_another_namespace_may_live() -> None:
    mine = Owner.current()
    assert not replace(mine, namespace="1", pid=2**22 + 1).surely_dead(mine)


@given(st.text())
def test_any_label_is_read_or_not_ours(text: str) -> None:
    owner = Owner.parse(text)
    assert owner is None or owner.pid >= 0
