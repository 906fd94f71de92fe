"""Podman's Docker-API service, started for the time of one command.

Always our own, also where the machine has one: podman 4 lets a stage run on after its client
is gone, so only a service that dies with us leaves nothing running. It lives in its own PID,
mount and network namespace (when the first process of a PID namespace dies, so do all others)
and keeps its images in a slot under the store that no other podman looks at.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vega_image.engines.limits import OPEN_FILES, PROCESSES, hard_limit
from vega_image.errors import EngineError
from vega_image.process import Child, ended_within, output_of, run, which
from vega_image.store import disk_errors

START_SECONDS = 30.0
POLL_SECONDS = 0.05
SLOTS = 16
PREFIX = "vega-image-"
MOUNTS = Path("/proc/self/mounts")
_NAMESPACES = ("--pid", "--net", "--fork", "--mount-proc", "--kill-child=KILL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running service: `url` for the SDK, `storage` where its images lie."""

    url: str
    storage: Path


@contextmanager
def podman_service(
    folder: Path, *, environ: Mapping[str, str], log: Callable[[str], None]
) -> Iterator[Service]:
    """Run a service whose storage is a slot of `folder`; it ends with the block, or with us.

    Must be entered from the main thread: a child dies with the thread that started it.
    Raises EngineError ENGINE_ABSENT, ENGINE_RUNTIME, ENGINE_FAILED.
    """
    if which("podman") is None:
        raise absent()
    runtime = chosen_runtime()
    if runtime:
        log(f"podman: crun does not work with this machine's hybrid cgroups; using {runtime}")
    with _slot(folder.resolve()) as (slot, private):
        env = dict(environ) | _configured(slot, private, runtime)
        address = private / "api.sock"
        said = private / "service.log"
        # By flag too: without root, podman overlooks the folders of a storage.conf.
        folders = (f"--root={slot / 'root'}", f"--runroot={private / 'run'}")
        service = ("podman", *folders, "system", "service", "--time=0", f"unix://{address}")
        with (
            said.open("w+b") as errors,
            output_of([*_entry(private), *service], env=env, stderr=errors) as child,
        ):
            _wait_until_it_answers(child, address, said)
            yield Service(url=f"unix://{address}", storage=slot)


def absent() -> EngineError:
    """Make the error for a machine without podman."""
    return EngineError(
        "ENGINE_ABSENT", "podman is not installed", hint="apt-get install podman"
    )


def chosen_runtime(
    mounts: Path = MOUNTS, found: Callable[[str], str | None] = which
) -> str | None:
    """Return the OCI runtime to ask for by name, or None where podman's own choice works.

    crun refuses hybrid cgroups (v1 controllers beside a v2 mount; crun 1.8.1: seen). Raises
    EngineError ENGINE_RUNTIME when nothing else is installed.
    """
    if not hybrid_cgroups(mounts.read_text()):
        return None
    if found("runc") is None:
        msg = "crun does not work with this machine's hybrid cgroups, and runc is not installed"
        raise EngineError("ENGINE_RUNTIME", msg, hint="apt-get install runc")
    return "runc"


def hybrid_cgroups(mounts: str) -> bool:
    r"""Tell from the text of /proc/self/mounts whether v1 and v2 cgroups are both mounted.

    >>> hybrid_cgroups("cgroup /c/cpu cgroup rw 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n")
    True
    >>> hybrid_cgroups("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    False
    """
    types = {fields[2] for line in mounts.splitlines() if len(fields := line.split()) > 2}  # noqa: PLR2004
    return {"cgroup", "cgroup2"} <= types


def storage_driver(folder: Path, mounts: str) -> str:
    r"""Return `overlay`, or the slow `vfs` on a file system that overlay cannot lie on.

    >>> storage_driver(Path("/a/b"), "o / overlay rw 0 0\ne /a ext4 rw 0 0\n")
    'overlay'
    >>> storage_driver(Path("/b"), "o / overlay rw 0 0\ne /a ext4 rw 0 0\n")
    'vfs'
    """
    rows = (fields for line in mounts.splitlines() if len(fields := line.split()) > 2)  # noqa: PLR2004
    holding = [(row[1], row[2]) for row in rows if folder.is_relative_to(row[1])]
    _point, kind = max(holding, key=lambda row: len(row[0]), default=("/", ""))
    return "vfs" if kind in {"overlay", "ecryptfs", "nfs", "nfs4"} else "overlay"


