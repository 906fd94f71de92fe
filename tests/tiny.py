"""The installed `vega-image` as a user's shell sees it, on a factory with one tiny target.

Its ten packages are in a signed archive on this disk: nothing here needs a network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from tests.minidebian import MiniDebian, Package

PROJECT = Path(__file__).resolve().parent.parent
FIXTURE = PROJECT / "tests/data/factory"
VEGA_IMAGE = Path(sys.executable).with_name("vega-image")
APPLETS = ("sh", "cat", "chmod", "date", "echo", "id", "ln", "mkdir", "rm", "sleep")
STEPS = ["root", "greet", "layers", "image"]
PATIENCE = 120
Result = tuple[str, str]
"""Digest and image id."""


@dataclass(frozen=True)
class Answer:
    """How one call of vega-image ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one object on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> tuple[int, str]:
        """Exit code and stable code of a failure told under --json; checks its whole form."""
        (name, error) = next(iter(self.value.items()))
        assert (name, len(self.value)) == ("error", 1), self.out
        assert error.keys() == {"exit", "code", "message", "hint", "at"}
        assert error["exit"] == self.code
        assert error["message"]
        return self.code, error["code"]

    @property
    def states(self) -> dict[str, str]:
        """What became of each step."""
        return {step["name"]: step["state"] for step in self.value["steps"]}


@dataclass(frozen=True, kw_only=True)
class User:
    """A user with a factory, a store and an environment, all below `folder`."""

    folder: Path
    engine: str = "docker"
    environ: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    umask: int = 0o022
    cwd: Path | None = None
    patience: float = PATIENCE

    @property
    def factory(self) -> Path:
        return self.folder / "factory"

    @property
    def spec(self) -> Path:
        return self.factory / "images/tiny.yaml"

    @property
    def lock(self) -> Path:
        return self.factory / "images/tiny.lock.json"

    @property
    def store(self) -> Path:
        return Path(self.env()["VEGA_IMAGE_STORE"])

    def env(self) -> dict[str, str]:
        """Nothing of the test run's own environment but PATH."""
        home = self.folder / "home"
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "VEGA_IMAGE_STORE": str(self.folder / "store"),
            "VEGA_IMAGE_ENGINE": self.engine,
            **self.environ,
        }

    def having(self, **environ: str) -> Self:
        """The same user with these variables."""
        return replace(self, environ={**self.environ, **environ})

    def argv(self, *words: str) -> list[str]:
        """The command as the shell gets it."""
        return [*self.before, str(VEGA_IMAGE), "-C", str(self.factory), *words]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start and leave running, in a session of its own as a terminal would."""
        return subprocess.Popen(
            self.argv(*words),
            env=self.env(),
            cwd=self.cwd or self.folder,
            umask=self.umask,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *words: str) -> Answer:
        """Run to the end; no failure is ever a traceback."""
        with self.start(*words) as child:
            try:
                out, err = child.communicate(timeout=self.patience)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
        assert "Traceback" not in out + err, out + err
        return Answer(words, child.returncode, out, err)

    def json(self, *words: str) -> Answer:
        """Run with --json."""
        return self(*words, "--json")

    def done(self, *words: str) -> Any:
        """Run with --json, which must succeed, and return the value."""
        answer = self.json(*words)
        assert answer.code == 0, answer.out + answer.err
        return answer.value

    def refused(self, *words: str) -> tuple[int, str]:
        """Run with --json, which must fail, and return exit code and stable code."""
        return self.json(*words).error

    def edit(self, old: str, new: str) -> None:
        """Change the spec."""
        text = self.spec.read_text()
        assert old in text
        self.spec.write_text(text.replace(old, new))


@dataclass(frozen=True, kw_only=True)
class Tiny(User):
    """A user of a signed archive of packages on this disk."""

    archive: MiniDebian
    mirror: str

    def env(self) -> dict[str, str]:
        return {
            "VEGA_IMAGE_DEBIAN_MIRROR": self.mirror,
            "VEGA_IMAGE_DEBIAN_KEYRING": str(self.archive.keyring),
            **super().env(),
        }

    def build(self, *words: str) -> Any:
        """Build the target, which must succeed, and return the value."""
        return self.done("build", "tiny", *words)


def tiny_archive(root: Path, home: Path) -> MiniDebian:
    """The archive of the tiny target, signed."""
    archive = MiniDebian(root, home=home)
    for package in tiny_packages():
        archive.add(package)
    archive.publish()
    return archive


def tiny_packages() -> list[Package]:
    """Ten packages with what makes archives interesting: epochs, +, links, modes, conffiles."""
    busybox = Path(str(shutil.which("busybox")))
    return [
        Package(
            "tiny-app",
            "2:1.0+dfsg-1",
            "amd64",
            files={"usr/share/tiny/app": "app\n", "usr/share/doc/tiny-app/copyright": "MIT\n"},
            links={"usr/bin/tiny-app": "busybox"},
            fields={"Depends": "libtiny++1, tiny-data, tiny-tool, tiny-shell"},
        ),
        Package("tiny-base", files={"etc/tiny/base": "base\n", "tmp/.keep": "", "root/x": ""}),
        Package(
            "tiny-shell",
            "1.35",
            "amd64",
            copies={"usr/bin/busybox": busybox},
            links={f"usr/bin/{name}": "busybox" for name in APPLETS},
        ),
        Package("tiny-data", filler=400_000, fields={"Depends": "tiny-locale, tiny-fonts"}),
        Package("tiny-tool", files={"usr/bin/tool": "no\n"}),
        Package(
            "libtiny++1",
            "1:2.0~rc1-1",
            "amd64",
            files={"usr/lib/x86_64-linux-gnu/libtiny.so.1.0": "library\n"},
            links={"usr/lib/x86_64-linux-gnu/libtiny.so.1": "libtiny.so.1.0"},
            fields={"Depends": "libtiny-common"},
        ),
        Package("libtiny-common", filler=20_000),
        Package("tiny-locale", files={"usr/share/locale/it/tiny": "ciao\n"}),
        Package("tiny-fonts", files={f"usr/share/fonts/{n:02}": f"{n}\n" for n in range(30)}),
        Package("tiny-unused", files={"usr/share/unused": "never asked for\n"}),
    ]


def new_user(folder: Path, *, archive: MiniDebian, factory: Path, mirror: str = "") -> Tiny:
    """A user of a copy of `factory`; by default the archive is read from its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(factory, folder / "factory")
    return Tiny(folder=folder, archive=archive, mirror=mirror or f"file://{archive.root}")


def cold(user: Tiny, *words: str) -> Result:
    """Build from an empty store, every step for real."""
    assert not (user.store / "objects").exists(), "the store is not empty"
    value = user.build(*words)
    assert {row["name"]: row["state"] for row in value["steps"]} == dict.fromkeys(
        STEPS, "built"
    )
    return value["digest"], value["image_id"]


def rehash(store: Path) -> int:
    """Check every object of a store against its name; return how many there are."""
    count = 0
    for path in (store / "objects").rglob("*"):
        if path.is_dir():
            continue
        assert sha256(path.read_bytes()).hexdigest() == path.name, f"corrupt: {path}"
        assert path.parent.name == path.name[:2]
        count += 1
    return count


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a tmpfs of this size; needs root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
