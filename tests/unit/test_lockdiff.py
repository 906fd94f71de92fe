"""The difference between two locks, in words."""

from __future__ import annotations

from vega_image.lock import Lock, LockedArchive, LockedDebian, PackageFile, ReleaseFile
from vega_image.lockdiff import describe_change

DAY = 86400
SHA = "0" * 64


def file(name: str, version: str, megabytes: float = 1, sha256: str = SHA) -> PackageFile:
    return PackageFile(
        package=name,
        version=version,
        architecture="amd64",
        suite="sid",
        pool_path=f"pool/main/{name}.deb",
        size=int(megabytes * 1e6),
        sha256=sha256,
    )


def lock(*files: PackageFile, date: int = 10 * DAY, expired: bool = False) -> Lock:
    until = date + 7 * DAY if expired else None
    release = ReleaseFile(
        suite="sid", date=date, valid_until=until, sha256=SHA, expired_accepted=expired
    )
    return Lock(
        schema_version=1,
        target="t",
        spec_digest=f"sha256:{SHA}",
        epoch=date,
        tools={},
        sources={"os": LockedDebian(kind="debian", releases=(release,), packages=files)},
        digest=f"sha256:{SHA}",
    )


def test_first_lock() -> None:
    assert describe_change(None, lock(file("a", "1", 2.5), file("b", "1"))) == (
        "os: sid Release of 1970-01-11",
        "os: 2 packages, 3.5 MB",
    )


def test_no_change() -> None:
    assert describe_change(lock(file("a", "1")), lock(file("a", "1"))) == ("no change",)


def test_every_kind_of_change() -> None:
    old = lock(file("a", "1.9"), file("b", "2"), file("c", "1"), file("e", "1"))
    new = lock(
        file("a", "1.10", 3),
        file("b", "2~rc1", 0.5),
        file("d", "1"),
        file("e", "1", 1, "1" * 64),
        date=11 * DAY,
    )
    assert describe_change(old, new) == (
        "os: sid Release of 1970-01-12 (was 1970-01-11)",
        "os: 4 packages, 5.5 MB (was 4 packages, 4.0 MB)",
        "os: up   a 1.9 -> 1.10 (+2.0 MB)",
        "os: down b 2 -> 2~rc1 (-0.5 MB)",
        "os: gone c 1 (-1.0 MB)",
        "os: new  d 1 (+1.0 MB)",
        "os: same e 1, other bytes (+0.0 MB)",
        "epoch: 1970-01-11 -> 1970-01-12",
    )


def test_accepted_expiry_and_replay_are_said() -> None:
    lines = describe_change(lock(), lock(date=9 * DAY, expired=True))
    assert lines[0] == (
        "os: sid Release of 1970-01-10 (was 1970-01-11), OLDER than the locked one,"
        " valid until 1970-01-17: expired, accepted by the spec"
    )


def test_other_sources_and_tools() -> None:
    url = "https://example.org/f"
    old, new = lock(), lock()
    archive = LockedArchive(kind="archive", url=url, size=2_000_000, sha256=SHA)
    new = new.model_copy(
        update={"sources": {**new.sources, "f": archive}, "tools": {"libzstd": "2"}}
    )
    assert describe_change(old, new) == (
        f"f: new: {url} (+2.0 MB)",
        "tool libzstd: none -> 2",
    )
    assert "f: gone from the spec" in describe_change(new, old)
