from __future__ import annotations

import gc
from pathlib import Path

from vega_image.scratch import claim, sweep
from vega_image.store import Store


def test_the_living_keep_their_folders_and_the_dead_lose_them(tmp_path: Path) -> None:
    living, dead = claim(tmp_path), claim(tmp_path)
    (living.path / "work").write_text("half done")
    (dead.path / "deep").mkdir()
    (dead.path / "deep/work").write_text("half done")
    dead.handle.close()
    (tmp_path / "a stray file").write_text("")
    (tmp_path / "run-lost.lock").write_text("")
    (tmp_path / "run-link").symlink_to(living.path)
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == [living.path, living.path.with_suffix(".lock")]
    assert (living.path / "work").read_text() == "half done"
    living.release()
    assert list(tmp_path.iterdir()) == []


def test_a_stores_scratch_is_its_own_and_goes_with_it(tmp_path: Path) -> None:
    one, other = Store(tmp_path), Store(tmp_path)
    assert one.tmp == one.tmp
    assert one.tmp != other.tmp
    (one.tmp / "work").write_text("half done")
    del one
    gc.collect()
    assert {path.with_suffix("") for path in (tmp_path / "tmp").iterdir()} == {other.tmp}


def test_a_store_that_only_reads_makes_no_scratch(tmp_path: Path) -> None:
    digest = Store(tmp_path).put(b"1")
    Store(tmp_path).verify(digest, what="it")
    assert list((tmp_path / "tmp").iterdir()) == []