def _configured(slot: Path, private: Path, runtime: str | None) -> dict[str, str]:
    """Write the two configuration files and return the environment that names them."""
    containers, storage = private / "containers.conf", private / "storage.conf"
    scratch = private / "tmp"
    scratch.mkdir()
    # Root's defaults are above many hard limits, and then nothing starts; others get their own.
    hard = {"nofile": hard_limit(OPEN_FILES), "nproc": hard_limit(PROCESSES)}
    root = os.geteuid() == 0
    limits = [f"{name}={limit}:{limit}" for name, limit in hard.items() if limit and root]
    lines = [
        "[containers]",
        f"default_ulimits = {_toml(limits)}",
        "http_proxy = false",
        "[engine]",
        # A systemd scope would be asked for by process numbers of another namespace.
        'cgroup_manager = "cgroupfs"',
        'events_logger = "none"',
        f"tmp_dir = {_toml(str(private / 'libpod'))}",
    ]
    if runtime:
        lines.append(f"runtime = {_toml(runtime)}")
    containers.write_text("\n".join(lines) + "\n")
    driver = storage_driver(slot, MOUNTS.read_text())
    storage.write_text(
        f"[storage]\ndriver = {_toml(driver)}\n"
        f"graphroot = {_toml(str(slot / 'root'))}\n"
        f"runroot = {_toml(str(private / 'run'))}\n"
    )
    return {
        "CONTAINERS_CONF": str(containers),
        "CONTAINERS_STORAGE_CONF": str(storage),
        "TMPDIR": str(scratch),
    }


def _toml(value: str | list[str]) -> str:
    return json.dumps(value)


def _entry(folder: Path) -> list[str]:
    """Enter the namespaces; a user who is not root gets there through podman's own.

    conmon leaves a file `oom` in the working folder, so that is `folder`.
    """
    guard = ["setpriv", "--pdeathsig", "KILL", "--"]
    outer = [] if os.geteuid() == 0 else ["podman", "unshare", *guard]
    if which("unshare") is None:
        msg = "unshare (util-linux) is not installed"
        raise EngineError("ENGINE_ABSENT", msg, hint="apt-get install util-linux")
    return [*outer, "unshare", *_NAMESPACES, f"--wd={folder}", "--"]


def _wait_until_it_answers(child: Child, address: Path, said: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(address):
        code = ended_within(child, POLL_SECONDS)
        if code is None and time.monotonic() < deadline:
            continue
        why = said.read_text(errors="replace").strip() or "it said nothing"
        state = "does not answer" if code is None else f"ended with code {code}"
        msg = f"podman system service {state}: {why[-2000:]}"
        raise EngineError("ENGINE_FAILED", msg, hint="podman info")


def _answers(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(address))
        except OSError:
            return False
    return True


@contextmanager
def _slot(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Hold a storage folder and a short-named private one; the storage is kept afterwards."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(SLOTS):
        with (folder / f"slot-{number}.lock").open("wb") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            with _clean(folder / f"slot-{number}") as (slot, private):
                yield slot, private
            return
    msg = f"{folder}: {SLOTS} vega-image commands use podman already"
    raise EngineError("ENGINE_BUSY", msg, hint="wait for one of them to end")


@contextmanager
def _clean(slot: Path) -> Iterator[tuple[Path, Path]]:
    """Empty a slot whose last user was killed; containers are never kept, images are."""
    in_use = slot / "in-use"
    if in_use.exists():
        private = Path(in_use.read_text())
        if private.name.startswith(PREFIX) and private.parent == Path(tempfile.gettempdir()):
            _erase(private)
        _erase(slot)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        with disk_errors(slot):
            slot.mkdir(exist_ok=True)
            in_use.write_text(name)
        _erase(slot / "root" / "libpod")
        try:
            yield slot, Path(name)
        except Exception:
            in_use.unlink()
            raise
        in_use.unlink()


def _erase(folder: Path) -> None:
    """Remove files that, without root, belong to podman's sub-ids."""
    if not folder.exists():
        return
    if os.geteuid() == 0:
        shutil.rmtree(folder)
    else:
        run(["podman", "unshare", "rm", "-rf", "--", str(folder)])
