"""Extraction by the real dpkg-deb: hostile packages, conflicts, interruption, records."""

from __future__ import annotations

import os
import tarfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.debs import locked, member, spoil, tar
from vega_image.engines.base import Work
from vega_image.errors import BytesError, StageError
from vega_image.lock import PackageFile
from vega_image.process import run
from vega_image.rootfs.assemble import assemble
from vega_image.rootfs.content import Contents
from vega_image.rootfs.extract import extract, extract_each, remembered_objects
from vega_image.rootfs.generated import package_records
from vega_image.rootfs.tree import Kind
from vega_image.spec import Root
from vega_image.store import Store

ROOT = Root(
    source="debian",
    omit={"left": "not needed"},
    exclude=("usr/share/doc/*",),
    include=("usr/share/doc/*/copyright",),
    links={"lib": "usr/lib"},
)


@dataclass
class Bench:
    store: Store
    scratch: Path
    lines: list[str] = field(default_factory=list)
    heard: list[tuple[int, int]] = field(default_factory=list)

    @property
    def work(self) -> Work:
        return Work(
            store=self.store,
            parent=None,
            scratch=self.scratch,
            epoch=1764460800,
            log=self.lines.append,
            log_path=self.scratch / "log",
            progress=lambda *pair: self.heard.append(pair),
        )

    def package(self, name: str, *members: tarfile.TarInfo | tuple[str, str]) -> PackageFile:
        return locked(self.store, name, tar(*members))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Bench(Store(tmp_path / "store"), scratch)


def test_two_packages_make_one_tree(bench: Bench) -> None:
    packages = [
        bench.package("aa", ("lib/x.so", "bytes of x"), ("usr/share/doc/aa/changelog", "long")),
        bench.package("bb", ("usr/lib/y.so", ""), ("usr/share/doc/bb/copyright", "free")),
        bench.package("left", ("usr/lib/x.so", "would conflict")),
    ]
    tree = extract(packages, ROOT, bench.work)
    files = {e.path: e for e in tree.entries if e.kind is Kind.FILE}
    assert list(files) == ["usr/lib/x.so", "usr/lib/y.so", "usr/share/doc/bb/copyright"]
    assert [entry.owner for entry in files.values()] == ["aa", "bb", "bb"]
    contents = Contents(bench.store)
    texts = [bytes(contents.view(e.content)) for e in files.values() if e.content]
    assert texts == [b"bytes of x", b"", b"free"]
    assert bench.heard[-1] == (sum(p.size for p in packages[:2]),) * 2


@pytest.mark.parametrize(
    "evil",
    [
        member("/etc/shadow", tarfile.REGTYPE),
        member("./../../etc/cron.d/x", tarfile.REGTYPE),
        member("./dev/sda", tarfile.BLKTYPE),
        member("./run/pipe", tarfile.FIFOTYPE),
        member("./usr/x", tarfile.LNKTYPE, "../../etc/shadow"),
        member("./lib", tarfile.SYMTYPE, "/tmp"),
        member("./usr/a\nb", tarfile.REGTYPE),
    ],
)
def test_a_hostile_package_is_named_with_the_path(bench: Bench, evil: tarfile.TarInfo) -> None:
    packages = [bench.package("fine", ("usr/fine", "")), bench.package("evil", evil)]
    with pytest.raises(StageError, match=r"evil 1\.0-1") as caught:
        extract(packages, ROOT, bench.work)
    assert caught.value.code == "HOSTILE_TAR"
    assert bench.store.refs("steps") == []


def test_a_path_through_a_symlink_is_refused(bench: Bench) -> None:
    evil = bench.package("evil", member("./usr/a", tarfile.SYMTYPE, "/etc"), ("usr/a/b", "x"))
    with pytest.raises(StageError) as caught:
        extract([evil], ROOT, bench.work)
    assert caught.value.code == "HOSTILE_TAR"


def test_a_path_through_another_packages_symlink_names_both(bench: Bench) -> None:
    packages = [
        bench.package("aa", member("./usr/a", tarfile.SYMTYPE, "/etc")),
        bench.package("bb", ("usr/a/passwd", "x")),
    ]
    with pytest.raises(StageError, match=r"aa.*bb") as caught:
        extract(packages, ROOT, bench.work)
    assert caught.value.code == "PACKAGE_CONFLICT"


def test_setuid_is_dropped_and_said(bench: Bench) -> None:
    su = member("./usr/su", tarfile.REGTYPE, mode=0o4755)
    (entry,) = extract([bench.package("su", su)], ROOT, bench.work).entries
    assert entry.mode == 0o755
    assert bench.lines == ["su 1.0-1: usr/su: mode 4755, setuid and setgid dropped"]


def test_a_missing_and_a_swapped_deb_are_named(bench: Bench) -> None:
    package = bench.package("aa", ("x", "y"))
    path = bench.store.path(f"sha256:{package.sha256}")
    spoil(path, b"swapped")
    for code in ("STORE_TAMPERED", "OBJECT_GONE"):
        with pytest.raises(BytesError, match="aa 1") as caught:
            extract([package], ROOT, bench.work)
        assert caught.value.code == code


