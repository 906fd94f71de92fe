"""What one archive adds to a tree, and what it may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vega_image.errors import StageError, UsageError
from vega_image.rootfs.collect import Collector
from vega_image.rootfs.selection import Selection, canonical
from vega_image.rootfs.tarread import Member
from vega_image.rootfs.tree import Content, Kind

BYTES = Content("sha256:" + "0" * 64, 0, 3)
PLAIN = Member(
    path="a", type="0", mode=0o644, uid=0, gid=0, mtime=0, size=3, link="", offset=512
)


def member(path: str, kind: str = "0", link: str = "", mode: int = 0o644) -> Member:
    return replace(PLAIN, path=path, type=kind, link=link, mode=mode)


def collect(*members: Member, collector: Collector | None = None) -> dict[str, Kind]:
    found = collector or Collector(what="evil 1.0", owner="evil")
    for one in members:
        found.add(one, lambda: BYTES)
    return {entry.path: entry.kind for entry in found.entries()}


def refused(*members: Member, collector: Collector | None = None) -> StageError:
    with pytest.raises(StageError) as caught:
        collect(*members, collector=collector)
    assert "evil 1.0" in caught.value.message
    return caught.value


@pytest.mark.parametrize("kind", ["3", "4", "6"])
def test_devices_and_fifos_are_refused(kind: str) -> None:
    error = refused(member("dev/sda", kind))
    assert error.code == "HOSTILE_TAR"
    assert "dev/sda" in error.message


@pytest.mark.parametrize(
    "members",
    [
        (member("a"), member("a")),
        (member("a"), member("a", "5")),
        (member("a", "2", "/etc"), member("a", "5")),
        (member("a", "2", "/etc"), member("a/passwd")),
        (member("a/passwd"), member("a", "2", "/etc")),
        (member("a"), member("a/b")),
        (member("a", "1", "b"), member("b")),
        (member("a", "1", "../b"),),
        (member("a", "1", "/etc/passwd"),),
        (member("d", "5"), member("a", "1", "d")),
        (member("a", "2", ""),),
    ],
)
def test_hostile_combinations_are_refused(members: tuple[Member, ...]) -> None:
    assert refused(*members).code == "HOSTILE_TAR"


def test_a_folder_given_twice_is_one() -> None:
    assert collect(member("a", "5"), member("a", "5")) == {"a": Kind.DIR}


def test_a_hard_link_is_a_file_with_the_same_bytes() -> None:
    collector = Collector(what="p", owner="p")
    collect(member("a"), member("b", "1", "./a"), collector=collector)
    first, second = collector.entries()
    assert first.content == second.content == BYTES
    assert second.kind is Kind.FILE


def test_setuid_and_setgid_are_dropped_and_noted_sticky_stays() -> None:
    collector = Collector(what="p 1", owner="p")
    members = [member("su", mode=0o6755), member("tmp", "5", mode=0o1777)]
    collect(*members, collector=collector)
    assert [entry.mode for entry in collector.entries()] == [0o755, 0o1777]
    assert collector.notes == ["p 1: su: mode 6755, setuid and setgid dropped"]


def test_excluded_files_leave_no_empty_folders_and_no_bytes_are_read() -> None:
    def never() -> Content:
        raise AssertionError

    collector = Collector(what="p", owner="p", selection=Selection(("usr/share/doc/*",)))
    for path in ("usr", "usr/share", "usr/share/doc", "usr/share/doc/p"):
        collector.add(member(path, "5"), never)
    collector.add(member("usr/share/doc/p/changelog"), never)
    collector.add(member("usr/lib", "5"), never)
    assert [entry.path for entry in collector.entries()] == ["usr/lib"]


def test_an_included_file_keeps_the_folders_above_it() -> None:
    rules = Selection(("usr/share/doc/*",), ("*/copyright",))
    collector = Collector(what="p", owner="p", selection=rules)
    found = collect(
        member("usr/share/doc/p", "5"),
        member("usr/share/doc/p/copyright"),
        collector=collector,
    )
    assert found == {"usr/share/doc/p": Kind.DIR, "usr/share/doc/p/copyright": Kind.FILE}


def test_a_hard_link_to_an_excluded_file_says_what_to_do() -> None:
    collector = Collector(what="evil 1.0", owner="p", selection=Selection(("a",)))
    error = refused(member("a"), member("b", "1", "a"), collector=collector)
    assert error.code == "EXCLUDED_LINK_TARGET"
    assert error.hint


def test_merged_usr_makes_two_names_one() -> None:
    links = {"lib": "usr/lib"}
    collector = Collector(what="p", owner="p", links=links)
    found = collect(
        member("lib", "5"), member("lib/a.so"), member("usr/lib/b.so"), collector=collector
    )
    assert set(found) == {"usr/lib/a.so", "usr/lib/b.so"}


def test_a_link_given_by_the_spec_may_not_be_something_else() -> None:
    collector = Collector(what="evil 1.0", owner="p", links={"lib": "usr/lib"})
    assert refused(member("lib", "2", "/tmp"), collector=collector).code == "HOSTILE_TAR"


@pytest.mark.parametrize(
    ("path", "links"),
    [
        ("a/x", {"a": "b", "b": "a"}),
        ("a/x", {"a": "../x"}),
        ("a/b/x", {"a/b": "../../x"}),
    ],
)
def test_links_that_circle_or_climb_are_refused(path: str, links: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        canonical(path, links)
    assert caught.value.code == "BAD_LINK"
