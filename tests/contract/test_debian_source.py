"""apt resolves against a real, signed, tiny archive; nothing of this host takes part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.fileserver import Fault, FileServer, serving
from tests.minidebian import DATE, DAY, MiniDebian, Package, four_packages, gpg_home
from vega_image.errors import BytesError, LockError, UsageError, VegaError
from vega_image.lock import LockedDebian
from vega_image.sources.debian import resolve
from vega_image.sources.origin import Origin
from vega_image.spec import DebianSource, Pin

NOW = DATE + 30 * DAY


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with gpg_home() as path:
        yield path


@dataclass
class Desk:
    archive: MiniDebian
    server: FileServer
    scratch: Path
    lines: list[str] = field(default_factory=list)

    def resolve(self, *names: str, mirror: str = "", **options: Any) -> LockedDebian:
        source = DebianSource(
            kind="debian",
            suites=options.pop("suites", ("mini",)),
            packages=frozenset(names),
            **options,
        )
        return resolve(
            source,
            origin=Origin(mirror=mirror or self.server.url, keyring=self.archive.keyring),
            scratch=self.scratch,
            now=NOW,
            log=self.lines.append,
        )

    def refused(self, *names: str, kind: type[VegaError], **options: Any) -> VegaError:
        with pytest.raises(kind) as caught:
            self.resolve(*names, **options)
        assert not list(self.scratch.iterdir())
        return caught.value


@pytest.fixture
def desk(tmp_path: Path, home: Path) -> Iterator[Desk]:
    archive = MiniDebian(tmp_path / "archive", home=home)
    four_packages(archive)
    archive.publish()
    scratch = tmp_path / "a scratch folder"
    scratch.mkdir()
    with serving(archive.root) as server:
        yield Desk(archive, server, scratch)


def test_closure_with_exact_files(desk: Desk) -> None:
    locked = desk.resolve("tool")
    assert [f.package for f in locked.packages] == ["data", "libtool++6", "tool"]
    for file in locked.packages:
        data = (desk.archive.root / file.pool_path).read_bytes()
        assert (len(data), sha256(data).hexdigest()) == (file.size, file.sha256)
    library = locked.packages[1]
    assert library.version == "1:1.2~rc1-1"
    assert library.pool_path == "pool/main/l/libtool++6/libtool++6_1.2~rc1-1_amd64.deb"
    release = locked.releases[0]
    signed = (desk.archive.root / "dists/mini/InRelease").read_bytes()
    assert release.sha256 == sha256(signed).hexdigest()
    assert (release.date, release.valid_until, release.expired_accepted) == (DATE, None, False)
    assert not list(desk.scratch.iterdir())


def test_same_lock_from_any_mirror(desk: Desk) -> None:
    by_http = desk.resolve("tool", mirror=desk.server.url + "/")
    assert by_http == desk.resolve("tool", mirror=f"file://{desk.archive.root}")
    assert by_http == desk.resolve("tool", mirror=f"copy:{desk.archive.root}")


def test_recommended_packages_stay_out(desk: Desk) -> None:
    desk.archive.add(Package("keen", fields={"Recommends": "extra", "Suggests": "data"}))
    desk.archive.publish()
    assert [f.package for f in desk.resolve("keen").packages] == ["keen"]


def test_essential_packages_on_request(desk: Desk) -> None:
    desk.archive.add(Package("base", fields={"Essential": "yes"}))
    desk.archive.publish()
    assert [f.package for f in desk.resolve("extra").packages] == ["extra"]
    both = desk.resolve("extra", essential=True)
    assert [f.package for f in both.packages] == ["base", "extra"]


@pytest.mark.parametrize(
    ("pin", "version", "suite"),
    [(None, "3", "mini"), ("version 2*", "2.5", "old"), ("release n=old", "2.5", "old")],
)
def test_pins_decide(desk: Desk, pin: str | None, version: str, suite: str) -> None:
    desk.archive.add(Package("data", "2.5"), suite="old")
    desk.archive.publish("old")
    pins = (Pin(packages=("data",), pin=pin, priority=990),) if pin else ()
    locked = desk.resolve("data", suites=("mini", "old"), pins=pins)
    assert [(f.version, f.suite) for f in locked.packages] == [(version, suite)]
    assert [release.suite for release in locked.releases] == ["mini", "old"]


def test_a_pin_apt_does_not_understand_is_refused(desk: Desk) -> None:
    pins = (Pin(packages=("*",), pin="version 2*", priority=990),)
    error = desk.refused("data", pins=pins, kind=UsageError)
    assert error.code == "BAD_PIN"
    assert "Did not understand pin" in error.message


def test_a_pin_cannot_smuggle_a_stanza(desk: Desk) -> None:
    pins = (Pin(packages=("data",), pin="version 2\n\nPackage: *", priority=990),)
    assert desk.refused("data", pins=pins, kind=UsageError).code == "BAD_PIN"


def test_wrong_key_is_refused(desk: Desk, tmp_path: Path) -> None:
    with gpg_home() as other:
        stranger = MiniDebian(tmp_path / "stranger", home=other)
    desk.archive.keyring = stranger.keyring
    error = desk.refused("tool", kind=BytesError)
    assert error.code == "RELEASE_BAD_SIGNATURE"
    assert "NO_PUBKEY" in error.message


@pytest.mark.parametrize(
    "lie", [b"Valid-Until: Fri, 01 Jan 2100 00:00:00 UTC\n", b"Extra: 1\n"]
)
def test_tampered_release_is_refused(desk: Desk, lie: bytes) -> None:
    path = desk.archive.root / "dists/mini/InRelease"
    path.write_bytes(path.read_bytes().replace(b"Suite: ", lie + b"Suite: "))
    (path.parent / "Release").unlink()
    assert desk.refused("tool", kind=BytesError).code == "RELEASE_BAD_SIGNATURE"


def test_unsigned_archive_is_refused(desk: Desk) -> None:
    (desk.archive.root / "dists/mini/InRelease").unlink()
    assert desk.refused("tool", kind=BytesError).code == "RELEASE_BAD_SIGNATURE"


def test_swapped_index_is_refused(desk: Desk) -> None:
    path = desk.archive.root / "dists/mini/main/binary-amd64/Packages"
    path.write_bytes(path.read_bytes().replace(b"Version: 3", b"Version: 4"))
    assert desk.refused("tool", kind=BytesError).code == "INDEX_WRONG_DIGEST"


def test_expired_release_is_refused_unless_accepted(desk: Desk) -> None:
    desk.archive.publish(valid_until=DATE + 7 * DAY)
    error = desk.refused("tool", kind=LockError)
    assert error.code == "RELEASE_EXPIRED"
    assert "mini" in error.message
    assert "2024-01-08" in error.message
    assert error.hint is not None
    assert "accept_expired_release" in error.hint
    release = desk.resolve("tool", accept_expired_release=True).releases[0]
    assert (release.valid_until, release.expired_accepted) == (DATE + 7 * DAY, True)


def test_living_release_is_not_recorded_as_expired(desk: Desk) -> None:
    desk.archive.publish(valid_until=NOW + DAY)
    release = desk.resolve("tool", accept_expired_release=True).releases[0]
    assert release.expired_accepted is False


def test_unknown_packages_are_all_named_with_a_guess(desk: Desk) -> None:
    error = desk.refused("toool", "virtual-extra", "data", kind=LockError)
    assert error.code == "PACKAGE_UNKNOWN"
    assert re.search(r"toool.*did you mean 'tool'", error.message)
    assert re.search(r"virtual-extra.*virtual name.*extra", error.message)
    assert "  data" not in error.message


def test_a_name_is_never_a_pattern(desk: Desk) -> None:
    assert desk.refused("dat.", kind=LockError).code == "PACKAGE_UNKNOWN"


def test_a_name_is_never_a_removal(desk: Desk) -> None:
    assert desk.refused("data-", kind=LockError).code == "PACKAGE_UNKNOWN"


def test_unmet_dependency_in_apts_words(desk: Desk) -> None:
    desk.archive.add(Package("needy", fields={"Depends": "absent (>= 2)"}))
    desk.archive.publish()
    error = desk.refused("needy", kind=LockError)
    assert error.code == "UNRESOLVABLE"
    assert "absent" in error.message


def test_unknown_suite_component_and_architecture(desk: Desk) -> None:
    assert desk.refused("tool", suites=("maxi",), kind=LockError).code == "SUITE_ABSENT"
    error = desk.refused("tool", components=("main", "contrib"), kind=LockError)
    assert error.code == "COMPONENT_ABSENT"
    assert "mini contrib" in error.message
    error = desk.refused("tool", architecture="arm64", kind=LockError)
    assert error.code == "COMPONENT_ABSENT"


def test_unreachable_mirror(desk: Desk) -> None:
    error = desk.refused("tool", mirror="http://127.0.0.1:1/debian", kind=BytesError)
    assert error.code == "MIRROR_UNREACHABLE"


def test_not_a_mirror_address(desk: Desk) -> None:
    assert desk.refused("tool", mirror="/srv/debian", kind=UsageError).code == "BAD_MIRROR"


def test_hostile_pool_path_is_refused(desk: Desk) -> None:
    desk.archive.add(Package("evil", fields={"Section": "x"}))
    stanzas = desk.archive._stanzas["mini"]
    stanzas[-1] = stanzas[-1].replace("pool/main/e", "pool/../../e")
    desk.archive.publish()
    assert desk.refused("evil", kind=BytesError).code == "INDEX_MALFORMED"


def test_password_of_the_mirror_is_used_and_never_said(desk: Desk) -> None:
    desk.server.password = "Basic YW5uOnMzY3JldA=="
    host = desk.server.url.removeprefix("http://")
    locked = desk.resolve("tool", mirror=f"http://ann:s3cret@{host}")
    assert len(locked.packages) == 3
    assert "s3cret" not in "\n".join(desk.lines)
    assert "s3cret" not in locked.model_dump_json()
    error = desk.refused("tool", mirror=f"http://ann:wr0ng@{host}", kind=VegaError)
    assert "wr0ng" not in error.message


def test_mirror_that_drops_a_package_index(desk: Desk) -> None:
    desk.server.faults["/dists/mini/main/binary-amd64/Packages"] = Fault(status=404)
    assert desk.refused("tool", kind=VegaError).exit_code in {3, 4}
