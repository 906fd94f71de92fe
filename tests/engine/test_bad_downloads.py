"""Mirrors that lie, cut, move or are not there: exit code, code, and no half file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fileserver import Fault, FileServer, serving
from tests.tiny import Tiny, rehash

pytestmark = pytest.mark.needs("docker", "busybox")


@dataclass
class Desk:
    user: Tiny
    server: FileServer
    deb: Path

    @property
    def path(self) -> str:
        return f"/{self.deb.relative_to(self.server.root)}"


@pytest.fixture
def desk(tiny: Tiny) -> Iterator[Desk]:
    deb = next(tiny.archive.root.glob("pool/main/t/tiny-data/*.deb"))
    with serving(tiny.archive.root) as server:
        yield Desk(tiny.having(VEGA_IMAGE_DEBIAN_MIRROR=server.url), server, deb)


FAULTS: dict[str, tuple[Callable[[bytes], Fault], str]] = {
    "truncated": (lambda _data: Fault(cut=1000, ranges=False), "FETCH_TRUNCATED"),
    "longer": (lambda data: Fault(body=data + b"x"), "FETCH_WRONG_DIGEST"),
    "swapped": (lambda data: Fault(body=bytes(len(data))), "FETCH_WRONG_DIGEST"),
    "one-bit": (
        lambda data: Fault(body=data[:-1] + bytes([data[-1] ^ 1])),
        "FETCH_WRONG_DIGEST",
    ),
    "gone": (lambda _data: Fault(status=404), "FILE_GONE"),
    "broken": (lambda _data: Fault(status=500), "FETCH_FAILED"),
    "forbidden": (lambda _data: Fault(status=403), "FETCH_REFUSED"),
    "elsewhere": (lambda _data: Fault(elsewhere="file:///etc/passwd"), "FETCH_FAILED"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_download_is_named_and_the_next_run_heals(desk: Desk, name: str) -> None:
    make, code = FAULTS[name]
    desk.server.faults[desk.path] = make(desk.deb.read_bytes())
    answer = desk.user.json("build", "tiny", "--until", "root")
    assert answer.error == (4, code)
    assert "tiny-data 1.0-1" in answer.value["error"]["message"]
    assert answer.value["error"]["hint"]
    rehash(desk.user.store)
    assert not (desk.user.store / "refs/steps").exists()
    desk.server.faults.clear()
    desk.user.build("--until", "root")
    rehash(desk.user.store)


def test_a_mirror_that_is_not_there(tiny: Tiny) -> None:
    lost = tiny.having(VEGA_IMAGE_DEBIAN_MIRROR="http://127.0.0.1:9/debian")
    assert lost.refused("build", "tiny") == (4, "FETCH_FAILED")
    assert lost.refused("lock", "tiny") == (4, "MIRROR_UNREACHABLE")


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/", "127.0.0.1/debian", "/srv/debian"])
def test_an_address_that_is_none(tiny: Tiny, address: str) -> None:
    for words in (("build", "--debian-mirror"), ("lock", "--debian-mirror")):
        assert tiny.refused(words[0], "tiny", words[1], address) == (2, "BAD_MIRROR")
    assert tiny.refused("build", "tiny", "--debian-snapshot", address) == (2, "BAD_MIRROR")


def test_a_mirror_that_moved_and_build_relocks(tiny: Tiny, tmp_path: Path) -> None:
    from tests.minidebian import DATE, DAY, MiniDebian, Package
    from tests.tiny import tiny_packages

    moved = MiniDebian(tmp_path / "moved", home=tiny.archive._home)
    for package in tiny_packages():
        newer = Package("tiny-data", "2.0-1", filler=100_000, fields=package.fields)
        moved.add(newer if package.name == "tiny-data" else package)
    moved.publish(date=DATE + DAY)
    there = tiny.having(VEGA_IMAGE_DEBIAN_MIRROR=f"file://{moved.root}")
    before = tiny.lock.read_bytes()
    assert there.refused("build", "tiny") == (4, "FILE_GONE")
    assert tiny.lock.read_bytes() == before
    answer = there.json("build", "tiny", "--relock", "if-gone")
    assert answer.code == 0, answer.err
    for words in ("up   tiny-data 1.0-1 -> 2.0-1", "this is a new image"):
        assert words in answer.err
    assert tiny.lock.read_bytes() != before


def test_nothing_in_the_store_and_offline(tiny: Tiny) -> None:
    answer = tiny.json("build", "tiny", "--offline")
    assert answer.error == (4, "OFFLINE_MISSING")
    for name in ("tiny-data", "tiny-app", "pool import"):
        assert name in answer.value["error"]["message"] + answer.value["error"]["hint"]
    assert tiny.refused("lock", "tiny", "--offline") == (2, "LOCK_OFFLINE")


@pytest.mark.needs("root")
def test_a_host_without_any_mirror(tiny: Tiny) -> None:
    from dataclasses import replace

    hide = 'mount -t tmpfs tmpfs /etc/apt && exec "$@"'
    bare = replace(tiny, before=("unshare", "--mount", "sh", "-c", hide, "sh"), mirror="")
    assert bare.refused("build", "tiny") == (2, "NO_MIRROR")
    assert bare.refused("lock", "tiny") == (2, "NO_MIRROR")
    assert bare.done("plan", "tiny")["fetch_bytes"] > 0


def test_a_mirror_signed_by_somebody_else(tiny: Tiny, tmp_path: Path) -> None:
    before = tiny.lock.read_bytes()
    empty = tmp_path / "empty.gpg"
    empty.write_bytes(b"")
    options = ("lock", "tiny", "--debian-keyring")
    assert tiny.refused(*options, str(empty)) == (4, "RELEASE_BAD_SIGNATURE")
    assert tiny.refused(*options, str(tmp_path / "none")) == (2, "NO_KEYRING")
    assert tiny.lock.read_bytes() == before


@pytest.mark.parametrize("spoil", ["flip", "stranger", "lost"])
def test_a_spoilt_pool_is_refused(tiny: Tiny, tmp_path: Path, spoil: str) -> None:
    pool = tmp_path / "pool"
    tiny.done("pool", "export", "tiny", "-o", str(pool))
    shutil.rmtree(tiny.store)
    deb = next(pool.glob("tiny-data*.deb"))
    data = deb.read_bytes()
    deb.unlink()
    if spoil == "flip":
        deb.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif spoil == "stranger":
        deb.write_bytes(data)
        (pool / "stranger.deb").write_bytes(b"")
    expected = {
        "flip": (4, "POOL_WRONG_DIGEST"),
        "stranger": (10, "POOL_STRANGER"),
        "lost": (4, "POOL_INCOMPLETE"),
    }
    assert tiny.refused("pool", "import", str(pool)) == expected[spoil]
    assert tiny.refused("build", "tiny", "--offline") == (4, "OFFLINE_MISSING")
    rehash(tiny.store)
