"""Extract the locked packages of a root: content only, no maintainer script is run.

Two packages at a time, the largest first; each result is remembered by the .deb's digest
and the rules, so an interrupted build goes on and a rerun reads nothing twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final, cast

from vega_image.digest import PREFIX, digest, hex_of
from vega_image.engines.base import Work
from vega_image.errors import BytesError
from vega_image.lock import PackageFile
from vega_image.rootfs.assemble import assemble
from vega_image.rootfs.collect import Collector
from vega_image.rootfs.deb import DebReader, Extracted
from vega_image.rootfs.selection import Selection, rules_digest
from vega_image.rootfs.tree import Tree
from vega_image.spec import Root
from vega_image.store import Store

PARALLEL: Final = 2
REF: Final = "extracted"
# Part of every remembered result's name: raise it when the same .deb must give another one.
_VERSION: Final = 1
# .debs of large libraries hold about this many times their size; only for the progress bar.
_SWELL: Final = 5


def extract(packages: Sequence[PackageFile], root: Root, work: Work) -> Tree:
    """Return the tree of all locked packages that `root` does not omit.

    `work.progress` counts bytes of .debs. Raises BytesError when a .deb is missing or not
    the locked one; StageError HOSTILE_TAR, BROKEN_TAR, BROKEN_PACKAGE, EXCLUDED_LINK_TARGET
    or PACKAGE_CONFLICT naming package and path.
    """
    parts = extract_each(packages, root, work)
    for part in parts:
        for note in part.notes:
            work.log(note)
    return assemble(entry for part in parts for entry in part.entries)


def extract_each(
    packages: Sequence[PackageFile], root: Root, work: Work
) -> tuple[Extracted, ...]:
    """Like `extract`, but package by package and sorted by name: also the control data."""
    wanted = sorted(
        (package for package in packages if package.package not in root.omit),
        key=lambda package: -package.size,
    )
    run = _Run(root, work, {package.sha256: 0 for package in wanted}, _total(wanted))
    with ThreadPoolExecutor(PARALLEL, thread_name_prefix="extract") as pool:
        futures = [pool.submit(run.one, package) for package in wanted]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            failed = [error for done in futures if done.done() and (error := done.exception())]
        except BaseException:
            run.stop.set()
            raise
        finally:
            if not all(done.done() for done in futures):
                run.stop.set()
        if failed:
            raise failed[0]
        parts = [done.result() for done in futures]
    return tuple(sorted(parts, key=lambda part: part.package))


class _StoppedError(Exception):
    """Another package failed or the user interrupted."""


@dataclass(slots=True)
class _Run:
    root: Root
    work: Work
    done: dict[str, int]
    total: int
    stop: threading.Event = field(default_factory=threading.Event)
    _told: threading.Lock = field(default_factory=threading.Lock)

    def one(self, package: PackageFile) -> Extracted:
        known = self._remembered(package)
        if known is None:
            known = self._extracted(package)
        self._report(package, package.size)
        return known

    def _extracted(self, package: PackageFile) -> Extracted:
        what = f"{package.package} {package.version}"
        deb = self.work.store.verify(PREFIX + package.sha256, what=what)
        reader = DebReader(
            store=self.work.store,
            scratch=self.work.scratch,
            tick=lambda read: self._report(package, min(package.size, read // _SWELL)),
        )
        collector = Collector(
            what=what,
            owner=package.package,
            selection=Selection(self.root.exclude, self.root.include),
            links=self.root.links,
        )
        result = reader.read(package, deb, collector)
        self._remember(package, result)
        return result

    def _remembered(self, package: PackageFile) -> Extracted | None:
        store = self.work.store
        row = store.get_ref(REF, self._name(package))
        if row is None:
            return None
        what = f"{package.package} (extracted before)"
        try:
            value = store.read_json(cast("dict[str, str]", row)["result"], what=what)
            result = Extracted.from_json(value)
            for name in result.objects():
                store.verify(name, what=what)
        except (BytesError, KeyError, TypeError, ValueError) as error:
            self.work.log(f"{what}: extracted again, {error}")
            return None
        return result

    def _remember(self, package: PackageFile, result: Extracted) -> None:
        store = self.work.store
        row = {"result": store.put_json(result.to_json()), "objects": result.objects()}
        store.set_ref(REF, self._name(package), row)

    def _name(self, package: PackageFile) -> str:
        rules = digest({"version": _VERSION, "rules": rules_digest(self.root)})
        return f"{package.sha256}-{hex_of(rules)[:16]}"

    def _report(self, package: PackageFile, done: int) -> None:
        if self.stop.is_set():
            raise _StoppedError
        with self._told:
            self.done[package.sha256] = done
            self.work.progress(sum(self.done.values()), self.total)


def _total(packages: Sequence[PackageFile]) -> int:
    return sum(package.size for package in packages)


def remembered_objects(store: Store) -> Iterator[str]:
    """List the objects that remembered extractions need, for whoever cleans the store."""
    for name in store.refs(REF):
        row = store.get_ref(REF, name)
        if isinstance(row, dict):
            yield cast("str", row["result"])
            yield from cast("list[str]", row["objects"])
