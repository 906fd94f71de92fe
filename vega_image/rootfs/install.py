"""Install locked packages with their maintainer scripts: mmdebstrap, without a network.

It sees one repository, made here of the locked .debs; each was compared with its SHA-256
just before, which is why that repository needs no signature.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from vega_image.digest import PREFIX
from vega_image.engines.base import Work
from vega_image.errors import EngineError, StageError, UsageError
from vega_image.lock import PackageFile
from vega_image.process import run
from vega_image.rootfs.fromtar import tree_of_tar
from vega_image.rootfs.ownership import with_owners
from vega_image.rootfs.tree import Tree
from vega_image.spec import Root
from vega_image.store import CHUNK, Store, disk_errors

INSTALLED: Final = "install"
"""Owner of files that no package lists: what maintainer scripts made."""
_SUITE: Final = "locked"
_NAMESPACES: Final = ("--net", "--pid", "--mount-proc", "--fork", "--kill-child=KILL")
_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"


def install(packages: Sequence[PackageFile], root: Root, work: Work) -> Tree:
    """Return the tree of a root with exactly the locked packages installed.

    Raises EngineError TOOL_ABSENT without mmdebstrap, UsageError OMIT_NEEDS_EXTRACT,
    StageError INSTALL_FAILED with the last lines, and what reading the result raises.
    """
    if root.omit:
        msg = f"root.omit names {', '.join(sorted(root.omit))}, but installing needs them all"
        raise UsageError("OMIT_NEEDS_EXTRACT", msg, at="root.omit", hint="method: extract")
    repository = work.scratch / "repository"
    _make_repository(packages, repository, work)
    out = work.scratch / "root.tar"
    argv = [*_confined(), "mmdebstrap", *_options(packages, root), _SUITE, str(out)]
    argv.append(f"deb [trusted=yes] copy://{quote(str(repository))} ./")
    done = run(argv, env=_environment(work), on_line=work.log)
    if done.returncode != 0:
        tail = "\n".join(done.output.splitlines()[-30:])
        msg = f"mmdebstrap failed ({done.returncode}):\n{tail}"
        raise StageError("INSTALL_FAILED", msg, at="root")
    tree = tree_of_tar(_into_store(out, work.store), work.store, owner=INSTALLED, note=work.log)
    return with_owners(tree, work.store)


def _make_repository(packages: Sequence[PackageFile], folder: Path, work: Work) -> None:
    pool = folder / "pool"
    pool.mkdir(parents=True)
    stanzas = []
    for index, package in enumerate(packages):
        what = f"{package.package} {package.version}"
        deb = work.store.verify(PREFIX + package.sha256, what=what)
        place = pool / f"{package.sha256}.deb"
        _link_or_copy(deb, place)
        stanzas.append(_stanza(package, place))
        work.progress(index + 1, len(packages))
    (folder / "Packages").write_text("\n".join(stanzas), encoding="utf-8")
    # Installation runs under other user ids that must get here.
    for path in (work.scratch, folder, pool):
        path.chmod(0o755)


def _stanza(package: PackageFile, deb: Path) -> str:
    said = run(["dpkg-deb", "--field", str(deb)])
    if said.returncode != 0:
        msg = f"{package.package} {package.version}: dpkg-deb --field failed: {said.output}"
        raise StageError("BROKEN_PACKAGE", msg, at=package.package)
    place = f"Filename: pool/{deb.name}\nSize: {package.size}\nSHA256: {package.sha256}\n"
    return said.output.rstrip("\n") + "\n" + place


def _options(packages: Sequence[PackageFile], root: Root) -> Iterator[str]:
    yield "--variant=custom"
    yield "--mode=auto"
    yield "--format=tar"
    foreign = {package.architecture for package in packages} - {"all"}
    yield f"--architectures={','.join(sorted(foreign))}"
    yield f"--include={','.join(package.package for package in packages)}"
    yield '--aptopt=Acquire::Languages "none"'
    yield from (f"--dpkgopt=path-exclude=/{glob}" for glob in root.exclude)
    yield from (f"--dpkgopt=path-include=/{glob}" for glob in root.include)


def _confined() -> list[str]:
    """Shut mmdebstrap in, where we may: no network, and nothing runs on or stays mounted.

    When the first process of a PID namespace dies, so do all others, and its mounts go too.
    """
    guard = ["unshare", *_NAMESPACES, "--"]
    try:
        return guard if run([*guard, "true"]).returncode == 0 else []
    except EngineError:
        return []


def _environment(work: Work) -> dict[str, str]:
    return {
        "PATH": _PATH,
        "SOURCE_DATE_EPOCH": str(work.epoch),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(work.scratch),
        "TMPDIR": str(work.scratch),
    }


def _link_or_copy(source: Path, target: Path) -> None:
    with disk_errors(target):
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)


def _into_store(path: Path, store: Store) -> str:
    with path.open("rb") as file, store.writer() as out:
        while data := file.read(CHUNK):
            out.write(data)
        return out.commit()
