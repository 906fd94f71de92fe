"""Profiles: what is written into an image or onto a host so that MIOpen chooses nothing else.

A pure function of (profile, solver names of that library, system). What each variable does
was measured with libMIOpen 7.2.4; `MIOPEN_DEBUG_GCN_ASM_KERNELS=0` is not among them because
it takes the naive solvers away too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vega_image.errors import UsageError
from vega_image.finddb.fallback import SOLVERS as FALLBACK
from vega_image.finddb.registry import FALLBACKS, registry

# Registered and never applicable without MLIR: a list of it alone finds nothing.
SENTINELS = ("ConvMlirIgemmFwd", "ConvMlirIgemmBwd", "ConvMlirIgemmWrW")
ONLY = "MIOPEN_DEBUG_FIND_ONLY_SOLVER"
SYSTEM_DB = "MIOPEN_SYSTEM_DB_PATH"
USER_DB = "MIOPEN_USER_DB_PATH"
ENVIRONMENT = "environment"
LABEL = "io.vega-image.finddb."


class Profile(StrEnum):
    """What MIOpen may choose.

    safe: proven records, and the fallback (GEMM, naive) for all else; strict: proven records
    and nothing else, a miss is an error; upstream: anything, as MIOpen comes.
    """

    SAFE = "safe"
    STRICT = "strict"
    UPSTREAM = "upstream"


class System(StrEnum):
    """Where the library runs: `image` is a Linux container, the others are hosts."""

    IMAGE = "image"
    LINUX = "linux"
    WSL = "wsl"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are: `db` and `user_db` as the library sees them, `folder` in the root."""

    folder: str
    db: str
    user_db: str


