from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vega_image.errors import EngineError
from vega_image.store import Store


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every file end at 64 KiB, as a full disk would end it.

    Not a fixture: pytest's own output may be a file, and longer than that by now.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("piece", [1 << 10, (1 << 16) + 1, 1 << 20])
def test_bytes_that_find_no_room_leave_nothing(tmp_path: Path, piece: int) -> None:
    store = Store(tmp_path)
    with full_disk(), pytest.raises(EngineError) as caught, store.writer() as out:  # noqa: PT012
        for _count in range(0, 1 << 20, piece):
            out.write(bytes(piece))
        out.commit()
    assert caught.value.code == "DISK_FULL"
    assert list(store.tmp.iterdir()) == []
    assert not any(path.is_file() for path in (tmp_path / "objects").rglob("*"))
