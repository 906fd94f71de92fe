"""A lock survives its file, notices every edit, and says what went stale."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vega_image.digest import digest
from vega_image.errors import LockError, UsageError
from vega_image.lock import (
    Lock,
    LockedArchive,
    LockedDebian,
    LockedGit,
    LockedSource,
    PackageFile,
    ReleaseFile,
)
from vega_image.lockfile import check_lock, decode_lock, encode_lock, seal, unresolved
from vega_image.spec import (
    ArchiveSource,
    DebianSource,
    GitSource,
    ImageConfig,
    Layer,
    Root,
    Target,
    TargetKind,
)

TOOLS = {"libzstd": "1.5.7"}
SHA = "ab" * 32
names = st.text("abz09.+-", max_size=8).map(lambda text: f"n{text}")
shas = st.text("0189af", min_size=64, max_size=64)
numbers = st.integers(min_value=0, max_value=2**53 - 1)
packages = st.builds(
    PackageFile,
    package=names,
    version=st.text("019AZaz.+:~-", min_size=1, max_size=9),
    architecture=st.sampled_from(["all", "amd64"]),
    suite=names,
    pool_path=names.map(lambda name: f"pool/main/{name}.deb"),
    size=st.integers(min_value=1, max_value=2**53 - 1),
    sha256=shas,
)
releases = st.builds(
    ReleaseFile,
    suite=names,
    date=numbers,
    valid_until=st.none() | numbers,
    sha256=shas,
    expired_accepted=st.booleans(),
)
sources: st.SearchStrategy[LockedSource] = st.one_of(
    st.builds(
        LockedDebian,
        kind=st.just("debian"),
        releases=st.lists(releases, max_size=3).map(tuple),
        packages=st.lists(packages, max_size=4).map(tuple),
    ),
    st.builds(
        LockedArchive,
        kind=st.just("archive"),
        url=st.text(),
        size=st.none() | numbers,
        sha256=st.none() | shas,
    ),
    st.builds(
        LockedGit,
        kind=st.just("git"),
        url=st.text(),
        commit=st.text(),
        size=st.none() | numbers,
        tree_sha256=st.none() | shas,
    ),
)


def target(**changes: Any) -> Target:
    values: dict[str, Any] = {
        "schema_version": 1,
        "name": "tiny",
        "kind": TargetKind.OCI,
        "version": "1",
        "title": "t",
        "description": "d",
        "licenses": "MIT",
        "epoch": 7,
        "sources": {"debian": debian_spec()},
        "root": Root(source="debian"),
        "layers": (Layer(name="all", rest=True),),
        "image": ImageConfig(user="1"),
    }
    return Target.model_validate(values | changes)


def debian_spec(*wanted: str, **changes: Any) -> DebianSource:
    values: dict[str, Any] = {"packages": frozenset(wanted or ("tool",)), "suites": ("mini",)}
    return DebianSource(kind="debian", **(values | changes))


def debian(date: int = 5) -> LockedDebian:
    release = ReleaseFile(suite="mini", date=date, sha256=SHA)
    file = PackageFile(
        package="tool",
        version="1:2~rc1-1",
        architecture="amd64",
        suite="mini",
        pool_path="pool/main/t/tool_2~rc1-1_amd64.deb",
        size=10,
        sha256=SHA,
    )
    return LockedDebian(kind="debian", releases=(release,), packages=(file,))


def sealed(**changes: Any) -> Lock:
    return seal(target(**changes), {"debian": debian()}, tools=TOOLS)


def stale(lock: Lock, now: Target, tools: dict[str, str] | None = None) -> str:
    with pytest.raises(LockError) as caught:
        check_lock(lock, now, tools=TOOLS if tools is None else tools)
    assert (caught.value.code, caught.value.exit_code) == ("LOCK_STALE", 3)
    assert caught.value.hint == "vega-image lock tiny"
    return caught.value.message


@settings(max_examples=50)
@given(st.dictionaries(names, sources, max_size=3), st.dictionaries(st.text(), st.text()))
def test_a_lock_survives_its_file(
    found: dict[str, LockedSource], tools: dict[str, str]
) -> None:
    lock = seal(target(), found, tools=tools)
    text = encode_lock(lock)
    assert decode_lock(text, at="x.lock.json") == lock
    value = json.loads(text)
    assert digest({k: v for k, v in value.items() if k != "digest"}) == lock.digest
    again = json.dumps(value, indent=7, ensure_ascii=True).encode()
    assert decode_lock(again, at="x") == lock


def test_one_line_per_package_and_release() -> None:
    lines = encode_lock(sealed()).decode().splitlines()
    assert [line for line in lines if '"pool_path"' in line and '"version"' in line]
    assert [line for line in lines if '"date":5' in line]
    assert max(map(len, lines)) < 300


@given(st.data())
def test_every_edit_is_noticed(data: st.DataObject) -> None:
    text = encode_lock(sealed())
    at = data.draw(st.integers(0, len(text) - 1))
    new = data.draw(st.binary(max_size=3))
    cut = data.draw(st.integers(0, 3))
    edited = text[:at] + new + text[at + cut :]
    try:
        found: Lock | LockError = decode_lock(edited, at="images/tiny.lock.json")
    except LockError as error:
        found = error
    if isinstance(found, LockError):
        assert found.code in {"LOCK_MALFORMED", "LOCK_EDITED"}
        assert (found.hint, found.at) == ("vega-image lock tiny", "images/tiny.lock.json")
    else:
        assert found == sealed()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b'"size":10', b'"size":11', "LOCK_EDITED"),
        (b'"epoch": 7', b'"epoch": 8', "LOCK_EDITED"),
        (b'"1.5.7"', b'"1.5.6"', "LOCK_EDITED"),
        (b'"size":10', b'"size":10,"size":10', "LOCK_MALFORMED"),
        (b'"size":10', b'"size":10,"note":1', "LOCK_MALFORMED"),
        (b'"size":10', b'"size":-10', "LOCK_MALFORMED"),
        (b"pool/main/t/", b"pool/../../", "LOCK_MALFORMED"),
        (b"pool/main/t/", b"/pool/main/t/", "LOCK_MALFORMED"),
        (b'"date":5', b'"date":5,"valid_until":null', "LOCK_EDITED"),
        (b'"size":10', b'"size":1e400', "LOCK_MALFORMED"),
    ],
)
def test_edits_by_hand(old: bytes, new: bytes, code: str) -> None:
    text = encode_lock(sealed())
    assert old in text
    with pytest.raises(LockError) as caught:
        decode_lock(text.replace(old, new), at="tiny.lock.json")
    assert (caught.value.code, caught.value.exit_code) == (code, 3)


@given(st.binary(max_size=60) | st.sampled_from([b"[" * 9999, b"{}", b"null", b"\xff", b""]))
def test_rubbish_is_malformed(data: bytes) -> None:
    with pytest.raises(LockError) as caught:
        decode_lock(data, at="x")
    assert caught.value.code == "LOCK_MALFORMED"


def test_epoch_is_the_specs_else_the_newest_release() -> None:
    locked = {"a": debian(50), "b": debian(70)}
    assert seal(target(epoch=3), locked, tools={}).epoch == 3
    assert seal(target(epoch=None), locked, tools={}).epoch == 70
    with pytest.raises(UsageError) as caught:
        seal(target(epoch=None), {}, tools={})
    assert caught.value.code == "NO_EPOCH"


def test_what_no_lock_depends_on_may_change() -> None:
    image = ImageConfig(user="2", labels={"a": "b"})
    now = target(version="2", title="other", image=image, root=Root(source="debian", omit={}))
    check_lock(sealed(), now, tools=TOOLS)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (debian_spec("tool", "more"), "source debian: packages: +more"),
        (debian_spec("other"), "source debian: packages: +other -tool"),
        (debian_spec(suites=("sid",)), "source debian: suites: +sid -mini"),
        (debian_spec(essential=True), "source debian: essential: false -> true"),
        (debian_spec(architecture="arm64"), "source debian: architecture: amd64 -> arm64"),
        (debian_spec(accept_expired_release=True), "accept_expired_release: false -> true"),
    ],
)
def test_a_stale_lock_says_what_changed(source: DebianSource, words: str) -> None:
    assert words in stale(sealed(), target(sources={"debian": source}))


def test_order_of_suites_counts() -> None:
    lock = sealed(sources={"debian": debian_spec(suites=("a", "b"))})
    now = target(sources={"debian": debian_spec(suites=("b", "a"))})
    assert "suites" in stale(lock, now)


def test_new_and_gone_sources() -> None:
    git = GitSource(kind="git", url="https://example.org/x", commit="0" * 40)
    both = {"debian": debian_spec(), "code": git}
    assert "source code: new in the spec" in stale(sealed(), target(sources=both))
    assert "source code: gone from the spec" in stale(sealed(sources=both), target())
    moved = {**both, "code": git.model_copy(update={"commit": "1" * 40})}
    assert f"commit: {'0' * 40} -> {'1' * 40}" in stale(
        sealed(sources=both), target(sources=moved)
    )


def test_tools_epoch_and_other_targets() -> None:
    assert "tool libzstd: 1.5.7 -> 1.6" in stale(sealed(), target(), {"libzstd": "1.6"})
    assert "tool x: not recorded -> 1" in stale(sealed(), target(), {**TOOLS, "x": "1"})
    assert "epoch" in stale(sealed(), target(epoch=8))
    other = sealed().model_copy(update={"target": "other"})
    assert "made for other" in stale(other, target())


def test_unresolved_names_what_nobody_could_fetch() -> None:
    url = "https://example.org/f"
    found: dict[str, LockedSource] = {
        "debian": debian(),
        "got": LockedArchive(kind="archive", url=url, size=1, sha256=SHA),
        "file": LockedArchive(kind="archive", url=url, size=None, sha256=None),
        "code": LockedGit(kind="git", url=url, commit="0" * 40, tree_sha256=None),
    }
    assert unresolved(seal(target(), found, tools={})) == ("code", "file")


def test_a_password_in_the_spec_is_not_locked() -> None:
    url = "https://ann:s3cret@example.org/f"
    archive = ArchiveSource(kind="archive", url=url, size=1, sha256=SHA)
    now = target(sources={"debian": debian_spec(), "file": archive})
    lock = seal(now, {"debian": debian()}, tools=TOOLS)
    assert b"s3cret" not in encode_lock(lock)
    check_lock(lock, now, tools=TOOLS)
