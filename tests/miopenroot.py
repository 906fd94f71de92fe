"""The real libMIOpen 7.2.4 with the few libraries it needs where the shim answers for ROCm.

Fetched by locked digest into the user's own store, 9 MB once. Where a locked file has left
the mirror the same packages are resolved again, as `build --relock if-gone` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from vega_image.errors import BytesError
from vega_image.lock import PackageFile
from vega_image.settings import Folders
from vega_image.sources import debian
from vega_image.sources.address import join
from vega_image.sources.download import Wanted
from vega_image.sources.fetch import fetch_files
from vega_image.sources.origin import Origin
from vega_image.spec import DebianSource
from vega_image.store import Store

DATA = Path(__file__).parent / "data/finddb"
PACKAGES = DATA / "libmiopen.packages.json"
TESTS_DATA = DATA / "miopen-tests-data.packages.json"
RECORDS = DATA / "gfx906_60-audit.HIP.fdb.txt"


def locked(path: Path) -> list[PackageFile]:
    """Read the locked packages of a file of the test data."""
    return [PackageFile.model_validate(row) for row in json.loads(path.read_text())]


def fetched(packages: Sequence[PackageFile]) -> list[Path]:
    """Return the packages' files; those that left the mirror are resolved once more."""
    store = Store(Folders.of(os.environ, uid=os.geteuid()).cache / "store")
    try:
        _fetch(packages, store)
    except BytesError as error:
        if error.code != "FILE_GONE":
            raise
        packages = _resolved_again(packages)
        _fetch(packages, store)
    return [store.path(f"sha256:{package.sha256}") for package in packages]


def _fetch(packages: Sequence[PackageFile], store: Store) -> None:
    missing = [p for p in packages if not store.has(f"sha256:{p.sha256}")]
    bases = Origin().bases() if missing else ()
    wanted = [
        Wanted(
            name=package.package,
            urls=tuple(join(base, package.pool_path) for base in bases),
            size=package.size,
            sha256=package.sha256,
        )
        for package in missing
    ]
    fetch_files(wanted, store=store, offline=False, progress=lambda _a, _b: None, log=print)


def _resolved_again(packages: Sequence[PackageFile]) -> list[PackageFile]:
    names = {package.package for package in packages}
    source = DebianSource.model_validate(
        {
            "kind": "debian",
            "suites": ["sid", "experimental"],
            "packages": sorted(names),
            "accept_expired_release": True,
        }
    )
    with tempfile.TemporaryDirectory() as scratch:
        found = debian.resolve(
            source, origin=Origin(), scratch=Path(scratch), now=int(time.time()), log=print
        )
    chosen = [package for package in found.packages if package.package in names]
    versions = {package.package: package.version for package in chosen}
    for name in names & {"libmiopen1", "libmiopen-tests-data"}:
        assert versions[name].startswith("7.2.4"), (
            f"the mirror moved on: {name} {versions[name]}"
        )
    return chosen


def unpack(debs: Sequence[Path], root: Path, *words: str) -> None:
    """Unpack packages, or only the members named."""
    for deb in debs:
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE
        ) as tar:
            argv = ["tar", "-x", "-C", str(root), "--keep-directory-symlink", *words]
            subprocess.run(argv, stdin=tar.stdout, check=True)


@pytest.fixture(scope="session")
def miopen_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the library's root, without any database."""
    root = tmp_path_factory.mktemp("miopen-root")
    for name in ("lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    unpack(fetched(locked(PACKAGES)), root)
    return root
