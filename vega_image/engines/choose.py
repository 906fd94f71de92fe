"""`--engine auto|docker|podman`: the engine to use, or why there is none, before any work."""

from __future__ import annotations

import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vega_image.engines.podman import absent, podman_service
from vega_image.errors import EngineError, UsageError
from vega_image.process import run, which

if TYPE_CHECKING:
    from vega_image.engines.docker import DockerEngine

DOCKER_MINIMUM = (20, 10)
PODMAN_MINIMUM = (4, 0)
DOCKER_SOCKET = "unix:///var/run/docker.sock"
ORDER: Mapping[str, tuple[str, ...]] = {
    "auto": ("docker", "podman"),
    "docker": ("docker",),
    "podman": ("podman",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What `survey` found of one engine: a version, or the reason it cannot be used."""

    name: str
    version: str | None
    problem: EngineError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Where engines are looked for: the environment, and the folder for podman's storage."""

    environ: Mapping[str, str]
    store: Path
    log: Callable[[str], None] = lambda _line: None


@contextmanager
def opened(asked: str, host: Host, *, need_bytes: int = 0) -> Iterator[DockerEngine]:
    """Open the engine `asked` for (auto: docker, else podman), leftovers of the dead removed.

    Call from the main thread. Raises UsageError UNKNOWN_ENGINE; EngineError ENGINE_ABSENT,
    ENGINE_TOO_OLD, ENGINE_PERMISSION, ENGINE_RUNTIME, or DISK_TOO_SMALL when the engine's
    folder or the store has less than `need_bytes` free.
    """
    names = ORDER.get(asked)
    if names is None:
        msg = f"no engine is called {asked!r}"
        raise UsageError("UNKNOWN_ENGINE", msg, hint=f"--engine {'|'.join(ORDER)}")
    with ExitStack() as stack:
        engine = _first(names, host, stack)
        folders = {f"{engine.name}'s images": Path(engine.data_folder()), "store": host.store}
        check_space(folders, need_bytes)
        for name in engine.sweep():
            host.log(f"{engine.name}: removed what a killed vega-image left: {name}")
        yield engine


def check_space(folders: Mapping[str, Path], need_bytes: int) -> None:
    """Raise EngineError DISK_TOO_SMALL for a folder (role -> path) with less space free."""
    for role, folder in folders.items():
        there = next((path for path in (folder, *folder.parents) if path.exists()), None)
        if there is None:
            continue
        free = shutil.disk_usage(there).free
        if free < need_bytes:
            msg = (
                f"{folder} ({role}) has {free / 1e9:.1f} GB free, "
                f"this needs {need_bytes / 1e9:.1f} GB"
            )
            hint = "free some space, or use another disk: --store DIR"
            raise EngineError("DISK_TOO_SMALL", msg, at=str(folder), hint=hint)


def survey(environ: Mapping[str, str]) -> tuple[Found, ...]:
    """Look at each engine without starting anything; for `doctor`."""
    return tuple(_found(name, environ) for name in ORDER["auto"])


def _found(name: str, environ: Mapping[str, str]) -> Found:
    try:
        if name == "podman":
            return Found(name=name, version=_podman_version(), problem=None)
        with ExitStack() as stack:
            version = _docker(environ, stack).version()
            return Found(name=name, version=version, problem=None)
    except EngineError as error:
        return Found(name=name, version=None, problem=error)


def _first(names: tuple[str, ...], host: Host, stack: ExitStack) -> DockerEngine:
    problems: list[EngineError] = []
    for name in names:
        try:
            if name == "podman":
                return _podman(host, stack)
            return _docker(host.environ, stack)
        except EngineError as error:
            problems.append(error)
    # What is there but unusable says more than what is absent.
    telling = [problem for problem in problems if problem.code != "ENGINE_ABSENT"]
    if telling or len(problems) == 1:
        raise (telling or problems)[0]
    msg = "no container engine: " + "; ".join(problem.message for problem in problems)
    hint = "apt-get install docker.io (or podman), then: vega-image doctor"
    raise EngineError("ENGINE_ABSENT", msg, hint=hint)


def _docker(environ: Mapping[str, str], stack: ExitStack) -> DockerEngine:
    from vega_image.engines.docker import DockerEngine  # noqa: PLC0415 - the SDK is heavy

    address = environ.get("DOCKER_HOST") or DOCKER_SOCKET
    if not address.startswith("unix://"):
        msg = f"DOCKER_HOST is {address}: only an engine on this machine can be used"
        raise EngineError("ENGINE_REMOTE", msg, at="DOCKER_HOST", hint="unset DOCKER_HOST")
    check_socket(Path(address.removeprefix("unix://")))
    engine = stack.enter_context(DockerEngine("docker", address))
    if engine.product() == "podman":
        msg = f"{address} is podman's socket, not Docker's"
        raise EngineError("ENGINE_ABSENT", msg, hint="--engine podman")
    _check_version("docker", engine.version(), DOCKER_MINIMUM)
    return engine


def _podman(host: Host, stack: ExitStack) -> DockerEngine:
    from vega_image.engines.docker import DockerEngine  # noqa: PLC0415 - the SDK is heavy

    _podman_version()
    folder = host.store / "podman"
    service = podman_service(folder, environ=host.environ, log=host.log)
    url = stack.enter_context(service).url
    return stack.enter_context(DockerEngine("podman", url))


def _podman_version() -> str:
    if which("podman") is None:
        raise absent()
    said = run(["podman", "--version"]).output.strip()
    version = said.rpartition(" ")[2]
    _check_version("podman", version, PODMAN_MINIMUM)
    return version


def check_socket(path: Path) -> None:
    """Raise EngineError ENGINE_ABSENT or ENGINE_PERMISSION when nobody answers at `path`."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except PermissionError:
            raise _forbidden(path) from None
        except (FileNotFoundError, NotADirectoryError):
            msg = f"docker is not running here: there is no {path}"
            hint = "apt-get install docker.io, or: systemctl start docker"
            raise EngineError("ENGINE_ABSENT", msg, at=str(path), hint=hint) from None
        except OSError as error:
            msg = f"docker does not answer at {path}: {error.strerror or error}"
            hint = "systemctl start docker"
            raise EngineError("ENGINE_ABSENT", msg, at=str(path), hint=hint) from None


def _forbidden(path: Path) -> EngineError:
    try:
        mode = stat.filemode(path.stat().st_mode)
        detail = f"its mode is {mode}, its group {path.group()}"
        group = path.group()
    except (OSError, KeyError):
        detail, group = "its folder cannot be entered", "docker"
    msg = f"no permission to use {path}: {detail}"
    hint = f'sudo usermod -aG {group} "$USER", then log in again; or run it with sudo'
    return EngineError("ENGINE_PERMISSION", msg, at=str(path), hint=hint)


def _check_version(name: str, version: str, minimum: tuple[int, int]) -> None:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if found is None:
        msg = f"{name} calls its version {version!r}, which cannot be compared"
        raise EngineError("ENGINE_TOO_OLD", msg, hint=f"install another {name}")
    if (int(found[1]), int(found[2])) < minimum:
        wanted = ".".join(map(str, minimum))
        msg = f"{name} is {version}, vega-image needs {wanted} or newer"
        hint = f"upgrade {name}, or choose another engine: --engine docker|podman"
        raise EngineError("ENGINE_TOO_OLD", msg, hint=hint)