_LINUX_FOLDER = "usr/share/vega-image/finddb"
PLACES: Mapping[System, Places] = {
    # Of the container, and gone with it; /run belongs to root there.
    System.IMAGE: Places(_LINUX_FOLDER, f"/{_LINUX_FOLDER}", "/tmp/vega-miopen-user-db"),  # noqa: S108
    System.LINUX: Places(_LINUX_FOLDER, f"/{_LINUX_FOLDER}", "/run/vega-image/miopen"),
    System.WSL: Places(_LINUX_FOLDER, f"/{_LINUX_FOLDER}", "/run/vega-image/miopen"),
    System.WINDOWS: Places(
        "ProgramData/vega-image/finddb",
        r"C:\ProgramData\vega-image\finddb",
        r"C:\ProgramData\vega-image\miopen-user-db",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a profile comes to: `files` by path in the root, `environ`, `labels`.

    `open` are solvers that stay choosable though nothing proves them, because they share a
    switch with one that is served; only a Find that names none of them keeps them out.
    """

    profile: Profile
    files: Mapping[str, bytes] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    open: tuple[str, ...] = ()


def apply(
    profile: Profile,
    solvers: Collection[str],
    system: System,
    *,
    serves: Collection[str] = (),
    status: str = "unproven",
) -> Applied:
    """Return files, environment and labels of a profile.

    `solvers` are the names of the library's registry, `serves` those that the db serves as
    proven. Raises UsageError PROFILE_SOLVERS when the library lacks what the profile needs.
    """
    labels = {
        f"{LABEL}profile": profile.value,
        f"{LABEL}status": "unproven" if profile is Profile.UPSTREAM else status,
    }
    if profile is Profile.UPSTREAM:
        return Applied(profile=profile, labels=labels)
    places = PLACES[system]
    switches = _switches(profile, solvers, serves)
    environ = {
        SYSTEM_DB: places.db,
        USER_DB: places.user_db,
        ONLY: ";".join(_only(profile, solvers)),
        "MIOPEN_FIND_MODE": "5",
        "MIOPEN_FIND_ENFORCE": "NONE",
        "MIOPEN_DEBUG_DISABLE_FIND_DB": "0",
        "MIOPEN_DEBUG_CONV_IMMED_FALLBACK": "0",
        "MIOPEN_DEBUG_ENABLE_AI_IMMED_MODE_FALLBACK": "0",
        "MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK": "0",
        **dict.fromkeys(switches, "0"),
    }
    return Applied(
        profile=profile,
        files=_files(system, dict(sorted(environ.items()))),
        environ=dict(sorted(environ.items())),
        labels=labels,
        open=_open(solvers, serves, switches, profile),
    )


def allowed(profile: Profile, serves: Collection[str]) -> frozenset[str]:
    """Return the solvers that may run at all under a profile other than upstream."""
    return frozenset(serves) | (frozenset(FALLBACK) if profile is Profile.SAFE else frozenset())


def _only(profile: Profile, solvers: Collection[str]) -> tuple[str, ...]:
    """Return the names for Find; one unknown name would make every call fail (status 3)."""
    if profile is Profile.STRICT:
        names = tuple(name for name in SENTINELS if name in solvers)[:1]
        if not names:
            msg = f"the library has none of {', '.join(SENTINELS)}: strict cannot be had"
            raise UsageError("PROFILE_SOLVERS", msg, hint="profile safe")
        return names
    lacking = [name for name in FALLBACK if name not in solvers]
    if lacking:
        msg = f"the library lacks solvers of the fallback: {', '.join(lacking)}"
        raise UsageError("PROFILE_SOLVERS", msg, hint="profile upstream, or another library")
    return FALLBACK


def _switches(
    profile: Profile, solvers: Collection[str], serves: Collection[str]
) -> tuple[str, ...]:
    """Return the variables that turn off every solver that may not run.

    Raises UsageError PROFILE_SOLVERS for a library with solvers that nobody here can name.
    """
    known = registry()
    strange = sorted(name for name in solvers if name not in known)
    if strange:
        msg = f"the library has solvers that this vega-image cannot turn off: {strange}"
        raise UsageError("PROFILE_SOLVERS", msg, hint="profile upstream, or another library")
    may = allowed(profile, serves)
    wanted = {_switch(name) for name in solvers if name not in may}
    needed = {_switch(name) for name in may}
    return tuple(sorted(wanted - needed - {""}))


def _switch(solver: str) -> str:
    return registry()[solver].switch.removesuffix("=1")


def _open(
    solvers: Collection[str],
    serves: Collection[str],
    switches: Collection[str],
    profile: Profile,
) -> tuple[str, ...]:
    """Return solvers that may not run, can apply on gfx906, and have no switch thrown."""
    may = allowed(profile, serves)
    return tuple(
        sorted(
            name
            for name in solvers
            if name not in may
            and registry()[name].usable
            and registry()[name].kernels not in FALLBACKS
            and _switch(name) not in switches
        )
    )


def _files(system: System, environ: Mapping[str, str]) -> dict[str, bytes]:
    """Return what makes the environment take hold on a host; an image's is in its config."""
    places = PLACES[system]
    lines = "".join(f"{name}={value}\n" for name, value in environ.items())
    record = {f"{places.folder}/{ENVIRONMENT}": lines.encode()}
    if system is System.IMAGE:
        return record
    if system is System.WINDOWS:
        script = f"{places.folder}/set-environment.ps1"
        return {**record, script: _powershell(environ, places).encode()}
    quoted = "".join(f"{name}='{value}'\n" for name, value in environ.items())
    exported = "".join(f"export {name}='{value}'\n" for name, value in environ.items())
    service = "".join(f'DefaultEnvironment="{n}={v}"\n' for n, v in environ.items())
    tmp = f"D! {places.user_db} 1777 root root -\n"
    return {
        **record,
        "etc/environment.d/90-vega-image-miopen.conf": quoted.encode(),
        "etc/profile.d/90-vega-image-miopen.sh": exported.encode(),
        "etc/systemd/system.conf.d/90-vega-image-miopen.conf": f"[Manager]\n{service}".encode(),
        "etc/tmpfiles.d/90-vega-image-miopen.conf": tmp.encode(),
    }


def _powershell(environ: Mapping[str, str], places: Places) -> str:
    """Return the script that sets the machine's environment and empties the user db."""
    folder = places.user_db
    lines = [
        "#Requires -Version 5.1",
        "#Requires -RunAsAdministrator",
        "Set-StrictMode -Version 3.0",
        "$ErrorActionPreference = 'Stop'",
        f"$folder = '{folder}'",
        "if (Test-Path $folder) { Remove-Item -LiteralPath $folder -Recurse -Force }",
        "New-Item -ItemType Directory -Force -Path $folder | Out-Null",
        *(
            f"[Environment]::SetEnvironmentVariable('{name}', '{value}', 'Machine')"
            for name, value in environ.items()
        ),
    ]
    return "\r\n".join([*lines, ""])
