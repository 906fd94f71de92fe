"""A signed Debian archive of tiny packages, made on the spot; needs gpg and dpkg-deb."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path

from vega_image.process import run

SUITE = "mini"
DATE = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
DAY = 86400


@dataclass(frozen=True)
class Package:
    """What goes into one .deb.

    `fields` are further control fields, `filler` random bytes; `copies` are programs of this
    machine (path in the package -> file here), `links` symlinks (path -> target).
    """

    name: str
    version: str = "1.0-1"
    architecture: str = "all"
    files: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    filler: int = 0
    copies: Mapping[str, Path] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


class MiniDebian:
    """The archive under `root`: pool/ and dists/; `keyring` verifies it."""

    def __init__(self, root: Path, *, home: Path) -> None:
        self.root = root
        self.keyring = root / "keyring.gpg"
        self._home = home
        self._stanzas: dict[str, list[str]] = {}
        root.mkdir(parents=True, exist_ok=True)
        if not (home / "pubring.kbx").exists():
            self._gpg("--quick-gen-key", "Mini <mini@example.org>", "ed25519", "sign", "never")
        self._gpg("--output", str(self.keyring), "--export")

    def add(self, package: Package, *, suite: str = SUITE, component: str = "main") -> Path:
        """Build a package into the pool and list it in a suite; publish afterwards."""
        name = f"{package.name}_{package.version.partition(':')[2] or package.version}"
        path = f"pool/{component}/{package.name[0]}/{package.name}"
        deb = self.root / path / f"{name}_{package.architecture}.deb"
        deb.parent.mkdir(parents=True, exist_ok=True)
        control = _control(package)
        with tempfile.TemporaryDirectory() as name_of_tree:
            tree = Path(name_of_tree)
            _fill(tree, package, control)
            _run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(tree), str(deb))
        data = deb.read_bytes()
        filename = deb.relative_to(self.root).as_posix()
        stanza = f"{control}Filename: {filename}\nSize: {len(data)}\n"
        stanza += f"SHA256: {sha256(data).hexdigest()}\n"
        self._stanzas.setdefault(suite, []).append(stanza)
        return deb

    def forget(self, name: str, *, suite: str = SUITE) -> None:
        """Take a package out of the index, as a mirror does when a newer one comes."""
        keep = [s for s in self._stanzas[suite] if f"Package: {name}\n" not in s]
        self._stanzas[suite] = keep

    def publish(
        self,
        suite: str = SUITE,
        *,
        date: int = DATE,
        valid_until: int | None = None,
        component: str = "main",
    ) -> Path:
        """Write and sign the indexes of a suite; returns its InRelease file."""
        folder = self.root / "dists" / suite
        shutil.rmtree(folder, ignore_errors=True)
        index = folder / component / "binary-amd64" / "Packages"
        index.parent.mkdir(parents=True)
        data = "\n".join(self._stanzas.get(suite, [])).encode()
        index.write_bytes(data)
        until = "" if valid_until is None else f"Valid-Until: {_rfc(valid_until)}\n"
        release = folder / "Release"
        release.write_text(
            f"Origin: Mini\nSuite: {suite}\nCodename: {suite}\nDate: {_rfc(date)}\n{until}"
            f"Architectures: amd64\nComponents: {component}\nSHA256:\n"
            f" {sha256(data).hexdigest()} {len(data)} {component}/binary-amd64/Packages\n"
        )
        signed = folder / "InRelease"
        self._gpg("--clearsign", "--output", str(signed), str(release))
        return signed

    def _gpg(self, *words: str) -> None:
        quiet = (
            "--batch",
            "--yes",
            "--quiet",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
        )
        _run("gpg", "--homedir", str(self._home), *quiet, *words)


@contextmanager
def gpg_home() -> Iterator[Path]:
    """Offer a key folder with a path short enough for gpg's sockets, and end its agent."""
    home = Path(tempfile.mkdtemp(prefix="vega-gpg-"))
    try:
        yield home
    finally:
        run(["gpgconf", "--homedir", str(home), "--kill", "all"])
        shutil.rmtree(home, ignore_errors=True)


def four_packages(archive: MiniDebian) -> None:
    """Add a tool, its library with an epoch and `+` in its name, data, and what else fits."""
    archive.add(Package("tool", "2.0-1", fields={"Depends": "libtool++6, data"}))
    archive.add(Package("libtool++6", "1:1.2~rc1-1", "amd64", files={"usr/lib/a": "a"}))
    archive.add(Package("data", "3", files={"usr/share/data": "data\n"}, filler=300_000))
    archive.add(Package("extra", "0.1", fields={"Provides": "virtual-extra"}))


def _control(package: Package) -> str:
    fields = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": package.architecture,
        "Maintainer": "Mini <mini@example.org>",
        **package.fields,
        "Description": "tiny",
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items())


def _fill(tree: Path, package: Package, control: str) -> None:
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(control)
    for path, text in package.files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    for path, source in package.copies.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, tree / path)
        (tree / path).chmod(0o755)
    for path, target in package.links.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).symlink_to(target)
    if package.filler:
        noise = random.Random(package.name).randbytes(package.filler)
        (tree / "usr/share").mkdir(parents=True, exist_ok=True)
        (tree / f"usr/share/{package.name}.bin").write_bytes(noise)


def _rfc(seconds: int) -> str:
    return format_datetime(datetime.fromtimestamp(seconds, tz=UTC)).replace("+0000", "UTC")


def _run(*argv: str) -> None:
    done = run(["env", "SOURCE_DATE_EPOCH=1700000000", "LC_ALL=C", *argv])
    assert done.returncode == 0, f"{done.command}\n{done.output}"