def test_a_file_that_is_no_deb_is_what_dpkg_says(bench: Bench) -> None:
    data = b"not a package"
    digest = bench.store.put(data)
    package = bench.package("aa").model_copy(
        update={"sha256": digest[7:], "size": len(data), "package": "junk"}
    )
    with pytest.raises(StageError, match=r"junk.*dpkg-deb") as caught:
        extract([package], ROOT, bench.work)
    assert caught.value.code == "BROKEN_PACKAGE"


def test_a_second_run_reads_no_deb(bench: Bench) -> None:
    package = bench.package("aa", ("usr/x", "text"))
    first = extract([package], ROOT, bench.work)
    bench.store.path(f"sha256:{package.sha256}").unlink()
    assert extract([package], ROOT, bench.work) == first
    assert set(remembered_objects(bench.store)) > {
        entry.content.object for entry in first.entries if entry.content
    }
    with pytest.raises(BytesError):
        extract([package], ROOT.model_copy(update={"exclude": ()}), bench.work)


def test_damaged_extracted_bytes_are_extracted_again(bench: Bench) -> None:
    package = bench.package("aa", ("usr/x", "text"))
    first = extract([package], ROOT, bench.work)
    (content,) = [entry.content for entry in first.entries if entry.content]
    spoil(bench.store.path(content.object), b"evil")
    assert extract([package], ROOT, bench.work) == first
    assert bytes(Contents(bench.store).view(content)) == b"text"
    assert "extracted again" in bench.lines[0]


def test_an_interruption_stops_both_threads_and_keeps_what_was_done(bench: Bench) -> None:
    packages = [bench.package(f"p{i}", (f"usr/{i}", "x" * i)) for i in range(80)]

    interrupts = [KeyboardInterrupt()]

    def interrupt(done: int, total: int) -> None:
        if done > total // 2 and interrupts:
            raise interrupts.pop()

    work = bench.work
    with pytest.raises(KeyboardInterrupt):
        extract(packages, ROOT, replace(work, progress=interrupt))
    assert not [t for t in threading.enumerate() if t.name.startswith("extract")]
    assert not list(bench.store.tmp.iterdir())
    done = len(bench.store.refs("extracted"))
    assert 0 < done < len(packages) - 5
    assert len(extract(packages, ROOT, work).entries) == len(packages)


def test_host_settings_do_not_show(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Bench(Store(tmp_path / "far" / "away"), bench.scratch)
    trees = []
    for one, zone, mask in ((bench, "UTC", 0o022), (other, "Asia/Kathmandu", 0o077)):
        monkeypatch.setenv("TZ", zone)
        old = os.umask(mask)
        try:
            package = one.package("aa", ("usr/x", "text"), member("./usr/d", tarfile.DIRTYPE))
            trees.append(extract([package], ROOT, one.work).to_json())
        finally:
            os.umask(old)
    assert trees[0] == trees[1]


def test_dpkg_reads_our_records_and_verifies_the_files(bench: Bench, tmp_path: Path) -> None:
    md5 = "9dd4e461268c8034f5c8564e155c67a6"
    sums = f"{md5}  usr/x\n{md5}  usr/share/doc/aa/gone\n{md5}  lib/z\n"
    data = tar(("usr/x", "x"), ("lib/z", "slimmed"), ("usr/share/doc/aa/gone", "x"))
    package = locked(bench.store, "aa", data, md5sums=sums)
    parts = extract_each([package], ROOT, bench.work)
    assert parts[0].control["md5sums"] == f"{md5}  usr/lib/z\n{md5}  usr/x\n"
    entries = [entry for part in parts for entry in part.entries]
    tree = assemble([*entries, *package_records(parts, [package], bench.store)])
    root = tmp_path / "root"
    contents = Contents(bench.store)
    for entry in tree.entries:
        if entry.content:
            (root / entry.path).parent.mkdir(parents=True, exist_ok=True)
            (root / entry.path).write_bytes(contents.view(entry.content))
    database = f"--admindir={root}/var/lib/dpkg"
    said = run(
        ["dpkg-query", database, "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}"]
    )
    assert said.output == "aa 1.0-1 ii "
    assert "/usr/lib/z" in run(["dpkg-query", database, "-L", "aa"]).output.splitlines()
    checked = run(["dpkg", f"--root={root}", "--verify"]).output.split()
    assert checked == ["??5??????", "/usr/lib/z"]


def test_a_package_that_is_not_the_locked_one_is_refused(bench: Bench) -> None:
    package = bench.package("aa", ("usr/x", "x"))
    other = package.model_copy(update={"version": "2.0-1"})
    parts = extract_each([other], ROOT, bench.work)
    with pytest.raises(StageError, match="control file says") as caught:
        package_records(parts, [other], bench.store)
    assert caught.value.code == "BROKEN_PACKAGE"
