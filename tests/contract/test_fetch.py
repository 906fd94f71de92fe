"""Fetching from a server that truncates, swaps, forgets and dies; being killed meanwhile."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from tests.fileserver import Fault, FileServer, serving
from vega_image.digest import PREFIX
from vega_image.errors import BytesError, EngineError, VegaError
from vega_image.process import output_of
from vega_image.sources.download import Wanted
from vega_image.sources.fetch import fetch_files
from vega_image.store import Store, digest_file

BIG = 700_001


@dataclass
class Desk:
    server: FileServer
    store: Store
    data: dict[str, bytes]
    heard: list[tuple[int, int]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def wanted(self, name: str, *bases: str) -> Wanted:
        data = self.data[name]
        return Wanted(
            name=name,
            urls=tuple(f"{base}/{name}" for base in bases or (self.server.url,)),
            size=len(data),
            sha256=sha256(data).hexdigest(),
        )

    def fetch(self, *wanted: Wanted, offline: bool = False) -> None:
        fetch_files(
            wanted,
            store=self.store,
            offline=offline,
            progress=lambda done, total: self.heard.append((done, total)),
            log=self.lines.append,
        )

    def refused(
        self, *wanted: Wanted, kind: type[VegaError] = BytesError, offline: bool = False
    ) -> VegaError:
        with pytest.raises(kind) as caught:
            self.fetch(*wanted, offline=offline)
        for item in wanted:
            path = self.store.path(PREFIX + item.sha256)
            assert not path.exists() or digest_file(path) == PREFIX + item.sha256
        return caught.value

    def stored(self, name: str) -> bool:
        digest = PREFIX + sha256(self.data[name]).hexdigest()
        return self.store.has(digest) and digest_file(self.store.path(digest)) == digest

    def partial(self, name: str) -> Path:
        return self.store.partial / f"{sha256(self.data[name]).hexdigest()}.part"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    root = tmp_path / "files"
    root.mkdir()
    data = {
        "big": random.Random(1).randbytes(BIG),
        "tiny": b"t",
        **{f"file{i}": random.Random(i).randbytes(5_000 * i) for i in range(2, 9)},
    }
    for name, content in data.items():
        (root / name).write_bytes(content)
    with serving(root) as server:
        yield Desk(server, Store(tmp_path / "store"), data)


def test_everything_arrives_and_a_second_run_asks_nothing(desk: Desk) -> None:
    wanted = [desk.wanted(name) for name in desk.data]
    desk.fetch(*wanted)
    assert all(desk.stored(name) for name in desk.data)
    total = sum(map(len, desk.data.values()))
    assert desk.heard[0] == (0, total)
    assert desk.heard[-1] == (total, total)
    assert list(desk.store.partial.iterdir()) == []
    asked = len(desk.server.requests)
    desk.fetch(*wanted)
    desk.fetch(*wanted, offline=True)
    assert len(desk.server.requests) == asked == len(desk.data)


def test_local_archives(desk: Desk) -> None:
    desk.fetch(desk.wanted("big", f"file://{desk.server.root}"))
    desk.fetch(desk.wanted("tiny", f"copy:{desk.server.root}"))
    assert desk.stored("big")
    assert desk.stored("tiny")


def test_offline_names_what_is_missing(desk: Desk) -> None:
    desk.fetch(desk.wanted("tiny"))
    error = desk.refused(desk.wanted("tiny"), desk.wanted("big"), offline=True)
    assert error.code == "OFFLINE_MISSING"
    assert "big" in error.message
    assert "tiny" not in error.message
    assert desk.server.asked("/big") == []


def test_a_dropped_connection_is_taken_up_where_it_broke(desk: Desk) -> None:
    desk.server.faults["/big"] = Fault(cut=BIG // 3)
    desk.fetch(desk.wanted("big"))
    assert desk.stored("big")
    third = BIG // 3
    assert desk.server.asked("/big")[:3] == ["", f"bytes={third}-", f"bytes={2 * third}-"]


def test_truncated_is_exit_4_and_goes_on_later(desk: Desk) -> None:
    desk.server.faults["/big"] = Fault(cut=1000)
    error = desk.refused(desk.wanted("big"))
    assert (error.code, error.exit_code) == ("FETCH_TRUNCATED", 4)
    assert desk.partial("big").stat().st_size == 4000
    desk.server.faults.clear()
    desk.fetch(desk.wanted("big"))
    assert desk.stored("big")
    assert desk.server.asked("/big")[-1] == "bytes=4000-"
    assert desk.heard[-1] == (BIG, BIG)


def test_file_that_is_shorter_on_the_server(desk: Desk) -> None:
    desk.server.faults["/big"] = Fault(body=desk.data["big"][:-1])
    assert desk.refused(desk.wanted("big")).code == "FETCH_TRUNCATED"


def test_file_that_shrank_below_what_is_here(desk: Desk) -> None:
    desk.partial("big").write_bytes(desk.data["big"][:5000])
    desk.server.faults["/big"] = Fault(body=b"short")
    assert desk.refused(desk.wanted("big")).code == "FETCH_TRUNCATED"
    assert desk.server.asked("/big") == ["bytes=5000-", ""]


@pytest.mark.parametrize("extra", [b"", b"more"])
def test_swapped_file_is_exit_4(desk: Desk, extra: bytes) -> None:
    body = bytes(BIG) + extra
    desk.server.faults["/big"] = Fault(body=body)
    error = desk.refused(desk.wanted("big"))
    assert (error.code, error.exit_code) == ("FETCH_WRONG_DIGEST", 4)
    assert not desk.partial("big").exists()
    assert not desk.stored("big")


def test_one_flipped_bit_is_found(desk: Desk) -> None:
    body = bytearray(desk.data["big"])
    body[BIG // 2] ^= 1
    desk.server.faults["/big"] = Fault(body=bytes(body))
    assert desk.refused(desk.wanted("big")).code == "FETCH_WRONG_DIGEST"


@pytest.mark.parametrize("rubbish", [b"x" * 5000, b"x" * BIG, b"x" * (BIG + 7)])
def test_a_spoilt_partial_file_costs_only_time(desk: Desk, rubbish: bytes) -> None:
    desk.partial("big").write_bytes(rubbish)
    desk.fetch(desk.wanted("big"))
    assert desk.stored("big")
    assert desk.heard[-1] == (BIG, BIG)


def test_server_that_cannot_resume(desk: Desk) -> None:
    desk.partial("big").write_bytes(desk.data["big"][:5000])
    desk.server.faults["/big"] = Fault(ranges=False)
    desk.fetch(desk.wanted("big"))
    assert desk.stored("big")
    assert desk.heard[-1] == (BIG, BIG)


def test_all_gone_files_are_named_with_the_ways_out(desk: Desk) -> None:
    desk.server.faults["/file2"] = Fault(status=404)
    desk.server.faults["/file3"] = Fault(status=410)
    error = desk.refused(*(desk.wanted(name) for name in desk.data))
    assert (error.code, error.exit_code) == ("FILE_GONE", 4)
    for words in ("file2", "file3", "vega-image lock", "--debian-snapshot", "pool import"):
        assert words in error.message
    assert "file4" not in error.message
    assert desk.stored("big")


def test_snapshot_base_has_what_the_mirror_dropped(desk: Desk, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "big").write_bytes(desk.data["big"])
    desk.server.faults["/big"] = Fault(status=404)
    desk.fetch(desk.wanted("big", desk.server.url, f"file://{old}"))
    assert desk.stored("big")


@pytest.mark.parametrize(("status", "code"), [(403, "FETCH_REFUSED"), (500, "FETCH_FAILED")])
def test_server_errors(desk: Desk, status: int, code: str) -> None:
    desk.server.faults["/big"] = Fault(status=status)
    error = desk.refused(desk.wanted("big"))
    assert error.code == code
    assert str(status) in error.message


def test_unreachable_server(desk: Desk) -> None:
    assert desk.refused(desk.wanted("big", "http://127.0.0.1:1")).code == "FETCH_FAILED"


def test_password_goes_to_its_host_only(desk: Desk) -> None:
    with serving(desk.server.root) as other:
        desk.server.password = "Basic YW5uOnMzY3JldA=="
        desk.server.faults["/big"] = Fault(elsewhere=f"{other.url}/big")
        base = desk.server.url.replace("//", "//ann:s3cret@")
        desk.fetch(desk.wanted("big", base))
        assert desk.stored("big")
        assert [secret for _path, _range, secret in other.requests] == [""]
        error = desk.refused(desk.wanted("tiny", base.replace("s3cret", "wr0ng")))
    assert error.code == "FETCH_REFUSED"
    assert "wr0ng" not in str(error) + str(error.hint) + "".join(desk.lines)


def test_full_disk_is_exit_5(desk: Desk) -> None:
    desk.partial("big").symlink_to("/dev/full")
    error = desk.refused(desk.wanted("big"), kind=EngineError)
    assert (error.code, error.exit_code) == ("DISK_FULL", 5)


def test_disk_too_small_is_said_before_anything_is_fetched(desk: Desk) -> None:
    huge = Wanted(name="huge", urls=(f"{desk.server.url}/big",), size=1 << 60, sha256="0" * 64)
    assert desk.refused(huge, kind=EngineError).code == "DISK_FULL"
    assert desk.server.requests == []


def test_interrupt_ends_all_workers_and_keeps_what_came(desk: Desk) -> None:
    desk.server.faults["/big"] = Fault(cut=200_000, hold=threading.Event())

    def interrupt(done: int, _total: int) -> None:
        if done >= 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_files(
            [desk.wanted("big")],
            store=desk.store,
            offline=False,
            progress=interrupt,
            log=desk.lines.append,
        )
    assert desk.partial("big").stat().st_size >= 100_000
    desk.server.faults.clear()
    desk.fetch(desk.wanted("big"))
    assert desk.stored("big")


PROGRAM = """
import sys
from pathlib import Path
from vega_image.sources.download import Wanted
from vega_image.sources.fetch import fetch_files
from vega_image.store import Store
url, sha, size, store = sys.argv[1:]
wanted = Wanted(name="big", urls=(url,), size=int(size), sha256=sha)
fetch_files([wanted], store=Store(Path(store)), offline=False,
            progress=lambda done, total: None, log=lambda line: None)
