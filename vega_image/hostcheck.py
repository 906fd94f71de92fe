"""Whether this host can build images: gathered once, then judged without touching anything."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vega_image.errors import VegaError
from vega_image.process import which
from vega_image.selftest.finding import Finding, Severity, in_order
from vega_image.sources.origin import Origin
from vega_image.units import megabytes

GIB = 1 << 30
# linux-inference: 0.5 GB of packages, their content, slimmed copies and layers.
LEAST_DISK = 6 * GIB
AMPLE_DISK = 20 * GIB
LEAST_MEMORY = GIB
AMPLE_MEMORY = 2 * GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """A container engine: its version, or the error that opening it gives."""

    name: str
    version: str | None
    problem: VegaError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProbe:
    """What the verdict depends on. Sizes in bytes, None where nobody could tell.

    `tools` maps programs to their paths; `mirror` and `keyring` are None, or the error
    that asking for them gives; `libzstd` is the version that compresses layers.
    """

    engines: tuple[EngineState, ...]
    tools: Mapping[str, str | None]
    mirror: VegaError | None
    keyring: VegaError | None
    store: Path
    disk_free: int | None
    memory_free: int | None
    python: str
    libzstd: str | None


@dataclass(frozen=True, slots=True)
class Need:
    """A program, the Debian package that has it, and what fails without it."""

    program: str
    package: str
    severity: Severity
    why: str


NEEDS = (
    Need("dpkg-deb", "dpkg", "refuse", "unpacks the locked packages"),
    Need("apt-get", "apt", "refuse", "resolves packages for `lock`"),
    Need("gpgv", "gpgv", "warn", "apt checks the archive's signature with it"),
    Need("setpriv", "util-linux", "warn", "ends our child programs when we are killed"),
    Need("mmdebstrap", "mmdebstrap", "warn", "targets with `root: {method: install}` need it"),
    Need("git", "git", "warn", "targets with `git` sources need it"),
)


def gather(store: Path, origin: Origin, environ: Mapping[str, str]) -> HostProbe:
    """Look at this host; starts engines' clients, changes nothing."""
    return HostProbe(
        engines=_engines(environ),
        tools={need.program: which(need.program) for need in NEEDS},
        mirror=_problem(origin.base),
        keyring=_problem(origin.trusted),
        store=store,
        disk_free=free_bytes(store),
        memory_free=available_memory(Path("/proc/meminfo")),
        python=platform.python_version(),
        libzstd=_libzstd(),
    )


def check_host(probe: HostProbe) -> tuple[Finding, ...]:
    """Return every finding, the gravest first; `refuse` means exit 5."""
    found = [*_judge_engines(probe.engines), *_judge_tools(probe.tools), *_judge_archive(probe)]
    found += [*_judge_space(probe), *_judge_memory(probe.memory_free), *_judge_codec(probe)]
    return in_order(found)


def free_bytes(folder: Path) -> int | None:
    """Return the free space where a folder is, or would be made."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    try:
        return shutil.disk_usage(there).free if there else None
    except OSError:
        return None


def available_memory(meminfo: Path) -> int | None:
    """Return the bytes programs can get without swapping."""
    try:
        text = meminfo.read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d{1,15}) kB$", text, re.MULTILINE | re.ASCII)
    return int(found.group(1)) * 1024 if found else None


def _engines(environ: Mapping[str, str]) -> tuple[EngineState, ...]:
    from vega_image.engines.choose import survey  # noqa: PLC0415 - the engines are heavy

    return tuple(
        EngineState(name=found.name, version=found.version, problem=found.problem)
        for found in survey(environ)
    )


def _problem(ask: Callable[[], object]) -> VegaError | None:
    try:
        ask()
    except VegaError as error:
        return error
    return None


def _libzstd() -> str | None:
    try:
        import zstandard  # noqa: PLC0415 - heavy
    except ImportError:
        return None
    return ".".join(map(str, zstandard.ZSTD_VERSION))


def _judge_engines(engines: tuple[EngineState, ...]) -> Iterator[Finding]:
    usable = any(engine.problem is None for engine in engines)
    for engine in engines:
        if engine.problem is None:
            yield Finding(
                code="ENGINE",
                severity="info",
                title=f"{engine.name} {engine.version} can be used",
                detail="builds stages and runs images",
                action="nothing to do",
            )
        else:
            yield Finding(
                code=engine.problem.code,
                severity="info" if usable else "refuse",
                title=f"{engine.name}: {engine.problem.message}",
                detail="one engine is enough" if usable else "an engine is needed",
                action=engine.problem.hint or f"install {engine.name}",
            )


def _judge_tools(tools: Mapping[str, str | None]) -> Iterator[Finding]:
    for need in NEEDS:
        if not tools.get(need.program):
            yield Finding(
                code="TOOL_ABSENT",
                severity=need.severity,
                title=f"{need.program} is not installed",
                detail=need.why,
                action=f"sudo apt-get install {need.package}",
            )


def _judge_archive(probe: HostProbe) -> Iterator[Finding]:
    for problem in (probe.mirror, probe.keyring):
        if problem is not None:
            yield Finding(
                code=problem.code,
                severity="warn",
                title=problem.message,
                detail="needed by `lock` and by the first `build` of a target",
                action=problem.hint or "see vega-image lock --help",
            )


def _judge_space(probe: HostProbe) -> Iterator[Finding]:
    if probe.disk_free is None or probe.disk_free >= AMPLE_DISK:
        return
    short = probe.disk_free < LEAST_DISK
    yield Finding(
        code="DISK_TOO_SMALL",
        severity="refuse" if short else "warn",
        title=f"{megabytes(probe.disk_free)} free for the store {probe.store}",
        detail=f"the first target needs about {megabytes(LEAST_DISK)}, "
        f"several want {megabytes(AMPLE_DISK)}",
        action="free some space, or use another disk: --store DIR",
    )


def _judge_memory(free: int | None) -> Iterator[Finding]:
    if free is None or free >= AMPLE_MEMORY:
        return
    yield Finding(
        code="MEMORY_TOO_SMALL",
        severity="refuse" if free < LEAST_MEMORY else "warn",
        title=f"{megabytes(free)} of memory are available",
        detail=f"building wants {megabytes(AMPLE_MEMORY)}",
        action="end other programs, or build on a larger machine",
        hazards=("RES07",),
    )


def _judge_codec(probe: HostProbe) -> Iterator[Finding]:
    if probe.libzstd is None:
        yield Finding(
            code="TOOL_ABSENT",
            severity="refuse",
            title="the Python package zstandard is not installed",
            detail="compresses the layers",
            action="pip install vega-image",
        )
        return
    yield Finding(
        code="VERSIONS",
        severity="info",
        title=f"Python {probe.python}, libzstd {probe.libzstd}",
        detail="libzstd decides the bytes of layers; a lock records which one",
        action="nothing to do",
    )
