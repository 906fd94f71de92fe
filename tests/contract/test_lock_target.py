"""lock, fetch, relock and pool, end to end on a tiny signed archive that moves."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.fileserver import Fault, FileServer, serving
from tests.minidebian import DATE, DAY, MiniDebian, Package, four_packages, gpg_home
from vega_image.commands.lock import lock_target
from vega_image.commands.pool import export_pool, import_pool
from vega_image.digest import PREFIX
from vega_image.errors import BytesError, LockError, PolicyError, UsageError, VegaError
from vega_image.lock import Lock, LockedDebian
from vega_image.lockfile import check_lock, decode_lock, encode_lock
from vega_image.process import run
from vega_image.sources.debian import resolve
from vega_image.sources.locked import Supply, fetch_sources
from vega_image.sources.origin import Origin
from vega_image.sources.pool import pool_files, pool_import
from vega_image.sources.relock import Relocked, fetch_or_relock
from vega_image.spec import (
    ArchiveSource,
    DebianSource,
    ImageConfig,
    Layer,
    Root,
    Source,
    Target,
    TargetKind,
)
from vega_image.store import Store

NOW = DATE + 30 * DAY
TOOLS = {"libzstd": "1.5.7"}
DEBIAN = DebianSource(kind="debian", suites=("mini",), packages=frozenset({"tool"}))


@dataclass
class Desk:
    archive: MiniDebian
    server: FileServer
    base: Path
    sources: dict[str, Source] = field(default_factory=lambda: {"debian": DEBIAN})
    lines: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.base / "tiny.lock.json"

    def target(self) -> Target:
        return Target(
            schema_version=1,
            name="tiny",
            kind=TargetKind.OCI,
            version="1",
            title="t",
            description="d",
            licenses="MIT",
            sources=self.sources,
            root=Root(source="debian"),
            layers=(Layer(name="all", rest=True),),
            image=ImageConfig(user="65534"),
        )

    def supply(self, store: str = "store", *, offline: bool = False) -> Supply:
        scratch = self.base / "scratch"
        scratch.mkdir(exist_ok=True)
        origin = Origin(mirror=self.server.url, keyring=self.archive.keyring)
        return Supply(
            origin=origin,
            store=Store(self.base / store),
            scratch=scratch,
            now=NOW,
            log=self.lines.append,
            offline=offline,
        )

    def lock(self) -> Relocked:
        return lock_target(self.target(), path=self.path, supply=self.supply(), tools=TOOLS)

    def move_on(self) -> None:
        """Let the mirror drop a file for a newer one."""
        for file in (self.archive.root / "pool/main/d/data").iterdir():
            file.unlink()
        self.archive.forget("data")
        self.archive.add(Package("data", "4", filler=500_000))
        self.archive.publish(date=DATE + DAY)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with gpg_home() as path:
        yield path


@pytest.fixture
def desk(tmp_path: Path, home: Path) -> Iterator[Desk]:
    archive = MiniDebian(tmp_path / "archive", home=home)
    four_packages(archive)
    archive.publish()
    with serving(archive.root) as server:
        yield Desk(archive, server, tmp_path)


def debian(lock: Lock) -> LockedDebian:
    source = lock.sources["debian"]
    assert isinstance(source, LockedDebian)
    return source


def holds(store: Store, lock: Lock) -> bool:
    return all(store.has(PREFIX + file.sha256) for file in pool_files(lock))


def test_lock_is_written_valid_and_says_what_it_holds(desk: Desk) -> None:
    made = desk.lock()
    read = decode_lock(desk.path.read_bytes(), at="tiny.lock.json")
    assert read == made.lock
    assert read.epoch == DATE
    assert read.tools == TOOLS
    check_lock(read, desk.target(), tools=TOOLS)
    assert made.lines[0] == "debian: mini Release of 2024-01-01"
    assert made.lines[1].startswith("debian: 3 packages, 0.3 MB")
    assert desk.server.url not in desk.path.read_text()
    assert desk.lock().lines == ("no change",)


def test_lock_after_the_mirror_moved(desk: Desk) -> None:
    desk.lock()
    desk.move_on()
    lines = desk.lock().lines
    assert "debian: mini Release of 2024-01-02 (was 2024-01-01)" in lines
    assert "debian: 3 packages, 0.5 MB (was 3 packages, 0.3 MB)" in lines
    assert "debian: up   data 3 -> 4 (+0.2 MB)" in lines
    assert "epoch: 2024-01-01 -> 2024-01-02" in lines


def test_a_replayed_old_archive_is_noticed(desk: Desk) -> None:
    desk.lock()
    desk.archive.publish(date=DATE - DAY)
    assert any("OLDER than the locked one" in line for line in desk.lock().lines)


def test_a_damaged_lock_is_made_anew(desk: Desk) -> None:
    made = desk.lock()
    desk.path.write_bytes(desk.path.read_bytes().replace(b'"size":', b'"size":1', 1))
    again = desk.lock()
    assert again.lock == made.lock
    assert "edited by hand" in again.lines[0]


def test_a_failed_lock_leaves_the_old_one(desk: Desk) -> None:
    desk.lock()
    before = desk.path.read_bytes()
    desk.sources["debian"] = DEBIAN.model_copy(update={"packages": frozenset({"absent"})})
    with pytest.raises(LockError):
        desk.lock()
    assert desk.path.read_bytes() == before
    assert [p.name for p in desk.base.iterdir() if "lock" in p.name] == ["tiny.lock.json"]


def with_archive(desk: Desk, sha256: str) -> Lock:
    (desk.archive.root / "model.bin").write_bytes(b"weights" * 1000)
    url = desk.server.url.replace("//", "//ann:s3cret@") + "/model.bin"
    desk.sources["model"] = ArchiveSource(kind="archive", url=url, size=7000, sha256=sha256)
    return desk.lock().lock


def test_archives_are_fetched_with_the_packages(desk: Desk) -> None:
    lock = with_archive(desk, hashlib.sha256(b"weights" * 1000).hexdigest())
    fetch_sources(lock, desk.supply())
    assert [file.name for file in pool_files(lock) if "model" in file.name] == [
        "model_model.bin"
    ]
    assert holds(desk.supply().store, lock)
    assert "s3cret" not in encode_lock(lock).decode()
    check_lock(lock, desk.target(), tools=TOOLS)


def test_a_full_store_needs_no_mirror(desk: Desk) -> None:
    lock = desk.lock().lock
    lost = replace(desk.supply(), origin=Origin(sysroot=desk.base / "no-such-root"))
    with pytest.raises(UsageError) as online:
        fetch_sources(lock, lost)
    assert online.value.code == "NO_MIRROR"
    with pytest.raises(BytesError) as offline:
        fetch_sources(lock, replace(lost, offline=True))
    assert offline.value.code == "OFFLINE_MISSING"
    fetch_sources(lock, desk.supply())
    fetch_sources(lock, lost)


def test_an_archive_with_other_bytes_is_refused(desk: Desk) -> None:
    with pytest.raises(BytesError) as caught:
        fetch_sources(with_archive(desk, "0" * 64), desk.supply())
    assert caught.value.code == "FETCH_WRONG_DIGEST"


def test_relock_if_gone_goes_on_and_says_so(desk: Desk) -> None:
    old = desk.lock().lock
    desk.move_on()
    with pytest.raises(BytesError) as caught:
        fetch_sources(old, desk.supply())
    assert caught.value.code == "FILE_GONE"
    assert "data 3" in caught.value.message
    went = fetch_or_relock(old, desk.supply(), relock=desk.lock)
    assert went.lock == decode_lock(desk.path.read_bytes(), at="x")
    assert went.lock.digest != old.digest
    text = "\n".join(went.lines)
    for words in ("data 3", "up   data 3 -> 4", "this is a new image", went.lock.digest):
        assert words in text
    assert holds(desk.supply().store, went.lock)


def test_relock_is_not_taken_when_nothing_is_gone(desk: Desk) -> None:
    old = desk.lock().lock
    went = fetch_or_relock(old, desk.supply(), relock=lambda: pytest.fail("relocked"))
    assert went == Relocked(old)


def test_relock_never_answers_wrong_bytes(desk: Desk) -> None:
    old = desk.lock().lock
    path = f"/{debian(old).packages[0].pool_path}"
    desk.server.faults[path] = Fault(body=bytes(debian(old).packages[0].size))
    with pytest.raises(BytesError) as caught:
        fetch_or_relock(old, desk.supply(), relock=lambda: pytest.fail("relocked"))
    assert caught.value.code == "FETCH_WRONG_DIGEST"


def test_relock_gives_up_on_a_mirror_that_lists_what_it_lacks(desk: Desk) -> None:
    old = desk.lock().lock
    desk.server.faults[f"/{debian(old).packages[0].pool_path}"] = Fault(status=404)
    with pytest.raises(BytesError) as caught:
        fetch_or_relock(old, desk.supply(), relock=desk.lock)
    assert caught.value.code == "FILE_GONE"


def exported(desk: Desk) -> tuple[Lock, Path]:
    lock = desk.lock().lock
    out = desk.base / "pool"
    export_pool(lock, out=out, supply=desk.supply())
    return lock, out


def test_pool_carries_a_lock_to_a_host_without_network(desk: Desk) -> None:
    lock, out = exported(desk)
    done = run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=out)
    assert done.returncode == 0, done.output
    assert len(list(out.iterdir())) == 3 + 2
    carried = desk.base / "stick"
    shutil.copytree(out, carried)
    supply = desk.supply("other-store", offline=True)
    with pytest.raises(BytesError, match="not in the store"):
        fetch_sources(lock, supply)
    import_pool(carried, store=supply.store, lock=lock)
    fetch_sources(lock, supply)
    assert holds(supply.store, lock)


def test_pool_never_writes_over_a_folder(desk: Desk) -> None:
    lock, out = exported(desk)
    with pytest.raises(UsageError) as caught:
        export_pool(lock, out=out, supply=desk.supply())
    assert caught.value.code == "POOL_EXISTS"
    assert [p.name for p in desk.base.iterdir() if p.name.startswith(".")] == []


def test_pool_of_a_tampered_store_is_not_made(desk: Desk) -> None:
    lock = desk.lock().lock
    supply = desk.supply()
    fetch_sources(lock, supply)
    path = supply.store.path(PREFIX + pool_files(lock)[0].sha256)
    path.chmod(0o644)
    path.write_bytes(b"other")
    with pytest.raises(BytesError) as caught:
        export_pool(lock, out=desk.base / "pool", supply=supply)
    assert caught.value.code == "STORE_TAMPERED"
    assert not (desk.base / "pool").exists()


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.unlink()
    path.write_bytes(bytes(data))


def _spoil(pool: Path, how: str) -> None:
    deb = next(pool.glob("*.deb"))
    match how:
        case "flip":
            _flip(deb)
        case "cut":
            data = deb.read_bytes()
            deb.unlink()
            deb.write_bytes(data[:-1])
        case "lost":
            deb.unlink()
        case "stranger":
            (pool / "evil.deb").write_bytes(b"x")
        case "folder":
            (pool / "sub").mkdir()
        case "link":
            deb.rename(pool.parent / "kept.deb")
            deb.symlink_to(pool.parent / "kept.deb")
        case "sums":
            sums = pool / "SHA256SUMS"
            sums.write_text(sums.read_text() + f"{'0' * 64}  ../../etc/passwd\n")
        case "lock":
            path = pool / "lock.json"
            path.write_bytes(path.read_bytes().replace(b'"data"', b'"date"'))
        case _:
            shutil.rmtree(pool)


@pytest.mark.parametrize(
    ("how", "kind", "code"),
    [
        ("flip", BytesError, "POOL_WRONG_DIGEST"),
        ("cut", BytesError, "POOL_WRONG_DIGEST"),
        ("lost", BytesError, "POOL_INCOMPLETE"),
        ("stranger", PolicyError, "POOL_STRANGER"),
        ("folder", PolicyError, "POOL_STRANGER"),
        ("link", PolicyError, "POOL_STRANGER"),
        ("sums", PolicyError, "POOL_SUMS_DIFFER"),
        ("lock", LockError, "LOCK_EDITED"),
        ("none", UsageError, "NO_POOL"),
    ],
)
def test_spoilt_pools_are_refused(
    desk: Desk, how: str, kind: type[VegaError], code: str
) -> None:
    lock, out = exported(desk)
    _spoil(out, how)
    store = Store(desk.base / "other-store")
    with pytest.raises(kind) as caught:
        pool_import(out, store)
    assert caught.value.code == code
    taken = [path.name for path in (store.root / "objects").rglob("*") if path.is_file()]
    assert set(taken) <= {file.sha256 for file in pool_files(lock)}
    assert list(store.tmp.iterdir()) == []


def test_pool_of_another_lock_is_refused(desk: Desk) -> None:
    _old, out = exported(desk)
    desk.move_on()
    fresh = desk.lock().lock
    with pytest.raises(LockError) as caught:
        pool_import(out, Store(desk.base / "other-store"), fresh)
    assert caught.value.code == "POOL_OTHER_LOCK"


@pytest.mark.needs("network")
def test_the_real_targets_packages_from_the_hosts_mirror(tmp_path: Path) -> None:
    names = frozenset({"llama.cpp-tools", "libggml0", "libggml0-backend-hip"})
    source = DebianSource(
        kind="debian", suites=("forky",), packages=names, accept_expired_release=True
    )
    locked = resolve(source, origin=Origin(), scratch=tmp_path, now=NOW, log=lambda _line: None)
    found = {file.package: file for file in locked.packages}
    assert names <= found.keys()
    assert {"libc6", "librocblas4", "libhipblas2", "libamdhip64-6"} <= found.keys()
    assert "ollama" not in found
    assert 30 <= len(found) <= 90
    assert 300e6 < sum(file.size for file in found.values()) < 900e6
    assert found["librocblas4"].pool_path.startswith("pool/main/r/rocblas/librocblas4_")