"""


def test_killed_half_way_the_next_run_goes_on(desk: Desk, tmp_path: Path) -> None:
    wanted = desk.wanted("big")
    stuck = threading.Event()
    desk.server.faults["/big"] = Fault(cut=300_000, hold=stuck)
    words = (wanted.urls[0], wanted.sha256, str(wanted.size), str(desk.store.root))
    argv = [sys.executable, "-c", PROGRAM, *words]
    with (tmp_path / "err").open("wb") as errors, output_of(argv, stderr=errors) as child:
        assert stuck.wait(30)
        _until_size(desk.partial("big"), 250_000)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert not desk.stored("big")
    had = desk.partial("big").stat().st_size
    desk.server.faults.clear()
    desk.fetch(wanted)
    assert desk.stored("big")
    assert desk.server.asked("/big")[-1] == f"bytes={had}-"


def test_two_fetches_into_one_store(desk: Desk) -> None:
    desk.server.faults["/big"] = Fault(cut=BIG // 2)
    wanted = [desk.wanted(name) for name in desk.data]
    threads = [threading.Thread(target=desk.fetch, args=wanted) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(desk.stored(name) for name in desk.data)
    assert len(desk.server.asked("/tiny")) == 1


def _until_size(path: Path, size: int) -> None:
    clock = threading.Event()
    for _ in range(600):
        if path.is_file() and path.stat().st_size >= size:
            return
        clock.wait(0.05)
    pytest.fail(f"{path} never reached {size} bytes")
